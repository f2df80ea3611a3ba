//! The event loop: the events and the order in which a policy receives them.

use miserly_core::{EventOrder, Span, Time};

use crate::late::Beside;
use crate::order::arrival;
use crate::plan::Reservation;
use crate::predicted::Past;
use crate::world::{Guard, World};
use crate::{
    NaiveJob, NaivePolicy, NaivePrediction, conservative, easy, fcfs, late, selective, slurm, sorted,
};

/// A run of one policy over some jobs.
pub(crate) struct Simulation<'a> {
    world: World<'a>,
    policy: NaivePolicy,
    event_order: EventOrder,
    /// The jobs that are not submitted yet.
    future: Vec<usize>,
    /// The reservations of the conservative policy. The other policies have none.
    kept: Vec<Reservation>,
    /// The latest start of each job, by position, for the policy with deadlines.
    deadlines: Vec<Time>,
    /// The schedule that gives jobs their bounds, for the policy that moves late jobs to the head.
    beside: Beside,
    /// The job that EASY gave the last shadow time.
    held: Option<usize>,
    /// The wake-up that the policy requested in its last pass.
    wake: Option<Time>,
    prediction: Option<NaivePrediction>,
    past: Past,
    /// The instant of the last cycle of the policy that has cycles.
    last_cycle: Option<Time>,
}

/// The events of one round, each kind in the order of its delivery.
struct Happening {
    ended: Vec<usize>,
    overdue: Vec<usize>,
    submitted: Vec<usize>,
    timer: bool,
}

impl<'a> Simulation<'a> {
    pub(crate) fn new(
        procs: u64,
        jobs: &'a [NaiveJob],
        policy: NaivePolicy,
        event_order: EventOrder,
    ) -> Self {
        let world = World {
            procs,
            requested: jobs,
            jobs: jobs.to_vec(),
            ranked: jobs.to_vec(),
            guards: vec![Guard::default(); jobs.len()],
            now: Time::ZERO,
            waiting: Vec::new(),
            running: Vec::new(),
            starts: vec![None; jobs.len()],
        };
        let future = (0..jobs.len()).collect();
        Simulation {
            world,
            policy,
            event_order,
            future,
            kept: Vec::new(),
            deadlines: vec![Time::ZERO; jobs.len()],
            beside: Beside::new(procs, jobs.len()),
            held: None,
            wake: None,
            prediction: None,
            past: Past::default(),
            last_cycle: None,
        }
    }

    pub(crate) fn predicting(self, prediction: NaivePrediction) -> Self {
        Simulation { prediction: Some(prediction), ..self }
    }

    /// Runs to the end. Ends that a round causes at its own instant form the next round.
    pub(crate) fn run(mut self) -> Vec<Time> {
        while let Some(now) = self.next_instant() {
            self.world.now = now;
            let happening = self.happening();
            match self.event_order {
                EventOrder::Batched => self.batch(happening),
                EventOrder::Sequential => self.sequential(happening),
            }
        }
        self.world.starts.into_iter().map(|start| start.expect("every job starts")).collect()
    }

    fn next_instant(&self) -> Option<Time> {
        let submits = self.future.iter().map(|&position| self.world.request(position).submit);
        let ends = self.world.running.iter().map(|running| running.end);
        let unnoticed = self.world.running.iter().filter(|running| !running.noticed);
        let notices = unnoticed.filter(|running| running.expected < running.end);
        let notices = notices.map(|running| running.expected);
        submits.chain(ends).chain(notices).chain(self.wake).min()
    }

    fn happening(&self) -> Happening {
        let World { now, jobs, running, .. } = &self.world;
        let ended = running.iter().filter(|running| running.end == *now);
        let overdue = running.iter().filter(|running| !running.noticed);
        let overdue = overdue.filter(|running| running.expected == *now && running.end > *now);
        let submitted = self.future.iter().copied().filter(|&position| jobs[position].request.submit == *now);
        let mut submitted: Vec<usize> = submitted.collect();
        submitted.sort_by_key(|&position| arrival(position, jobs));
        Happening {
            ended: ended.map(|running| running.position).collect(),
            overdue: overdue.map(|running| running.position).collect(),
            submitted,
            timer: self.wake == Some(*now),
        }
    }

    /// Handles all events, then runs one pass.
    fn batch(&mut self, happening: Happening) {
        let any_ended = !happening.ended.is_empty();
        for position in happening.ended {
            self.end(position);
        }
        for position in happening.overdue {
            self.notice(position);
        }
        for position in happening.submitted {
            self.submit(position);
        }
        self.pass(any_ended);
    }

    /// Handles one event at a time, each followed by a pass.
    fn sequential(&mut self, happening: Happening) {
        self.release_due();
        let any_overdue = !happening.overdue.is_empty();
        for position in happening.overdue {
            self.notice(position);
        }
        if any_overdue {
            self.pass(false);
        }
        for position in happening.submitted {
            self.submit(position);
            self.pass(false);
        }
        for position in happening.ended {
            self.end(position);
            self.pass(true);
        }
        if happening.timer {
            self.pass(false);
        }
    }

    /// Marks jobs that end now as expected, so that they count as gone before their ends are
    /// reported.
    fn release_due(&mut self) {
        for running in &mut self.world.running {
            running.gone = running.end == self.world.now && running.expected == self.world.now;
        }
    }

    fn end(&mut self, position: usize) {
        let World { requested, starts, now, .. } = &self.world;
        self.past.add(&requested[position], starts[position].expect("it ran"), *now);
        self.world.running.retain(|running| running.position != position);
    }

    fn notice(&mut self, position: usize) {
        for running in &mut self.world.running {
            running.noticed |= running.position == position;
        }
        if let Some(prediction) = self.prediction {
            prediction.correct(&mut self.world, position);
        }
    }

    fn submit(&mut self, position: usize) {
        self.future.retain(|&other| other != position);
        self.world.waiting.push(position);
        if let Some(prediction) = self.prediction {
            prediction.predict(&mut self.world, &self.past, position);
        }
    }

    /// Runs a pass, and another one after each that changed the plan of the jobs that it started.
    fn pass(&mut self, ended: bool) {
        let waiting = self.world.waiting.clone();
        self.decide(ended);
        let Some(prediction) = self.prediction else { return };
        let started: Vec<usize> =
            waiting.into_iter().filter(|position| self.world.starts[*position].is_some()).collect();
        let changes = prediction.plan_started(&mut self.world, &started);
        if !changes.is_empty() {
            self.pass(changes.iter().any(|change| *change < Span::ZERO));
        }
    }

    fn decide(&mut self, ended: bool) {
        match self.policy {
            NaivePolicy::Fcfs { order } => fcfs::pass(&mut self.world, order),
            NaivePolicy::Easy { order, backfill, hold } => {
                self.held = easy::pass(&mut self.world, order, backfill, self.held.filter(|_| hold));
            }
            NaivePolicy::Sorted { order, guarantee } => {
                sorted::pass(&mut self.world, &mut self.kept, &mut self.deadlines, order, guarantee);
                self.wake = conservative::wake(&self.world, &self.kept);
            }
            NaivePolicy::LateAtHead { order, guarantee } => {
                self.wake = late::pass(&mut self.world, &mut self.beside, order, guarantee);
            }
            NaivePolicy::NoGuarantee { order } => {
                conservative::pass_without_guarantees(&mut self.world, order);
            }
            NaivePolicy::Selective { order, threshold } => {
                selective::pass(&mut self.world, order, threshold);
            }
            NaivePolicy::Slurm { order, cycles } => {
                self.wake = slurm::pass(&mut self.world, order, cycles, &mut self.last_cycle);
            }
            NaivePolicy::Conservative { order } => {
                conservative::pass(&mut self.world, &mut self.kept, order, ended);
                self.wake = conservative::wake(&self.world, &self.kept);
            }
        }
    }
}
