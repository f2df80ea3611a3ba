//! A job in the system: where it stands, how far it is, what it was promised, what is to be remembered of it.

use super::{Progress, work};
use crate::{BreachCause, JobNumber, Placement, PolicyState, Procs, Request, Resources, SlotId, Span, Time};

/// When a running job will be gone, as far as anybody may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// When the work that its estimate allows will be done; or when its quantum ends, if that is before.
    At(Time),
    /// Its estimate is over and it runs on. A plan holds its resources until the next tick, whenever now is.
    Overdue {
        /// When it should have ended.
        since: Time,
    },
}

/// Where a job stands; each state holds what only that state has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// In the queue.
    Waiting,
    /// On the machine.
    Running {
        /// When it started; if it was requeued, the last time.
        start: Time,
        /// Since when it has run without interruption.
        since: Time,
        /// When it will be gone.
        expected: Expected,
        /// What it holds.
        placement: Placement,
        /// Its end at this very instant is certain, so others may count on its resources already.
        released: bool,
        /// It was lent its resources until then only.
        quantum: Option<Time>,
    },
    /// Off its processors; or about to leave them, if it is being written out.
    Suspended {
        /// When it started.
        start: Time,
        /// When it is meant to run on.
        until: Time,
        /// The admission number of the job that it makes room for.
        by: u64,
        /// What it held, and will hold again when it is resumed where it was.
        placement: Placement,
        /// What of that it holds now.
        holds: Holds,
    },
}

/// What a suspended job holds of what it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// All of it, its processors too: until then its memory is being written out.
    All {
        /// When that is done.
        until: Time,
    },
    /// All of it but its processors.
    AllButCpus,
    /// Nothing: its memory was written out.
    Nothing,
}

impl Holds {
    pub(super) const fn part(self) -> Part {
        match self {
            Holds::All { .. } => Part::All,
            Holds::AllButCpus => Part::AllButCpus,
            Holds::Nothing => Part::Nothing,
        }
    }

    /// What it needs to run on.
    pub(super) const fn missing(self) -> Part {
        match self {
            Holds::All { .. } => Part::Nothing,
            Holds::AllButCpus => Part::Cpus,
            Holds::Nothing => Part::All,
        }
    }
}

/// A part of what a placement has of each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    Cpus,
    AllButCpus,
    Nothing,
}

impl Part {
    pub(super) fn of(self, amount: Resources) -> Resources {
        match self {
            Part::All => amount,
            Part::Cpus => Resources::cpus(amount.cpus_count()),
            Part::AllButCpus => amount.without_cpus(),
            Part::Nothing => Resources::NONE,
        }
    }

    pub(super) const fn without_cpus(self) -> Part {
        match self {
            Part::All | Part::AllButCpus => Part::AllButCpus,
            Part::Cpus | Part::Nothing => Part::Nothing,
        }
    }

    pub(super) const fn has_cpus(self) -> bool {
        matches!(self, Part::All | Part::Cpus)
    }
}

/// A latest start that the user was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// As it was first told.
    pub first: Time,
    /// The best so far; later than `told` only if the promise was broken.
    pub best: Time,
    /// Why it could not be kept, if so.
    pub breach: Option<BreachCause>,
}

/// A job that is in the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What its user asked for.
    pub request: Request,
    /// Its rank by admission: the last tie-break, and the order of [`Ledger::waiting`](crate::Ledger::waiting).
    pub admitted: u64,
    /// Where it stands.
    pub state: State,
    /// What it was promised, if anything.
    pub promise: Option<Promise>,
    /// When the policy last said that it means to start it, if it did: a plan, which binds nobody.
    pub planned: Option<Time>,
    /// Where it means to start it, if it said that too.
    pub planned_on: Option<Placement>,
    /// The rank of the last decision on its start, by promise or by plan: a later decision has a higher rank.
    pub decided: u64,
    /// The rows besides its own in which it runs on the same processors; ascending. Empty where processors are not sliced.
    pub alternate_slots: Vec<SlotId>,
    /// The state that policies keep of it.
    pub policy_state: PolicyState,
    /// How far it is.
    pub progress: Progress,
    /// What it has done ahead of its start, on what was idle, and on how many processors it does so now. That costs its window
    /// nothing: it is not counted in [`left`](Entry::left).
    pub opportunistic: Progress,
}

impl Entry {
    /// A job that has just come.
    pub fn waiting(request: Request, admitted: u64) -> Entry {
        Entry {
            request,
            admitted,
            state: State::Waiting,
            promise: None,
            planned: None,
            planned_on: None,
            decided: 0,
            alternate_slots: vec![],
            policy_state: PolicyState::EMPTY,
            progress: Progress::default(),
            opportunistic: Progress::default(),
        }
    }

    /// The work that the job has done by `now`, processor-ticks. Work that was lost does not count.
    pub fn done(&self, now: Time) -> u128 {
        self.progress.by(now)
    }

    /// The work that it has done by `now` ahead of its start, on what was idle, processor-ticks.
    pub fn opportunistic_work(&self, now: Time) -> u128 {
        self.opportunistic.by(now)
    }

    /// The work that its estimate allows it, processor-ticks: seconds at full speed on the processors asked for.
    pub fn allowed(&self) -> u128 {
        work(self.request.planned(), self.request.procs())
    }

    /// How long the estimate allows the job to run on from `now` with so many processors, at its present pace; a tick at least.
    /// One that is being read back only begins to run.
    pub fn left(&self, now: Time, procs: Procs) -> Span {
        self.reading(now) + self.progress.left(now, self.allowed(), procs).max(Span::TICK)
    }

    /// How long it takes from `now`, as it runs at present, until it has done so much in all, in its window and ahead of it.
    pub fn time_to(&self, now: Time, work: u128) -> Span {
        let rest = work.saturating_sub(self.opportunistic_work(now));
        self.reading(now) + self.progress.left(now, rest, self.progress.procs + self.opportunistic.procs)
    }

    /// How long it is still read back before it runs on.
    pub fn reading(&self, now: Time) -> Span {
        (self.progress.at - now).max(Span::ZERO)
    }

    /// That only a job that may does run ahead of its start.
    pub(super) fn check_opportunistic(&self, number: JobNumber) {
        let may = self.state == State::Waiting
            && self.promise.is_some()
            && !self.request.constraints.in_window_only;
        assert!(self.opportunistic.procs.is_zero() || may, "job {number} may not run ahead of its start");
        assert!(
            self.opportunistic.procs <= self.request.procs(),
            "job {number} runs on more than it asked for"
        );
    }

    /// How many of its processors work for it at this moment.
    pub fn working(&self) -> Procs {
        self.progress.procs
    }

    /// Whether it waits and runs ahead of its start, or did so until now.
    pub(crate) fn is_opportunistic(&self, now: Time) -> bool {
        let lately = self.opportunistic.done > 0 && self.opportunistic.at == now;
        self.state == State::Waiting && (!self.opportunistic.procs.is_zero() || lately)
    }

    /// Whether it does not run, and has not since before `now`.
    pub(crate) fn stopped_before(&self, now: Time) -> bool {
        !matches!(self.state, State::Running { .. }) && self.progress.at < now && !self.is_opportunistic(now)
    }

    /// What it holds, or would hold if it were resumed.
    pub fn placement(&self) -> Option<&Placement> {
        match &self.state {
            State::Waiting => None,
            State::Running { placement, .. } | State::Suspended { placement, .. } => Some(placement),
        }
    }
}
