//! A job in the system: where it stands, how far it is, what it was promised, what is to be remembered of it.

use crate::{Broken, HostId, Placement, Request, Span, Time};

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
    /// Off its processors, with all else that it held.
    Suspended {
        /// When it started.
        start: Time,
        /// When it is meant to run on.
        until: Time,
        /// The admission number of the job that it makes room for.
        by: u64,
        /// What it held, and will hold again when it is resumed; now all of it but the processors.
        placement: Placement,
    },
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
        }
    }

    /// The work that the job has done by `now`, processor-ticks. Work that was lost does not count.
    pub fn done(&self, now: Time) -> u128 {
        self.progress.by(now)
    }

    /// The work that its estimate allows it, processor-ticks: seconds at full speed on the processors asked for.
    pub fn allowed(&self) -> u128 {
        work(self.request.planned(), self.request.procs())
    }

    /// How long the estimate allows the job to run on from `now` with so many processors; a tick at least.
    pub fn left(&self, now: Time, procs: u64) -> Span {
        span(self.allowed().saturating_sub(self.done(now)), procs).max(Span::TICK)
    }

    /// How many of its processors work for it at this moment.
    pub fn working(&self) -> u64 {
        self.progress.procs
    }

    /// Whether it does not run, and has not since before `now`.
    pub(crate) fn stopped_before(&self, now: Time) -> bool {
        !matches!(self.state, State::Running { .. }) && self.progress.at < now
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

    /// Goes on with so many processors.
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
