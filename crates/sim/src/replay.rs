//! Playing a past again: what a daemon wrote down, under virtual time.
//!
//! The past says what came from outside: submissions, withdrawals, amended requests, faults, and how long each start ran. When a
//! job started, what it was promised and in which order things happened is not taken from it, but comes from the same policies
//! again; if they are what was run, it comes out the same.

use std::collections::{BTreeMap, VecDeque};

use miserly_core::{
    Amendment, Change, Effect, EndHow, Ended, Expected, Fault, JobId, JobNumber, Request, Round, Span, State,
    Submission, System, Time, Violation,
};

/// What came from outside at one instant.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    /// When.
    pub at: Time,
    /// The queues changed before anything else happened: the how-manieth change, from 0.
    pub change: Option<usize>,
    /// Nobody scheduled between then and this instant.
    pub away_since: Option<Time>,
    /// Jobs that ended ahead of their windows, on what was idle.
    pub ended: Vec<(JobNumber, EndHow)>,
    /// Jobs that were taken back.
    pub withdrawn: Vec<JobNumber>,
    /// Requests that were changed.
    pub amended: Vec<(JobNumber, Change)>,
    /// What became of the machine.
    pub fault: Option<Fault>,
    /// Jobs that were submitted.
    pub submitted: Vec<Request>,
}

/// How one start of a job went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// For how long it ran.
    pub runtime: Span,
    /// How it ended.
    pub how: EndHow,
}

/// All that came from outside.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// By instant; a round each.
    pub outside: VecDeque<Outside>,
    /// When it ends: nothing is known of what came later.
    pub until: Time,
    /// How the starts of each job went, in order.
    pub runs: BTreeMap<JobNumber, VecDeque<Ran>>,
}

/// An effect of the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// When.
    pub at: Time,
    /// For which job.
    pub job: JobNumber,
    /// What.
    pub effect: Effect,
}

/// Plays a past again.
///
/// # Example
/// ```
/// use miserly_core::{Driver, EndHow, Instants, Ledger, Machine, Request, Resources, Span, System, Time};
/// use miserly_policies::Chosen;
/// use miserly_sim::{Outside, Past, Ran, replay};
///
/// let machine = Machine::plain(4);
/// let policy = "easy".parse::<Chosen>()?.build(&machine, 0)?;
/// let system = System::new(vec![Driver::new(Ledger::new(machine), policy, Instants::Batch)]);
/// let request = Request::new(1, Time::ZERO, Span::from_ticks(9), Resources::cpus(4));
/// let mut past = Past { until: Time::from_ticks(5), ..Past::default() };
/// past.outside.push_back(Outside { submitted: vec![request], ..Outside::default() });
/// past.runs.entry(1).or_default().push_back(Ran { runtime: Span::from_ticks(5), how: EndHow::Done });
/// assert_eq!(replay(system, past)?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If a policy makes a mistake.
pub fn replay(system: System, past: Past) -> Result<Vec<Came>, Violation> {
    replay_over(system, past, &mut |_, system| system)
}

/// The same, where the queues changed on the way: `change` puts the queues after a change in the place of those before, with the jobs
/// that are in them ([`Outside::change`]).
///
/// # Errors
/// As [`replay`].
pub fn replay_over(
    system: System,
    past: Past,
    change: &mut dyn FnMut(usize, System) -> System,
) -> Result<Vec<Came>, Violation> {
    let mut replay = Replay {
        system,
        past,
        handles: BTreeMap::new(),
        running: BTreeMap::new(),
        came: vec![],
        numbers: vec![],
    };
    let until = replay.past.until;
    while let Some(at) = replay.next_instant().filter(|at| *at <= until) {
        if let Some(nth) = replay.change_at(at) {
            replay.system = change(nth, replay.system);
        }
        replay.step(at)?;
    }
    Ok(replay.came)
}

struct Replay {
    system: System,
    past: Past,
    handles: BTreeMap<JobNumber, JobId>,
    /// The jobs that run, by handle: when each ends, how, and the rank of its start; a job without an end in the past runs for ever.
    running: BTreeMap<JobId, Running>,
    came: Vec<Came>,
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
    fn next_instant(&self) -> Option<Time> {
        let outside = self.past.outside.front();
        let ends = self.running.values().filter_map(|running| running.end.map(|(at, _)| at));
        let overdue = self.running.keys().filter_map(|job| self.expected(*job));
        let due = ends.chain(overdue).chain(self.system.wake()).min();
        let at = outside.map(|outside| outside.at);
        let away = outside.and_then(|outside| outside.away_since);
        // What came due while nobody scheduled waited until somebody did.
        if due.zip(away).is_some_and(|(due, since)| due > since) {
            at
        } else {
            due.into_iter().chain(at).min()
        }
    }

    /// Which change of the queues comes first at that instant, if there is one.
    fn change_at(&self, at: Time) -> Option<usize> {
        self.past.outside.front().filter(|outside| outside.at <= at)?.change
    }

    /// When a running job is expected to end, unless that is past.
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
        if self.past.outside.front().is_some_and(|outside| outside.at <= at)
            && let Some(outside) = self.past.outside.pop_front()
        {
            self.take_in(outside, &mut round);
        }
        for job in &round.withdrawn {
            // Unless it has come back in the same round, by another handle.
            let number = self.numbers[job.index()];
            if self.handles.get(&number) == Some(job) {
                self.handles.remove(&number);
            }
        }
        let mut effects = vec![];
        self.system.round(at, &mut round, &mut effects)?;
        for effect in effects {
            let number = self.numbers[effect.job().index()];
            self.came.push(Came { at, job: number, effect });
            self.follow(at, number, effect);
        }
        Ok(())
    }

    fn take_in(&mut self, outside: Outside, round: &mut Round) {
        round.fault = outside.fault;
        for (number, how) in outside.ended {
            let job = self.handles.get(&number).copied().filter(|job| self.runs_early(*job));
            round.ended.extend(job.map(|job| Ended { job, how }));
            self.handles.retain(|_, other| Some(*other) != job);
        }
        // Under another policy the job may have started by now: then the past does not fit, and the difference was before.
        let waits = |job: &JobId| {
            self.system.ledger_of(*job).is_some_and(|ledger| ledger.entry(*job).state == State::Waiting)
        };
        let withdrawn = outside.withdrawn.iter().filter_map(|number| self.handles.get(number).copied());
        round.withdrawn = withdrawn.filter(waits).collect();
        let amendment = |(number, change): &(JobNumber, Change)| {
            Some(Amendment { job: *self.handles.get(number)?, change: *change })
        };
        round.amended = outside.amended.iter().filter_map(amendment).collect();
        for request in outside.submitted {
            let job = JobId(u32::try_from(self.numbers.len()).unwrap_or(u32::MAX));
            self.numbers.push(request.number);
            self.handles.insert(request.number, job);
            round.submitted.push(Submission { job, request });
        }
    }

    fn runs_early(&self, job: JobId) -> bool {
        self.system.ledger_of(job).is_some_and(|ledger| !ledger.entry(job).filling.procs.is_zero())
    }

    fn follow(&mut self, at: Time, number: JobNumber, effect: Effect) {
        let job = effect.job();
        match effect {
            Effect::Started { .. } => {
                let ran = self.past.runs.get_mut(&number).and_then(VecDeque::pop_front);
                let end = ran.map(|ran| (at + ran.runtime, ran.how));
                let admitted = self.system.ledger_of(job).map_or(0, |ledger| ledger.entry(job).admitted);
                self.running.insert(job, Running { number, start: at, admitted, end });
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
