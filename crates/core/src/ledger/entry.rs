//! A job in the system: its state, its progress, its promise and the stored policy state.

use super::{Progress, work};
use crate::violation::Rule;
use crate::{
    BreachCause, JobNumber, Placement, PolicyState, Prediction, Procs, Request, Resources, SlotId, Span, Time,
};

/// The instant at which a running job is expected to end, from the information of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The end of the work that its planned span allows, or the end of its quantum, if that is
    /// earlier.
    At(Time),
    /// Its planned span is over and it still runs. At every instant, a plan holds its resources until
    /// the next tick.
    Overdue {
        /// The instant at which it should have ended.
        since: Time,
    },
}

impl Expected {
    /// Sets the end that its planned span allows now. A job that has been overdue since then or later still is.
    pub(super) fn set(&mut self, end: Time) {
        if !matches!(*self, Expected::Overdue { since } if since >= end) {
            *self = Expected::At(end);
        }
    }
}

/// The state of a job. Each variant has the data of that state only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// In the queue.
    Waiting,
    /// On the machine.
    Running {
        /// The start. After a requeue, the latest start.
        start: Time,
        /// The beginning of the current uninterrupted run.
        since: Time,
        /// The expected end.
        expected: Expected,
        /// The resources that it holds.
        placement: Placement,
        /// Whether its end at this instant is certain. Its resources then count as free.
        released: bool,
        /// The end of its quantum, if it runs for a quantum.
        quantum: Option<Time>,
    },
    /// Off its processors, or about to leave them during a swap-out.
    Suspended {
        /// The start.
        start: Time,
        /// The intended instant of its resumption.
        until: Time,
        /// The admission number of the job that gets its processors.
        by: u64,
        /// The resources that it held. It holds them again when it is resumed in place.
        placement: Placement,
        /// The part of them that it holds now.
        holds: Holds,
    },
}

/// The part of its resources that a suspended job holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// All of them, with the processors, while its memory is being swapped out.
    All {
        /// The end of the swap-out.
        until: Time,
    },
    /// All of them except the processors.
    AllButCpus,
    /// None: its memory was swapped out.
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

    /// Returns the part that it needs for its resumption.
    pub(super) const fn missing(self) -> Part {
        match self {
            Holds::All { .. } => Part::Nothing,
            Holds::AllButCpus => Part::Cpus,
            Holds::Nothing => Part::All,
        }
    }
}

/// A part of the resources of a placement on each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    Cpus,
    AllButCpus,
    Nothing,
}

impl Part {
    pub(super) fn select(self, amount: Resources) -> Resources {
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

    /// Returns whether a job that holds this part holds its devices.
    pub(super) const fn has_devices(self) -> bool {
        matches!(self, Part::All | Part::AllButCpus)
    }

    pub(super) const fn has_cpus(self) -> bool {
        matches!(self, Part::All | Part::Cpus)
    }
}

/// A promise: a latest start given to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The first value of the promise.
    pub first: Time,
    /// The earliest value so far. It is later than `first` only if the promise was broken.
    pub best: Time,
    /// The breach cause, if the promise was broken.
    pub breach: Option<BreachCause>,
}

/// A job that is in the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The request of the user.
    pub request: Request,
    /// Its admission number: the last tie-break, and the order of
    /// [`Ledger::waiting`](crate::Ledger::waiting).
    pub admitted: u64,
    /// Its state.
    pub state: State,
    /// The prediction of its runtime, if its policy makes one.
    pub prediction: Option<Prediction>,
    /// Its promise, if any.
    pub promise: Option<Promise>,
    /// The start that the policy last intended, if any. It is a plan and not binding.
    pub planned: Option<Time>,
    /// The placement of that plan, if the policy gave one.
    pub planned_on: Option<Placement>,
    /// The rank of the last decision on its start, by promise or by plan. A later decision has a
    /// higher rank.
    pub decided: u64,
    /// Its alternate slots, on the same processors as its own slot, ascending. Empty where
    /// processors are not sliced.
    pub alternate_slots: Vec<SlotId>,
    /// The state that policies store for it.
    pub policy_state: PolicyState,
    /// Its progress.
    pub progress: Progress,
    /// Its opportunistic progress, ahead of its start on idle resources, and its current
    /// opportunistic processors.
    ///
    /// This work does not shorten its window: it is not counted in [`left`](Entry::left).
    pub opportunistic: Progress,
}

impl Entry {
    /// Returns whether its promised start was before `now`, and the promise is not broken yet. Only a waiting job misses one.
    pub fn has_missed_promise(&self, now: Time) -> bool {
        self.promise.is_some_and(|promise| promise.breach.is_none() && promise.best < now)
    }

    /// Returns a job that was just submitted.
    pub fn waiting(request: Request, admitted: u64) -> Entry {
        Entry {
            request,
            admitted,
            state: State::Waiting,
            prediction: None,
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

    /// Returns the work that the job has done by `now`, in processor-ticks. Lost work does not
    /// count.
    pub fn done(&self, now: Time) -> u128 {
        self.progress.done_by(now)
    }

    /// Returns the opportunistic work that it has done by `now`, ahead of its start, in
    /// processor-ticks.
    pub fn opportunistic_work(&self, now: Time) -> u128 {
        self.opportunistic.done_by(now)
    }

    /// Returns the span for which a plan holds its resources: that of the prediction, or else the
    /// estimate. It is at least one tick.
    pub fn planned_span(&self) -> Span {
        match self.prediction {
            Some(prediction) => prediction.planned.max(Span::TICK),
            None => self.request.planned(),
        }
    }

    /// Returns the runtime by which orders rank the job: the predicted one, or else the estimate.
    pub fn likely_runtime(&self) -> Span {
        self.prediction.map_or(self.request.estimate, |prediction| prediction.runtime)
    }

    /// Returns the work that its estimate allows, in processor-ticks: the estimate at full speed on
    /// the requested processors.
    pub fn allowed(&self) -> u128 {
        work(self.request.planned(), self.request.procs())
    }

    /// Returns the span that the estimate still allows from `now` on `procs` processors, at the
    /// present pace. It is at least one tick.
    ///
    /// The remaining time of a swap-in is added.
    pub fn left(&self, now: Time, procs: Procs) -> Span {
        self.reading(now) + self.progress.left(now, self.allowed(), procs).max(Span::TICK)
    }

    /// Returns the span until its expected end, as [`left`](Entry::left) does for its estimate.
    pub fn planned_left(&self, now: Time, procs: Procs) -> Span {
        let planned = work(self.planned_span(), self.request.procs());
        self.reading(now) + self.progress.left(now, planned, procs).max(Span::TICK)
    }

    /// Returns the span from `now` until the job has done `work` in total, at its present speed.
    /// Work in its window and ahead of it counts.
    pub fn time_to(&self, now: Time, work: u128) -> Span {
        let rest = work.saturating_sub(self.opportunistic_work(now));
        self.reading(now) + self.progress.left(now, rest, self.progress.procs + self.opportunistic.procs)
    }

    /// Returns the remaining time of the swap-in.
    pub fn reading(&self, now: Time) -> Span {
        (self.progress.at - now).max(Span::ZERO)
    }

    /// Asserts that only a permitted job runs ahead of its start.
    pub(super) fn check_opportunistic(&self, number: JobNumber) {
        let may = self.state == State::Waiting
            && self.promise.is_some()
            && !self.request.constraints.in_window_only;
        assert!(self.opportunistic.procs.is_zero() || may, "job {number} may not run ahead of its start");
        assert!(
            self.opportunistic.procs <= self.request.procs(),
            "job {number} runs on more processors than requested"
        );
    }

    /// Returns the number of its processors that work for it now.
    pub fn working(&self) -> Procs {
        self.progress.procs
    }

    /// Returns whether it waits and runs ahead of its start, or did so until now.
    pub(crate) fn is_opportunistic(&self, now: Time) -> bool {
        let lately = self.opportunistic.done > 0 && self.opportunistic.at == now;
        self.state == State::Waiting && (!self.opportunistic.procs.is_zero() || lately)
    }

    /// Returns whether it does not run, and stopped before `now`.
    pub(crate) fn stopped_before(&self, now: Time) -> bool {
        !matches!(self.state, State::Running { .. }) && self.progress.at < now && !self.is_opportunistic(now)
    }

    /// Returns the placement that it holds, or would hold if it were resumed.
    pub fn placement(&self) -> Option<&Placement> {
        match &self.state {
            State::Waiting => None,
            State::Running { placement, .. } | State::Suspended { placement, .. } => Some(placement),
        }
    }

    /// Returns whether the job waits and has never run, not even ahead of its start.
    pub fn is_untouched(&self) -> bool {
        let ran = !self.opportunistic.procs.is_zero() || self.opportunistic.done > 0;
        self.state == State::Waiting && !ran
    }

    /// Replaces the request of a job that waits and has not run.
    ///
    /// # Errors
    /// [`Rule::NotWaiting`] for any other job.
    pub(super) fn replace_request(&mut self, request: Request, keeps_promise: bool) -> Result<(), Rule> {
        if !self.is_untouched() {
            return Err(Rule::NotWaiting);
        }
        // A place of another amount or form cannot be taken. The policy finds one for the promise.
        let amounts = |request: &Request| (request.demand, request.devices, request.form);
        let keeps_place = amounts(&request) == amounts(&self.request);
        self.request = request;
        if !keeps_promise {
            self.promise = None;
        }
        if !(keeps_promise && keeps_place) {
            (self.planned, self.planned_on) = (None, None);
        }
        Ok(())
    }
}
