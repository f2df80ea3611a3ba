//! The driver: passes events to a policy and applies the decisions of the policy.

use crate::devices::CellId;
use crate::violation::{Culprit, Rule, Violation};
use crate::{
    Amendment, BreachCause, Context, Effect, Ended, Event, Expected, Fault, HostId, JobId, Ledger, Policy,
    Resources, Round, State, Time,
};

crate::named_enum! {
    /// The order in which the events of one instant reach the policy.
    #[derive(Default)]
    pub enum EventOrder {
        /// Terminations, overdue jobs, submissions by job number, timers; then exactly one pass.
        #[default]
        Batched "batched",
        /// One event at a time, each followed by its own pass.
        ///
        /// The order is submissions by job number, terminations in the order of the starts, then
        /// timers. A job that is expected to end now and does end now counts as gone for all of them. A
        /// job that does not end becomes overdue before any other event. This is the convention of pyss
        /// and of the simulators that descend from it.
        Sequential "sequential",
    }
}

/// The instant of a driver before its first round.
const BEFORE_ALL: Time = Time::from_ticks(i64::MIN);

/// A policy over a ledger, driven one round of events at a time, under any clock.
pub struct Driver {
    ledger: Ledger,
    policy: Box<dyn Policy>,
    event_order: EventOrder,
    wake: Option<Time>,
    last: Time,
    /// Rounds since the last check of the ledger, in debug builds.
    unchecked: usize,
}

impl Driver {
    /// Returns a driver of this policy. The policy is rebuilt from the ledger first.
    pub fn new(mut ledger: Ledger, mut policy: Box<dyn Policy>, event_order: EventOrder) -> Driver {
        prepare(&mut ledger, &*policy);
        policy.rebuild(BEFORE_ALL, &ledger);
        Driver { ledger, policy, event_order, wake: None, last: BEFORE_ALL, unchecked: 0 }
    }

    /// Returns the hosts that the policy keeps idle for waiting jobs.
    pub fn kept_hosts(&self) -> Vec<HostId> {
        self.policy.kept_hosts(&self.ledger)
    }

    /// Returns the ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the name of the policy.
    pub fn policy_name(&self) -> &str {
        self.policy.name()
    }

    /// Returns the instant of the next wake-up that the policy requested, if any.
    pub fn wake(&self) -> Option<Time> {
        self.wake
    }

    /// Returns the ledger for changes to its change tracking.
    pub fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Continues a restored ledger after its round at `last`, with the wake-up that the policy
    /// requested there.
    pub fn resume(&mut self, last: Time, wake: Option<Time>) {
        self.policy.rebuild(last, &self.ledger);
        (self.last, self.wake) = (last, wake);
    }

    /// Sets the capacity of the machine before the first round over a restored ledger. The policy is rebuilt.
    ///
    /// # Errors
    /// If the machine has several hosts.
    pub fn restore_capacity(&mut self, capacity: Resources) -> Result<(), Rule> {
        self.ledger.set_capacity(capacity)?;
        self.policy.rebuild(self.last, &self.ledger);
        Ok(())
    }

    /// Sets the lost devices of a cell before the first round over a restored ledger, as [`restore_capacity`](Driver::restore_capacity).
    ///
    /// # Errors
    /// If a job holds one of them.
    pub fn restore_losses(&mut self, cell: CellId, lost: u64) -> Result<(), Rule> {
        self.ledger.lose_devices(cell, lost)?;
        self.policy.rebuild(self.last, &self.ledger);
        Ok(())
    }

    /// Replaces the policy by another one, which is rebuilt from the ledger.
    pub fn replace(&mut self, mut policy: Box<dyn Policy>) {
        prepare(&mut self.ledger, &*policy);
        policy.rebuild(self.last, &self.ledger);
        self.policy = policy;
    }

    /// Plays one round: passes all events of `now` to the policy and applies its decisions.
    ///
    /// A start of this round can bring about an end at the same instant (a runtime of 0). The event
    /// source reports such an end in a round of its own. Changes are appended to `effects`. `round`
    /// is left empty.
    ///
    /// # Errors
    /// A refused decision of the policy, or an event that contradicts the ledger. The run cannot
    /// continue.
    pub fn round(
        &mut self,
        now: Time,
        round: &mut Round,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Violation> {
        if now < self.last {
            return Err(self.source_error(now, None, Rule::TimeWentBack));
        }
        // The policy was rebuilt before its first instant was known. What a suspended job has left depends on it.
        if self.last == BEFORE_ALL && self.ledger.suspended().next().is_some() {
            self.policy.rebuild(now, &self.ledger);
        }
        self.last = now;
        let timer = self.wake.is_some_and(|wake| wake <= now);
        round.submitted.sort_by_key(|submission| submission.request.number);
        match self.event_order {
            EventOrder::Batched => self.batch(now, round, timer, effects)?,
            EventOrder::Sequential => self.sequential(now, round, timer, effects)?,
        }
        if cfg!(debug_assertions) {
            self.check_now_and_then(now);
        }
        Ok(())
    }

    /// Checks the ledger after each round while few jobs are in the system. With more jobs it
    /// checks less often, so that the cost per round stays bounded.
    fn check_now_and_then(&mut self, now: Time) {
        const FEW: usize = 64;
        let jobs = self.ledger.waiting_count() + self.ledger.running_count();
        self.unchecked += 1;
        if self.unchecked * FEW > jobs {
            self.unchecked = 0;
            self.ledger.sanity_check(now);
        }
    }

    fn batch(
        &mut self,
        now: Time,
        round: &mut Round,
        timer: bool,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Violation> {
        for ended in round.ended.drain(..) {
            self.end(now, ended)?;
        }
        // Promises that an amendment breaks after that have the same cause.
        let late = !round.overdue.is_empty();
        for job in round.overdue.drain(..) {
            self.overdue(now, job)?;
        }
        if is_disturbed(round) {
            self.disturb(now, round, late.then_some(BreachCause::Overdue))?;
        }
        for submission in round.submitted.drain(..) {
            self.submit(now, submission)?;
        }
        if timer {
            self.policy.event(now, Event::Timer, &self.ledger);
        }
        self.pass(now, effects)
    }

    /// Applies the changes from outside and rebuilds the policy.
    ///
    /// Such changes are rare, and a rebuilt policy makes the same decisions as the one before. The
    /// cost is O(jobs in the system) for each such round, in place of a rule in every policy. Only
    /// withdrawals are frequent: a policy that knows them is not rebuilt.
    fn disturb(&mut self, now: Time, round: &mut Round, late: Option<BreachCause>) -> Result<(), Violation> {
        let mut rebuild = !round.amended.is_empty() || round.fault.is_some() || late.is_some();
        for job in round.withdrawn.drain(..) {
            rebuild = rebuild || !self.policy.withdraw(now, job, &self.ledger);
            self.ledger.refuse(job).map_err(|rule| self.source_error(now, Some(job), rule))?;
        }
        let mut cause = (!round.amended.is_empty()).then_some(late.unwrap_or(BreachCause::Amended));
        for Amendment { job, change } in round.amended.drain(..) {
            self.ledger.amend(job, now, change).map_err(|rule| self.source_error(now, Some(job), rule))?;
        }
        match round.fault.take() {
            Some(Fault::Away) => cause = Some(BreachCause::Away),
            Some(Fault::Hosts) => cause = Some(BreachCause::Capacity),
            Some(Fault::Capacity { capacity, .. }) => {
                self.ledger.set_capacity(capacity).map_err(|rule| self.source_error(now, None, rule))?;
                cause = Some(BreachCause::Capacity);
            }
            Some(Fault::Devices { cell, lost, .. }) => {
                self.ledger.lose_devices(cell, lost).map_err(|rule| self.source_error(now, None, rule))?;
                cause = Some(BreachCause::Capacity);
            }
            None => {}
        }
        self.ledger.set_breach_cause(cause);
        if rebuild {
            self.policy.rebuild(now, &self.ledger);
            self.policy.event(now, Event::Rebuilt, &self.ledger);
        }
        Ok(())
    }

    fn sequential(
        &mut self,
        now: Time,
        round: &mut Round,
        timer: bool,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Violation> {
        for ended in &round.ended {
            self.release_if_due(now, ended.job)?;
        }
        let disturbed = is_disturbed(round);
        // All of them precede the pass: none of them releases its processors at this instant.
        let any_overdue = !round.overdue.is_empty();
        for job in round.overdue.drain(..) {
            self.overdue(now, job)?;
        }
        if any_overdue {
            self.pass(now, effects)?;
            self.drop_too_late(round);
        }
        if disturbed {
            self.disturb(now, round, None)?;
            self.pass(now, effects)?;
        }
        for submission in round.submitted.drain(..) {
            self.submit(now, submission)?;
            self.pass(now, effects)?;
        }
        for ended in round.ended.drain(..) {
            self.end(now, ended)?;
            self.pass(now, effects)?;
        }
        if timer {
            self.policy.event(now, Event::Timer, &self.ledger);
            self.pass(now, effects)?;
        }
        Ok(())
    }

    /// Drops the changes of jobs that a pass of this instant has started or refused.
    fn drop_too_late(&self, round: &mut Round) {
        let waits = |job: &JobId| self.ledger.get(*job).is_some_and(|entry| entry.state == State::Waiting);
        round.withdrawn.retain(waits);
        round.amended.retain(|amendment| self.ledger.get(amendment.job).is_some());
    }

    fn release_if_due(&mut self, now: Time, job: JobId) -> Result<(), Violation> {
        let entry = self.entry(now, job)?;
        match entry.state {
            State::Running { expected: Expected::At(end), .. } if end <= now => {
                self.ledger.release(job, now).map_err(|rule| self.source_error(now, Some(job), rule))
            }
            _ => Ok(()),
        }
    }

    fn submit(&mut self, now: Time, submission: crate::Submission) -> Result<(), Violation> {
        let job = submission.job;
        self.ledger.admit(job, submission.request).map_err(|rule| self.source_error(now, Some(job), rule))?;
        self.policy.event(now, Event::Submitted(job), &self.ledger);
        Ok(())
    }

    fn end(&mut self, now: Time, ended: Ended) -> Result<(), Violation> {
        // A job that left the machine at this instant may still have ended in it.
        let entry = self.entry(now, ended.job)?;
        let stopped = entry.stopped_before(now);
        if stopped && matches!(entry.state, State::Suspended { .. }) {
            return self.end_ahead(now, ended.job);
        }
        if stopped {
            return Err(self.source_error(now, Some(ended.job), Rule::NotRunning));
        }
        if self.entry(now, ended.job)?.is_opportunistic(now) {
            return self.end_ahead(now, ended.job);
        }
        self.policy.event(now, Event::Ended(ended), &self.ledger);
        self.ledger.end(ended.job, now).map_err(|rule| self.source_error(now, Some(ended.job), rule))?;
        Ok(())
    }

    /// Removes a job that ended ahead of its start or while it was suspended. Policies receive no
    /// ends of jobs that hold no processors.
    fn end_ahead(&mut self, now: Time, job: JobId) -> Result<(), Violation> {
        self.ledger.end(job, now).map_err(|rule| self.source_error(now, Some(job), rule))?;
        self.policy.rebuild(now, &self.ledger);
        self.policy.event(now, Event::Rebuilt, &self.ledger);
        Ok(())
    }

    fn overdue(&mut self, now: Time, job: JobId) -> Result<(), Violation> {
        self.ledger.overdue(job).map_err(|rule| self.source_error(now, Some(job), rule))?;
        self.policy.event(now, Event::Overdue(job), &self.ledger);
        Ok(())
    }

    fn pass(&mut self, now: Time, effects: &mut Vec<Effect>) -> Result<(), Violation> {
        let Driver { ledger, policy, .. } = self;
        let mut context = Context { now, ledger, effects, wake: None, silent: false };
        let result = policy.pass(&mut context);
        self.wake = context.wake;
        ledger.settle(now, effects);
        ledger.set_breach_cause(None);
        result.map_err(|violation| Violation { policy: self.policy.name().into(), ..violation })
    }

    fn entry(&self, now: Time, job: JobId) -> Result<&crate::Entry, Violation> {
        self.ledger.get(job).ok_or_else(|| self.source_error(now, Some(job), Rule::UnknownJob))
    }

    fn source_error(&self, now: Time, job: Option<JobId>, rule: Rule) -> Violation {
        let number = job.and_then(|job| self.ledger.get(job)).map(|entry| entry.request.number);
        Violation {
            queue: 0,
            policy: self.policy.name().into(),
            culprit: Culprit::Event(job),
            job: number,
            now,
            rule,
        }
    }
}

/// Makes the ledger keep the data that the policy decides about.
fn prepare(ledger: &mut Ledger, policy: &dyn Policy) {
    match policy.slices_time() {
        Some(slicing) => ledger.slice_time(slicing),
        None if policy.names_pes() => ledger.name_pes(),
        None => {}
    }
    // Nobody would correct those of the policy before.
    if !policy.predicts() {
        ledger.drop_predictions();
    }
    // Nobody would take their jobs off the machine.
    if !policy.gives_quanta() {
        ledger.drop_quanta();
    }
    ledger.weigh_usage(policy.usage_weights());
    ledger.count_usage(policy.usage_half_life());
}

/// Returns whether a change came from outside.
fn is_disturbed(round: &Round) -> bool {
    !(round.withdrawn.is_empty() && round.amended.is_empty() && round.fault.is_none())
}
