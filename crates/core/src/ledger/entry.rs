//! A job in the system: where it stands, how far it is, what it was promised, what is to be remembered of it.

use crate::{Broken, HostId, JobNumber, Placement, Request, Resources, Span, Time};

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

    pub(super) const fn has_cpus(self) -> bool {
        matches!(self, Part::All | Part::Cpus)
    }
}

/// Values that a policy added up: what it has to remember of jobs that are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
}

/// A latest start that the user was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// As it was first told.
    pub told: Time,
    /// The best so far; later than `told` only if the promise was broken.
    pub best: Time,
    /// Why it could not be kept, if so.
    pub broken: Option<Broken>,
}

/// What a policy has to remember of a job and cannot derive from anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memo {
    /// It has had its quantum of immediate service.
    pub served: bool,
    /// It has a scheduled start, and stays at the head of the queue until it starts (Chiang and Vernon §2.3).
    pub held: bool,
    /// How many jobs that sort behind it started before it (Chiang and Vernon, Table 3).
    pub bypassed: u32,
    /// The host that is kept for it: a special reservation (Chiang and Vernon §2.1). Forgotten when it starts.
    pub pledged: Option<HostId>,
    /// The work that it is to catch up, processor-ticks (Chiang and Vernon §2.5).
    pub owed: u128,
    /// As of when that is counted.
    pub owed_at: Option<Time>,
}

/// The work that a job has done, exactly: processors x ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Processor-ticks done by `at`.
    pub done: u128,
    /// As of when.
    pub at: Time,
    /// The processors that work on since then.
    pub procs: u64,
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
    /// What the policy remembers of it.
    pub memo: Memo,
    /// How far it is.
    pub progress: Progress,
    /// What it has done ahead of its start, on what was idle, and on how many processors it does so now. That costs its window
    /// nothing: it is not counted in [`left`](Entry::left).
    pub filling: Progress,
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
            memo: Memo::default(),
            progress: Progress::default(),
            filling: Progress::default(),
        }
    }

    /// The work that the job has done by `now`, processor-ticks. Work that was lost does not count.
    pub fn done(&self, now: Time) -> u128 {
        self.progress.by(now)
    }

    /// The work that it has done by `now` ahead of its start, on what was idle, processor-ticks.
    pub fn filled(&self, now: Time) -> u128 {
        self.filling.by(now)
    }

    /// The work that its estimate allows it, processor-ticks: seconds at full speed on the processors asked for.
    pub fn allowed(&self) -> u128 {
        work(self.request.planned(), self.request.procs())
    }

    /// How long the estimate allows the job to run on from `now` with so many processors; a tick at least. One that is being
    /// read back only begins to run.
    pub fn left(&self, now: Time, procs: u64) -> Span {
        let work = span(self.allowed().saturating_sub(self.done(now)), procs).max(Span::TICK);
        self.reading(now) + work
    }

    /// How long it is still read back before it runs on.
    pub fn reading(&self, now: Time) -> Span {
        (self.progress.at - now).max(Span::ZERO)
    }

    /// That only a job that may does run ahead of its start.
    pub(super) fn check_filling(&self, number: JobNumber) {
        let may =
            self.state == State::Waiting && self.promise.is_some() && !self.request.terms.in_window_only;
        assert!(self.filling.procs == 0 || may, "job {number} may not run ahead of its start");
        assert!(self.filling.procs <= self.request.procs(), "job {number} runs on more than it asked for");
    }

    /// How many of its processors work for it at this moment.
    pub fn working(&self) -> u64 {
        self.progress.procs
    }

    /// Whether it waits and runs ahead of its start, or did so until now.
    pub(crate) fn fills(&self, now: Time) -> bool {
        let lately = self.filling.done > 0 && self.filling.at == now;
        self.state == State::Waiting && (self.filling.procs > 0 || lately)
    }

    /// Whether it does not run, and has not since before `now`.
    pub(crate) fn stopped_before(&self, now: Time) -> bool {
        !matches!(self.state, State::Running { .. }) && self.progress.at < now && !self.fills(now)
    }

    /// What it holds, or would hold if it were resumed.
    pub fn placement(&self) -> Option<&Placement> {
        match &self.state {
            State::Waiting => None,
            State::Running { placement, .. } | State::Suspended { placement, .. } => Some(placement),
        }
    }
}

impl Progress {
    fn by(&self, now: Time) -> u128 {
        let since = (now - self.at).max(Span::ZERO);
        self.done + work(since, self.procs)
    }

    /// Goes on with so many processors, from then on if that is later than what was done.
    pub(super) fn go_on(&mut self, now: Time, procs: u64) {
        *self = Progress { done: self.by(now), at: now, procs };
    }

    /// All that was done is lost; returns how much.
    pub(super) fn lose(&mut self) -> u128 {
        std::mem::take(&mut self.done)
    }
}

/// So much is done in this time, processor-ticks.
pub const fn work(span: Span, procs: u64) -> u128 {
    span.ticks().unsigned_abs() as u128 * procs as u128
}

/// In this time so many processors do the work, to the tick at which it is done; for ever, if there is none.
pub fn span(work: u128, procs: u64) -> Span {
    let ticks = work.checked_div(u128::from(procs)).map(|_| work.div_ceil(u128::from(procs)));
    ticks.and_then(|ticks| i64::try_from(ticks).ok()).map_or(Span::MAX, Span::from_ticks)
}
