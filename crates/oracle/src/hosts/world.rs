//! The event loop: the events and the order in which a policy receives them.

use miserly_core::{Demand, EventOrder, Machine, Request, Span, Time};

use crate::late::Beside;
use crate::order::{arrival, sorted_counting};
use crate::{NaiveJob, NaiveOrder};

use super::fit::Part;
use super::plan::{Plan, Reservation};
use super::{NaiveOnHosts, kept, late, recomputed, selective, slurm, sorted};

/// A job that has started and has no reported end yet.
pub(super) struct Running {
    pub(super) job: usize,
    pub(super) parts: Vec<Part>,
    /// Its start plus its planned span.
    pub(super) expected: Time,
    /// Its start.
    pub(super) since: Time,
    /// The instants at which it ends for another job, and at which it has left the machine.
    pub(super) leaves: Option<(Time, Time)>,
    /// The instant since which it has no processors.
    pub(super) paused: Option<Time>,
    /// Its start plus its runtime, for the event loop only.
    pub(super) end: Time,
    /// Whether the job was reported as overdue.
    pub(super) noticed: bool,
    /// Whether it ends now, as expected. Its resources then count as free.
    pub(super) gone: bool,
}

/// The state of the run. Jobs are identified by their positions in `jobs`, hosts by theirs in the
/// machine.
pub(super) struct World<'a> {
    pub(super) machine: &'a Machine,
    pub(super) jobs: &'a [NaiveJob],
    pub(super) policy: NaiveOnHosts,
    pub(super) now: Time,
    future: Vec<usize>,
    pub(super) waiting: Vec<usize>,
    /// In the order of the starts.
    pub(super) running: Vec<Running>,
    starts: Vec<Option<(Time, Vec<Part>)>>,
    /// The number of jobs that sort behind each job and started before it.
    pub(super) bypassed: Vec<u32>,
    /// The head with a reservation, if it must stay the head.
    pub(super) head: Option<usize>,
    /// Reservations that are kept between passes.
    pub(super) kept: Vec<Reservation>,
    /// The promised start of each job, if it can be later than the reserved one.
    pub(super) deadlines: Vec<Time>,
    /// The schedule that gives jobs their bounds. It is taken out for the length of a pass.
    beside: Option<Beside>,
    /// The wake-up that the policy requested in its last pass.
    wake: Option<Time>,
    /// The instant of the last cycle.
    cycle: Option<Time>,
    /// The instant of the last main loop that followed a submission.
    pub(super) last_loop: Option<Time>,
    /// The instant of the next one, if a job was submitted since.
    pub(super) next_loop: Option<Time>,
    /// Whether a job was submitted since the last pass.
    pub(super) submitted: bool,
    /// The jobs that left the machine, with the instants from which on they wait again.
    pub(super) again: Vec<(Time, usize)>,
    /// The instants at which each job last left the machine, and from which on it could start again.
    pub(super) requeued: Vec<Option<(Time, Time)>>,
    /// The instant at which each job last made room.
    pub(super) made_room: Vec<Option<Time>>,
}

impl<'a> World<'a> {
    pub(super) fn new(machine: &'a Machine, jobs: &'a [NaiveJob], policy: NaiveOnHosts) -> World<'a> {
        World {
            machine,
            jobs,
            policy,
            now: Time::ZERO,
            future: (0..jobs.len()).collect(),
            waiting: Vec::new(),
            running: Vec::new(),
            starts: vec![None; jobs.len()],
            bypassed: vec![0; jobs.len()],
            head: None,
            kept: Vec::new(),
            deadlines: vec![Time::ZERO; jobs.len()],
            beside: Some(Beside::new(machine.capacity().cpus_count().get(), jobs.len())),
            wake: None,
            cycle: None,
            last_loop: None,
            next_loop: None,
            submitted: false,
            again: Vec::new(),
            requeued: vec![None; jobs.len()],
            made_room: vec![None; jobs.len()],
        }
    }

    /// Runs to the end. Ends that a round causes at its own instant form the next round.
    pub(super) fn run(mut self, event_order: EventOrder) -> Vec<(Time, Vec<Part>)> {
        while let Some(now) = self.next_instant() {
            self.now = now;
            let timer = self.wake == Some(now);
            let ended: Vec<usize> = self.working().filter(|r| r.end == now).map(|r| r.job).collect();
            let mut submitted = self.future.clone();
            submitted.retain(|&job| self.request(job).submit == now);
            submitted.sort_by_key(|&job| arrival(job, self.jobs));
            match event_order {
                EventOrder::Batched => self.batch(&ended, &submitted),
                EventOrder::Sequential => self.sequential(&ended, &submitted, timer),
            }
        }
        self.starts.into_iter().map(|start| start.expect("every job starts")).collect()
    }

    fn next_instant(&self) -> Option<Time> {
        let submits = self.future.iter().map(|&job| self.request(job).submit);
        let ends = self.working().map(|running| running.end);
        let overdue = self.working().filter(|r| !r.noticed && r.expected < r.end).map(|r| r.expected);
        submits.chain(ends).chain(overdue).chain(self.wake).min()
    }

    /// Handles all events, then runs one pass.
    fn batch(&mut self, ended: &[usize], submitted: &[usize]) {
        for &job in ended {
            self.end(job);
        }
        self.notice();
        for &job in submitted {
            self.submit(job);
        }
        self.pass(!ended.is_empty());
    }

    /// Handles one event at a time, each followed by a pass.
    fn sequential(&mut self, ended: &[usize], submitted: &[usize], timer: bool) {
        for running in &mut self.running {
            let is_end = running.end == self.now && running.expected == self.now;
            running.gone = is_end && running.paused.is_none();
        }
        if self.notice() {
            self.pass(false);
        }
        for &job in submitted {
            self.submit(job);
            self.pass(false);
        }
        for &job in ended {
            self.end(job);
            self.pass(true);
        }
        if timer {
            self.pass(false);
        }
    }

    fn submit(&mut self, job: usize) {
        self.future.retain(|&other| other != job);
        self.waiting.push(job);
        self.submitted = true;
    }

    fn end(&mut self, job: usize) {
        self.running.retain(|running| running.job != job);
        // It was taken off the machine at the instant of its end.
        self.again.retain(|(_, other)| *other != job);
    }

    /// Reports overdue jobs and returns whether there are any.
    fn notice(&mut self) -> bool {
        let mut any = false;
        for running in &mut self.running {
            let is_due = !running.noticed && running.expected == self.now && running.end > self.now;
            if is_due && running.paused.is_none() {
                running.noticed = true;
                any = true;
            }
        }
        any
    }

    /// Runs one pass. `ended` is true if the pass follows the end of a job.
    fn pass(&mut self, ended: bool) {
        match self.policy {
            NaiveOnHosts::Fcfs { order } => self.first_come(order),
            NaiveOnHosts::Anew { order, backfill, depth, hold } => {
                recomputed::pass(self, order, backfill, depth, hold);
            }
            NaiveOnHosts::Selective { order, threshold } => selective::pass(self, order, threshold),
            NaiveOnHosts::Kept { order } => {
                kept::pass(self, order, ended);
                self.wake = kept::wake(self);
            }
            NaiveOnHosts::Sorted { order, guarantee } => {
                sorted::pass(self, order, guarantee);
                self.wake = kept::wake(self);
            }
            NaiveOnHosts::LateAtHead { order, guarantee } => {
                let mut beside = self.beside.take().expect("put back after each pass");
                self.wake = late::pass(self, &mut beside, order, guarantee);
                self.beside = Some(beside);
            }
            NaiveOnHosts::Slurm { order, cycles } => {
                let mut last = self.cycle;
                self.wake = slurm::pass(self, order, cycles, ended, &mut last);
                self.cycle = last;
            }
        }
    }

    /// Starts jobs in queue order, up to the first that fits nowhere.
    fn first_come(&mut self, order: NaiveOrder) {
        for job in self.queue(order) {
            let Some(parts) = self.fits_now(job, &[]) else { return };
            self.start(job, parts);
        }
    }
}

/// Queries and actions.
impl World<'_> {
    pub(super) fn request(&self, job: usize) -> &Request {
        &self.jobs[job].request
    }

    pub(super) fn demand(&self, job: usize) -> Demand {
        self.machine.demand(self.request(job))
    }

    /// Returns the waiting jobs in this order.
    pub(super) fn queue(&self, order: NaiveOrder) -> Vec<usize> {
        sorted_counting(self.waiting.clone(), self.jobs, order, self.now, &self.bypassed)
    }

    /// Returns the jobs that have their processors.
    fn working(&self) -> impl Iterator<Item = &Running> {
        self.running.iter().filter(|running| running.paused.is_none())
    }

    /// Returns the jobs that hold resources now, and have their processors.
    pub(super) fn holding(&self) -> impl Iterator<Item = &Running> {
        self.working().filter(|running| !running.gone)
    }

    /// Returns the jobs that run past their expected ends.
    pub(super) fn overdue(&self) -> impl Iterator<Item = &Running> {
        self.holding().filter(|running| running.expected <= self.now)
    }

    /// Returns a placement for the job now that delays none of the reservations.
    pub(super) fn fits_now(&self, job: usize, reservations: &[Reservation]) -> Option<Vec<Part>> {
        let plan = Plan::new(self, reservations);
        plan.room(self.now, self.request(job).planned(), &self.demand(job))
    }

    /// Returns the earliest start of the job, not before `from` and its own begin, beside the running
    /// jobs and these reservations.
    pub(super) fn earliest(&self, job: usize, from: Time, reservations: &[Reservation]) -> Reservation {
        let plan = Plan::new(self, reservations);
        let from = self.request(job).constraints.begin.map_or(from, |begin| begin.max(from));
        let (at, parts) = plan.earliest(from, self.request(job).planned(), &self.demand(job));
        Reservation { job, at, parts }
    }

    pub(super) fn start(&mut self, job: usize, parts: Vec<Part>) {
        assert!(Plan::new(self, &[]).holds(self.now, Span::TICK, &parts), "there is room for it");
        let NaiveJob { request, runtime } = &self.jobs[job];
        let (expected, end) = (self.now + request.planned(), self.now + runtime.0);
        self.waiting.retain(|&other| other != job);
        self.starts[job] = Some((self.now, parts.clone()));
        let (since, leaves, paused, noticed, gone) = (self.now, None, None, false, false);
        self.running.push(Running { job, parts, expected, since, leaves, paused, end, noticed, gone });
    }
}
