//! Replay of the log of a daemon under virtual time.
//!
//! The replay log has the external events: submissions, withdrawals, amended requests, faults, and
//! the runtime of each start. Starts, promises and their order are not part of it. The policies
//! decide them again, and under the same policies they are the same.

use std::collections::{BTreeMap, VecDeque};

use miserly_core::{
    Amendment, Change, Effect, EndHow, Ended, Entry, Expected, Fault, JobId, JobNumber, Request, Round, Span,
    State, Submission, System, Time, Violation,
};

/// The external events of one instant.
#[derive(Clone, Debug, Default)]
pub struct ExternalEvents {
    /// The instant.
    pub at: Time,
    /// The number of the change of the queues that comes first, from 0, if there is one.
    pub change: Option<usize>,
    /// There was no daemon between this time and the instant.
    pub away_since: Option<Time>,
    /// Opportunistic jobs that ended before their starts.
    pub ended: Vec<(JobNumber, EndHow)>,
    /// Jobs that were withdrawn.
    pub withdrawn: Vec<JobNumber>,
    /// Requests that were amended.
    pub amended: Vec<(JobNumber, Change)>,
    /// A change of the capacity of the machine.
    pub fault: Option<Fault>,
    /// Jobs that were submitted.
    pub submitted: Vec<Request>,
}

/// The record of one start of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// The time that it ran. [`Span::MAX`] of a start after which the policy requeued the job.
    pub runtime: Span,
    /// The way in which it ended.
    pub how: EndHow,
}

/// The external events of a daemon, and the records of its runs.
#[derive(Clone, Debug, Default)]
pub struct ReplayLog {
    /// The events by instant; a round each.
    pub events: VecDeque<ExternalEvents>,
    /// The end of the log.
    pub until: Time,
    /// The records of the starts of each job, in order.
    pub runs: BTreeMap<JobNumber, VecDeque<RunRecord>>,
}

/// An effect of the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayedEffect {
    /// The instant.
    pub at: Time,
    /// The job.
    pub job: JobNumber,
    /// The effect.
    pub effect: Effect,
}

/// Replays a log, and returns the effects.
///
/// The system may have jobs already. A log has the ends of those that run.
///
/// # Example
/// ```
/// use miserly_core::{Driver, EndHow, EventOrder, Ledger, Machine, Request, Resources, Span, System, Time};
/// use miserly_policies::PolicySpec;
/// use miserly_sim::{ExternalEvents, ReplayLog, RunRecord, replay};
///
/// let machine = Machine::plain(4);
/// let policy = "easy".parse::<PolicySpec>()?.build(&machine, 0)?;
/// let system = System::new(vec![Driver::new(Ledger::new(machine), policy, EventOrder::Batched)]);
/// let request = Request::new(1, Time::ZERO, Span::from_ticks(9), Resources::cpus(4));
/// let mut log = ReplayLog { until: Time::from_ticks(5), ..ReplayLog::default() };
/// log.events.push_back(ExternalEvents { submitted: vec![request], ..ExternalEvents::default() });
/// log.runs.entry(1).or_default().push_back(RunRecord { runtime: Span::from_ticks(5), how: EndHow::Done });
/// assert_eq!(replay(system, log)?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If a policy makes a mistake.
pub fn replay(system: System, log: ReplayLog) -> Result<Vec<ReplayedEffect>, Violation> {
    replay_over(system, log, &mut |_, system| system)
}

/// Replays a log in which the queues changed ([`ExternalEvents::change`]).
///
/// `change` returns the queues after a change, with the jobs of those before it.
///
/// # Errors
/// As [`replay`].
pub fn replay_over(
    system: System,
    log: ReplayLog,
    change: &mut dyn FnMut(usize, System) -> System,
) -> Result<Vec<ReplayedEffect>, Violation> {
    let mut replay = Replay::new(system, log);
    let until = replay.log.until;
    while let Some(at) = replay.next_instant().filter(|at| *at <= until) {
        if let Some(nth) = replay.change_at(at) {
            replay.system = change(nth, replay.system);
        }
        replay.step(at)?;
    }
    Ok(replay.effects)
}

struct Replay {
    system: System,
    log: ReplayLog,
    handles: BTreeMap<JobNumber, JobId>,
    /// The running jobs, by handle. A job without an end in the log runs for ever.
    running: BTreeMap<JobId, Running>,
    effects: Vec<ReplayedEffect>,
    /// The numbers of all jobs so far, by handle.
    numbers: Vec<JobNumber>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    number: JobNumber,
    start: Time,
    admitted: u64,
    end: Option<(Time, EndHow)>,
}

impl Replay {
    /// Returns the replay of a log over queues that may have jobs already.
    fn new(system: System, log: ReplayLog) -> Replay {
        let jobs = system.queues().iter().flat_map(|queue| {
            let ledger = queue.ledger();
            let jobs = ledger.waiting().chain(ledger.running()).chain(ledger.suspended());
            jobs.map(|job| (job, ledger.entry(job).clone()))
        });
        let jobs: Vec<_> = jobs.collect();
        let mut replay = Replay {
            system,
            log,
            handles: BTreeMap::new(),
            running: BTreeMap::new(),
            effects: vec![],
            numbers: vec![],
        };
        for (job, entry) in jobs {
            replay.take_over(job, &entry);
        }
        replay
    }

    /// Takes over a job that is in the system before the first event of the log.
    fn take_over(&mut self, job: JobId, entry: &Entry) {
        let number = entry.request.number;
        self.numbers.resize(self.numbers.len().max(job.index() + 1), 0);
        self.numbers[job.index()] = number;
        self.handles.insert(number, job);
        if let State::Running { start, .. } | State::Suspended { start, .. } = entry.state {
            self.run(job, number, start, entry.admitted);
        }
    }

    /// Records a start, with the end that the log has for it.
    fn run(&mut self, job: JobId, number: JobNumber, start: Time, admitted: u64) {
        let ran = self.log.runs.get_mut(&number).and_then(VecDeque::pop_front);
        let end = ran.map(|ran| (start + ran.runtime, ran.how));
        self.running.insert(job, Running { number, start, admitted, end });
    }

    fn next_instant(&self) -> Option<Time> {
        let outside = self.log.events.front();
        let ends = self.running.values().filter_map(|running| running.end.map(|(at, _)| at));
        let overdue = self.running.keys().filter_map(|job| self.expected(*job));
        let due = ends.chain(overdue).chain(self.system.wake()).min();
        let at = outside.map(|outside| outside.at);
        let away = outside.and_then(|outside| outside.away_since);
        // An event that was due without a daemon waits for the next one.
        if due.zip(away).is_some_and(|(due, since)| due > since) {
            at
        } else {
            due.into_iter().chain(at).min()
        }
    }

    /// Returns the change of the queues that comes first at that instant.
    fn change_at(&self, at: Time) -> Option<usize> {
        self.log.events.front().filter(|outside| outside.at <= at)?.change
    }

    /// Returns the expected end of a running job; `None` if it is overdue.
    fn expected(&self, job: JobId) -> Option<Time> {
        match self.system.ledger_of(job)?.entry(job).state {
            State::Running { expected: Expected::At(end), .. } => Some(end),
            _ => None,
        }
    }

    fn step(&mut self, at: Time) -> Result<(), Violation> {
        let mut round = Round::default();
        let mut gone: Vec<(Running, JobId, EndHow)> = self
            .running
            .iter()
            .filter_map(|(job, running)| Some((*running, *job, running.end.filter(|(end, _)| *end <= at)?.1)))
            .collect();
        gone.sort_by_key(|(running, ..)| (running.start, running.admitted));
        let overdue = self.running.keys().filter(|job| self.expected(**job).is_some_and(|end| end <= at));
        round.overdue =
            overdue.filter(|job| gone.iter().all(|(_, other, _)| other != *job)).copied().collect();
        round.overdue.sort_by_key(|job| self.running[job].number);
        for (running, job, how) in gone {
            round.ended.push(Ended { job, how });
            self.running.remove(&job);
            self.handles.remove(&running.number);
        }
        if self.log.events.front().is_some_and(|outside| outside.at <= at)
            && let Some(external) = self.log.events.pop_front()
        {
            self.add_external(external, &mut round);
        }
        for job in &round.withdrawn {
            // A job with the same number may have been submitted in the same round.
            let number = self.numbers[job.index()];
            if self.handles.get(&number) == Some(job) {
                self.handles.remove(&number);
            }
        }
        let mut effects = vec![];
        self.system.round(at, &mut round, &mut effects)?;
        for effect in effects {
            let number = self.numbers[effect.job().index()];
            self.effects.push(ReplayedEffect { at, job: number, effect });
            self.apply(at, number, effect);
        }
        Ok(())
    }

    fn add_external(&mut self, external: ExternalEvents, round: &mut Round) {
        round.fault = external.fault;
        for (number, how) in external.ended {
            let job = self.handles.get(&number).copied().filter(|job| self.is_opportunistic(*job));
            round.ended.extend(job.map(|job| Ended { job, how }));
            self.handles.retain(|_, other| Some(*other) != job);
        }
        // Under another policy the job may run by now. The schedules differ before this event then.
        let waits = |job: &JobId| {
            self.system.ledger_of(*job).is_some_and(|ledger| ledger.entry(*job).state == State::Waiting)
        };
        let withdrawn = external.withdrawn.iter().filter_map(|number| self.handles.get(number).copied());
        round.withdrawn = withdrawn.filter(waits).collect();
        let amendment = |(number, change): &(JobNumber, Change)| {
            let job = *self.handles.get(number)?;
            let applies = !matches!(change, Change::Request { .. }) || waits(&job);
            applies.then(|| Amendment { job, change: change.clone() })
        };
        round.amended = external.amended.iter().filter_map(amendment).collect();
        for request in external.submitted {
            let job = JobId(u32::try_from(self.numbers.len()).unwrap_or(u32::MAX));
            self.numbers.push(request.number);
            self.handles.insert(request.number, job);
            round.submitted.push(Submission { job, request });
        }
    }

    fn is_opportunistic(&self, job: JobId) -> bool {
        self.system.ledger_of(job).is_some_and(|ledger| !ledger.entry(job).opportunistic.procs.is_zero())
    }

    fn apply(&mut self, at: Time, number: JobNumber, effect: Effect) {
        let job = effect.job();
        match effect {
            Effect::Started { .. } => {
                let admitted = self.system.ledger_of(job).map_or(0, |ledger| ledger.entry(job).admitted);
                self.run(job, number, at, admitted);
            }
            Effect::Requeued { .. } => {
                self.running.remove(&job);
            }
            Effect::Refused { .. } => {
                self.handles.remove(&number);
            }
            _ => {}
        }
    }
}
