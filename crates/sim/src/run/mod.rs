//! The run: virtual time jumps from instant to instant, and the driver plays each.

use std::io;
use std::iter::Peekable;

use miserly_core::{
    Driver, Effect, EndHow, Ended, Entry, Expected, Holds, Instants, JobId, Kind, Ledger, Machine, Matrix,
    PeSet, Placement, Policy, Reason, Request, Resources, Round, Span, State, Submission, System, Time,
    Violation, work,
};
use miserly_workload::swf::{Record, Status};
use miserly_workload::{Job, TraceError, queue_position};

use crate::event_queue::EventQueue;
use crate::filling::{Filling, InteractiveLoad};
use crate::finished::{Finished, Observer, Standing, Stay};
use crate::interruptions::Interrupted;
use crate::numbering::Numbering;
use crate::slices::{Rows, Slices, Turns};

/// Why a run ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The log cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The policy made a mistake.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// An observer cannot write.
    #[error("cannot write the jobs: {0}")]
    Write(#[from] io::Error),
    /// The schedule is longer than time can count.
    #[error(
        "job {job} would run beyond the end of time (some 290 000 years); its run time or those before it are damaged"
    )]
    TooLong {
        /// The job.
        job: i64,
    },
    /// Nothing will ever happen again, and jobs still wait.
    #[error("the policy left {waiting} jobs waiting for ever (please report this with the trace)")]
    Stuck {
        /// How many.
        waiting: usize,
    },
}

/// A simulation: one machine under virtual time, with a policy, or with a policy for each of its queues.
///
/// Jobs stream through; memory follows the jobs that are in the system.
pub struct Simulation {
    system: System,
    /// The processors of the machine, in queues or not.
    procs: u64,
    /// What runs beside the queues' own work.
    load: InteractiveLoad,
    /// What every job in the system is to itself, by its handle.
    live: Vec<Option<Live>>,
    unused: Vec<JobId>,
    /// Ends, and the ends of estimates that jobs outlive.
    due: EventQueue,
    starts: u64,
    admitted: u64,
    /// The free processors by number, if the jobs are to be told theirs.
    pes: Option<Numbering>,
    round: Round,
    /// The rows that each queue uses, where its policy slices time.
    rows: Vec<Rows>,
    /// The work of all jobs that were submitted, processor-ticks.
    arrived: u128,
    /// The jobs that end in the round.
    ended: Vec<JobId>,
    effects: Vec<Effect>,
}

/// A job in the system, with what only the machine knows of it.
struct Live {
    admission: u64,
    /// The position of its queue.
    queue: usize,
    request: Request,
    runtime: Span,
    killed: bool,
    status: Status,
    used_memory: Option<u64>,
    record: Option<Box<Record>>,
    started: Option<Started>,
    promised: Option<Time>,
    broken: bool,
    /// Since when it is where it is, and on which processors, if that was asked for.
    stay: Option<Here>,
    stays: Vec<Stay>,
    interrupted: Interrupted,
    /// The rows in which it runs, where time is sliced.
    turns: Option<Turns>,
    lost: u128,
    filling: Option<Filling>,
}

/// Where a job is.
struct Here {
    from: Time,
    worked_from: Time,
    /// Since when it does not work any more, if it is being written out.
    worked_to: Option<Time>,
    placement: Placement,
    had: PeSet,
}

struct Started {
    at: Time,
    reason: Reason,
    rank: u64,
    /// Its estimate ends before it does, and that is what is due next.
    outlives: bool,
}

impl Simulation {
    /// A run of `policy` on an idle machine.
    pub fn new(machine: Machine, policy: Box<dyn Policy>, instants: Instants) -> Simulation {
        let procs = machine.capacity().cpus_count();
        Simulation::over(System::new(vec![Driver::new(Ledger::new(machine), policy, instants)]), procs)
    }

    /// A run of queues with nobody in them, on a machine of so many processors in all.
    ///
    /// The jobs' queue numbers name the queues by position from 1; any other number, or none, means the first.
    pub fn over(system: System, procs: u64) -> Simulation {
        Simulation {
            rows: vec![Rows::none(); system.queues().len()],
            arrived: 0,
            system,
            procs,
            load: InteractiveLoad::none(),
            live: Vec::new(),
            unused: Vec::new(),
            due: EventQueue::new(),
            starts: 0,
            admitted: 0,
            pes: None,
            round: Round::default(),
            ended: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// Tells each job its processors: the lowest that are free on its hosts. The schedule does not depend on it.
    #[must_use]
    pub fn with_pes(mut self) -> Simulation {
        self.pes = Some(match self.system.queues() {
            [only] if only.ledger().machine().capacity().cpus_count() == self.procs => {
                Numbering::of(only.ledger().machine())
            }
            queues => Numbering::of_pools(self.procs, queues),
        });
        self
    }

    /// The same, with interactive work on the machine: from when on it uses how many processors, in order.
    #[must_use]
    pub fn with_interactive(self, changes: Box<dyn Iterator<Item = (Time, u64)> + Send>) -> Simulation {
        Simulation { load: InteractiveLoad::of(changes), ..self }
    }

    /// The queues, with their ledgers as they stand.
    pub fn system(&mut self) -> &mut System {
        &mut self.system
    }

    /// Plays the jobs, which come in the order of their submission, to the end of the last one, or until an observer has
    /// [enough](Observer::has_enough).
    ///
    /// # Errors
    /// If the jobs cannot be read, an observer cannot write, or the policy makes a mistake.
    pub fn run(
        &mut self,
        jobs: &mut dyn Iterator<Item = Result<Job, TraceError>>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<(), RunError> {
        let mut jobs = jobs.peekable();
        while self.step(&mut jobs, observers)?.is_some() {
            if observers.iter().any(|observer| observer.has_enough()) {
                return Ok(());
            }
        }
        let jobs =
            |ledger: &Ledger| ledger.waiting_count() + ledger.suspended_count() + ledger.running_count();
        match self.system.queues().iter().map(|queue| jobs(queue.ledger())).sum() {
            0 => Ok(()),
            waiting => Err(RunError::Stuck { waiting }),
        }
    }

    /// Plays the next round; returns its instant, or `None` where nothing is left to happen.
    ///
    /// # Errors
    /// As [`run`](Simulation::run).
    pub fn step<I>(
        &mut self,
        jobs: &mut Peekable<I>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Option<Time>, RunError>
    where
        I: Iterator<Item = Result<Job, TraceError>>,
    {
        let Some(now) = self.next_instant(jobs) else { return Ok(None) };
        self.collect_due(now);
        self.collect_arrivals(now, jobs, observers)?;
        self.round.interactive = self.load.change(now);
        self.system.round(now, &mut self.round, &mut self.effects)?;
        self.finish(now, observers)?;
        self.apply(now, observers)?;
        self.see_rows(now);
        let standing = self.standing();
        for observer in observers.iter_mut() {
            observer.instant(now, standing);
            observer.system(now, &self.system);
        }
        Ok(Some(now))
    }

    fn next_instant<I>(&mut self, jobs: &mut Peekable<I>) -> Option<Time>
    where
        I: Iterator<Item = Result<Job, TraceError>>,
    {
        let arrival = match jobs.peek() {
            Some(Ok(job)) => Some(job.request.submit),
            // Whatever the time is: the error is met when the job is taken.
            Some(Err(_)) => Some(Time::from_ticks(i64::MIN)),
            None => None,
        };
        let next = [arrival, self.due.next_time(), self.system.wake()].into_iter().flatten().min()?;
        // Interactive work goes on for ever, perhaps; the run does not.
        Some(self.load.next().map_or(next, |change| change.min(next)))
    }

    fn collect_due(&mut self, now: Time) {
        while self.due.next_time() == Some(now) {
            let Some((_, _, job)) = self.due.pop() else { return };
            let Some(live) = &mut self.live[job.index()] else { continue };
            let outlives = live.started.as_mut().map(|started| (&mut started.outlives, started.rank));
            if let Some((outlives, rank)) = outlives
                && std::mem::take(outlives)
            {
                let end = now + live.left(now, entry(&self.system, live.queue, job));
                self.due.push(job, end, rank);
                self.round.overdue.push(job);
            } else {
                let how = if live.killed { EndHow::KilledAtEstimate } else { EndHow::Done };
                self.round.ended.push(Ended { job, how });
                self.ended.push(job);
            }
        }
    }

    fn collect_arrivals<I>(
        &mut self,
        now: Time,
        jobs: &mut Peekable<I>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<(), RunError>
    where
        I: Iterator<Item = Result<Job, TraceError>>,
    {
        while let Some(job) = jobs.next_if(|job| job.as_ref().map_or(true, |job| job.request.submit <= now)) {
            let job = job?;
            for observer in observers.iter_mut() {
                observer.submitted(now, &job.request);
            }
            let mut request = job.request.clone();
            let queues = self.system.queues().len();
            let queue = queue_position(request.queue, queues);
            if queues > 1 {
                request.queue = u32::try_from(queue).ok();
            }
            let submission = Submission { job: self.handle(), request };
            let live = Live::of(job, queue, self.admitted);
            self.arrived += live.work();
            self.live[submission.job.index()] = Some(live);
            self.admitted += 1;
            self.round.submitted.push(submission);
        }
        Ok(())
    }

    /// A handle that no job in the system has.
    fn handle(&mut self) -> JobId {
        self.unused.pop().unwrap_or_else(|| {
            self.live.push(None);
            // More jobs than that do not fit in any memory.
            JobId(u32::try_from(self.live.len() - 1).unwrap_or(u32::MAX))
        })
    }

    fn finish(&mut self, now: Time, observers: &mut [&mut dyn Observer]) -> Result<(), RunError> {
        for job in self.ended.drain(..) {
            self.unused.push(job);
            let Some(mut live) = self.live[job.index()].take() else { continue };
            live.leave(now, &mut self.pes);
            self.load.fill(live.filling.as_mut(), now, 0);
            let slices = live.turns.map(|turns| turns.over(now, &self.rows[live.queue]));
            let Some(finished) = live.finish(now, slices) else { continue };
            for observer in observers.iter_mut() {
                observer.finished(&finished)?;
            }
        }
        Ok(())
    }

    /// Plays the machine: what the scheduler started runs, and will end.
    fn apply(&mut self, now: Time, observers: &mut [&mut dyn Observer]) -> Result<(), RunError> {
        let mut effects = std::mem::take(&mut self.effects);
        self.vacate(now, &effects);
        for effect in effects.drain(..) {
            let job = effect.job();
            let Some(live) = &mut self.live[job.index()] else { continue };
            for observer in observers.iter_mut() {
                observer.effect(now, live.request.number, &effect);
            }
            match effect {
                Effect::Started { reason, .. } => {
                    live.started = Some(Started { at: now, reason, rank: self.starts, outlives: false });
                    self.load.fill(live.filling.as_mut(), now, 0);
                    self.starts += 1;
                    let ledger = self.system.queues()[live.queue].ledger();
                    live.turns = ledger.matrix().map(|_| Turns::start(now, &self.rows[live.queue]));
                    live.see_turns(now, ledger.entry(job));
                    self.go_on(now, job)?;
                }
                Effect::Resumed { .. } => {
                    let reading = entry(&self.system, live.queue, job).reading(now);
                    live.interrupted.go_on(now, reading);
                    self.go_on(now, job)?;
                }
                Effect::Resized { .. } | Effect::Moved { .. } => self.go_on(now, job)?,
                Effect::Paced { .. } => {
                    live.see_turns(now, entry(&self.system, live.queue, job));
                    self.expect_end(now, job)?;
                }
                Effect::Suspended { .. } => {
                    live.interrupted.stop(now);
                    if let Some(stay) = &mut live.stay {
                        stay.worked_to = Some(now);
                    }
                    self.due.cancel(job);
                }
                Effect::Vacated { .. } => live.interrupted.written(now),
                Effect::Requeued { lost, .. } => {
                    live.lost += lost;
                    live.leave(now, &mut self.pes);
                    live.started = None;
                    self.due.cancel(job);
                }
                Effect::Promised { latest, .. } => {
                    live.promised.get_or_insert(latest);
                }
                Effect::PromiseBroken { .. } => live.broken = true,
                Effect::Planned { .. } => {}
                Effect::Filled { procs, .. } => self.go_ahead(now, job, procs)?,
                Effect::Refused { why, .. } => {
                    for observer in observers.iter_mut() {
                        observer.refused(now, &live.request, why)?;
                    }
                    self.live[job.index()] = None;
                    self.unused.push(job);
                }
            }
        }
        self.effects = effects;
        Ok(())
    }

    /// Notes how many rows are used now.
    ///
    /// A job that runs in twice as many of twice as many rows has the pace that it had, and no effect tells of that.
    fn see_rows(&mut self, now: Time) {
        let mut changed = false;
        for (rows, queue) in self.rows.iter_mut().zip(self.system.queues()) {
            changed |= rows.see(now, queue.ledger());
        }
        if !changed {
            return;
        }
        for (job, live) in (0..).map(JobId).zip(&mut self.live) {
            let Some(live) = live.as_mut().filter(|live| live.turns.is_some()) else { continue };
            live.see_turns(now, entry(&self.system, live.queue, job));
        }
    }

    /// Takes the numbers of their processors from all jobs that the round moved, before anybody is given new ones:
    /// the ledger shows where they lie after its last pass only.
    fn vacate(&mut self, now: Time, effects: &[Effect]) {
        for effect in effects {
            let Some(live) = &mut self.live[effect.job().index()] else { continue };
            let moves = match effect {
                // Not yet, if it is being written out.
                Effect::Suspended { job } => !is_written_out(entry(&self.system, live.queue, *job)),
                Effect::Vacated { .. }
                | Effect::Resized { .. }
                | Effect::Moved { .. }
                | Effect::Requeued { .. }
                | Effect::Filled { .. }
                | Effect::Started { .. } => true,
                _ => false,
            };
            if moves {
                live.leave(now, &mut self.pes);
            }
        }
    }

    /// Notes where a job is now that runs on, and when it is due next.
    fn go_on(&mut self, now: Time, job: JobId) -> Result<(), RunError> {
        let Some(live) = &mut self.live[job.index()] else { return Ok(()) };
        let entry = entry(&self.system, live.queue, job);
        // Somebody may have taken its processors in this very round, and it has them until it is written out.
        if is_written_out(entry) || matches!(entry.state, State::Running { .. }) {
            live.come(now, entry, &mut self.pes);
        }
        self.expect_end(now, job)
    }

    /// Enters when a running job is due next, as it lies now: its end, or before that the end of its estimate.
    ///
    /// A quantum that it does not end in is the scheduler's to end. It does not end in one either if its memory is
    /// too small for it.
    fn expect_end(&mut self, now: Time, job: JobId) -> Result<(), RunError> {
        let Some(live) = &mut self.live[job.index()] else { return Ok(()) };
        let ledger = self.system.queues()[live.queue].ledger();
        let entry = ledger.entry(job);
        let State::Running { expected, quantum, ref placement, .. } = entry.state else { return Ok(()) };
        let end = now + live.left(now, entry);
        let short_of_memory = quantum.is_some() && live.outgrows(placement, ledger.machine());
        let Some(started) = &mut live.started else { return Ok(()) };
        match (quantum, expected) {
            (Some(until), _) if end > until || short_of_memory => {
                self.due.cancel(job);
            }
            (_, Expected::At(planned)) if end > planned => {
                started.outlives = true;
                self.due.push(job, planned, started.rank);
            }
            _ if end == Time::MAX => return Err(RunError::TooLong { job: live.request.number }),
            _ => {
                started.outlives = false;
                self.due.push(job, end, started.rank);
            }
        }
        Ok(())
    }

    /// Lets a waiting job run on so many idle processors from now on, or parks it.
    fn go_ahead(&mut self, now: Time, job: JobId, procs: u64) -> Result<(), RunError> {
        let Some(live) = &mut self.live[job.index()] else { return Ok(()) };
        self.load.fill(Some(live.filling.get_or_insert_with(|| Filling::since(now))), now, procs);
        if procs == 0 {
            self.due.cancel(job);
            return Ok(());
        }
        live.stay = self.pes.as_mut().map(|pes| {
            let placement = Placement::on_plain(Resources::cpus(procs));
            let had = pes.take(live.queue, &placement);
            Here { from: now, worked_from: now, worked_to: None, placement, had }
        });
        let end = now + live.left(now, entry(&self.system, live.queue, job));
        if end == Time::MAX {
            return Err(RunError::TooLong { job: live.request.number });
        }
        self.due.push(job, end, self.starts);
        self.starts += 1;
        Ok(())
    }

    /// How all stands, now that the instant is over.
    fn standing(&self) -> Standing {
        let ledgers = || self.system.queues().iter().map(Driver::ledger);
        let held: u64 = ledgers().map(|ledger| ledger.held().cpus_count()).sum();
        Standing {
            free: self.procs.saturating_sub(held + self.load.procs()),
            kept: ledgers().map(kept).sum(),
            waiting: ledgers().map(Ledger::waiting_count).sum(),
            rows: ledgers().filter_map(Ledger::matrix).map(Matrix::used).sum(),
            arrived: self.arrived,
        }
    }
}

/// The processors that are kept idle on hosts that are reserved for a waiting job.
fn kept(ledger: &Ledger) -> u64 {
    let mut hosts: Vec<_> = ledger.pledged().iter().map(|(host, _)| *host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts.iter().map(|host| ledger.free_hosts().on(*host).cpus_count()).sum()
}

/// A job that is in the queue of that position.
fn entry(system: &System, queue: usize, job: JobId) -> &Entry {
    system.queues()[queue].ledger().entry(job)
}

/// Whether a job keeps its processors although it is suspended.
fn is_written_out(entry: &Entry) -> bool {
    matches!(entry.state, State::Suspended { holds: Holds::All { .. }, .. })
}

impl Live {
    fn of(job: Job, queue: usize, admission: u64) -> Live {
        Live {
            admission,
            queue,
            request: job.request,
            runtime: job.runtime.0,
            killed: job.killed,
            status: job.status,
            used_memory: job.used_memory,
            record: job.record,
            started: None,
            promised: None,
            broken: false,
            stay: None,
            stays: Vec::new(),
            interrupted: Interrupted::default(),
            turns: None,
            lost: 0,
            filling: None,
        }
    }

    /// How long it still has to run as it lies now, in its window or ahead of it, to its true end.
    fn left(&self, now: Time, entry: &Entry) -> Span {
        entry.time_to(now, self.work())
    }

    /// All of its work, processor-ticks.
    fn work(&self) -> u128 {
        work(self.runtime, self.request.procs())
    }

    /// Whether it uses more memory than it has there.
    fn outgrows(&self, placement: &Placement, machine: &Machine) -> bool {
        let accounted = machine.capacity().get(Kind::Memory) > 0;
        accounted && self.used_memory.is_some_and(|used| used > placement.total().get(Kind::Memory))
    }

    /// Notes that it is where it lies now.
    fn come(&mut self, now: Time, entry: &Entry, pes: &mut Option<Numbering>) {
        self.leave(now, pes);
        let Some((placement, pes)) = entry.placement().zip(pes.as_mut()) else { return };
        let (worked_from, had) = (now + entry.reading(now), pes.take(self.queue, placement));
        self.stay = Some(Here { from: now, worked_from, worked_to: None, placement: placement.clone(), had });
    }

    /// Notes that it is no longer where it was.
    fn leave(&mut self, now: Time, pes: &mut Option<Numbering>) {
        let Some(here) = self.stay.take() else { return };
        if let Some(free) = pes {
            free.give(self.queue, &here.placement, &here.had);
        }
        let worked = (here.worked_from.min(now), here.worked_to.unwrap_or(now));
        self.stays.push(Stay { from: here.from, to: now, worked, pes: here.had });
    }

    /// Notes in how many rows it runs now, if time is sliced.
    fn see_turns(&mut self, now: Time, entry: &Entry) {
        if let Some(turns) = &mut self.turns {
            turns.see(now, 1 + entry.also_in.len());
        }
    }

    fn finish(mut self, end: Time, slices: Option<Slices>) -> Option<Finished> {
        let ahead = self.filling.as_ref().map(|filling| filling.did(self.work()));
        let (at, reason) = match (&self.started, ahead) {
            (Some(started), _) => (started.at, Some(started.reason)),
            (None, Some(ahead)) => (ahead.since, None),
            (None, None) => return None,
        };
        let pes = self.stays.last().map(|stay| stay.pes.clone());
        // One that was suspended as it started came to its only place later.
        if self.stays.len() == 1 && self.stays[0].from == at {
            self.stays.clear();
        }
        Some(Finished {
            admission: self.admission,
            request: self.request,
            runtime: self.runtime,
            killed: self.killed,
            status: self.status,
            start: at,
            end,
            reason,
            promised: self.promised,
            broken: self.broken,
            pes,
            stays: self.stays,
            interruptions: self.interrupted.over(end),
            lost: self.lost,
            ahead,
            slices,
            record: self.record,
        })
    }
}
