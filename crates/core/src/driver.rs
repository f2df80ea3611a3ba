//! The one driver: tells a policy what happened and applies what it decides.

use std::fmt;

use crate::violation::{Rule, Violation};
use crate::{
    Amendment, BreachCause, Context, Effect, Ended, Event, Expected, Fault, HostId, JobId, Ledger, Policy,
    Round, State, Time,
};

/// How the events of one instant reach the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventOrder {
    /// Terminations, jobs found overdue, submissions by job number, timers; then exactly one pass.
    #[default]
    Batched,
    /// One event at a time, each followed by its own pass: submissions by job number, then terminations in
    /// the order of the starts, then timers. A job whose expected end is now, and that ends now, counts as
    /// gone for all of them; one that does not end is told to be overdue before anything else.
    /// The convention of pyss and the simulators that descend from it.
    Sequential,
}

impl fmt::Display for EventOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EventOrder::Batched => "batch",
            EventOrder::Sequential => "sequential",
        })
    }
}

/// Runs a policy over a ledger, one round of events at a time, under any clock.
pub struct Driver {
    ledger: Ledger,
    policy: Box<dyn Policy>,
    instants: EventOrder,
    wake: Option<Time>,
    last: Time,
    /// Rounds since the ledger was checked, in debug builds.
    unchecked: usize,
}

impl Driver {
    /// A driver of this policy, which is rebuilt from the ledger first.
    pub fn new(mut ledger: Ledger, mut policy: Box<dyn Policy>, instants: EventOrder) -> Driver {
        let last = Time::from_ticks(i64::MIN);
        prepare(&mut ledger, &*policy);
        policy.rebuild(last, &ledger);
        Driver { ledger, policy, instants, wake: None, last, unchecked: 0 }
    }

    /// Returns the hosts that the policy keeps idle for waiting jobs.
    pub fn kept_hosts(&self) -> Vec<HostId> {
        self.policy.kept_hosts(&self.ledger)
    }

    /// Who holds what.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// When the policy wants a round, if nothing happens before.
    pub fn wake(&self) -> Option<Time> {
        self.wake
    }

    /// The ledger, to keep track of what changes in it.
    pub fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Throws the policy away and goes on with another one, rebuilt from the ledger.
    pub fn replace(&mut self, mut policy: Box<dyn Policy>) {
        prepare(&mut self.ledger, &*policy);
        policy.rebuild(self.last, &self.ledger);
        self.policy = policy;
    }

    /// Plays one round: all that happened at `now`, told, decided and applied.
    ///
    /// Ends that the round's own starts bring about at the same instant (a runtime of 0) are the source's to
    /// report, in a round of their own. What changed is appended to `effects`; `round` is left empty.
    ///
    /// # Errors
    /// A refused decision of the policy, or an event that contradicts the ledger. The run cannot go on.
    pub fn round(
        &mut self,
        now: Time,
        round: &mut Round,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Violation> {
        if now < self.last {
            return Err(self.source_error(now, None, Rule::TimeWentBack));
        }
        self.last = now;
        let timer = self.wake.is_some_and(|wake| wake <= now);
        round.submitted.sort_by_key(|submission| submission.request.number);
        match self.instants {
            EventOrder::Batched => self.batch(now, round, timer, effects)?,
            EventOrder::Sequential => self.sequential(now, round, timer, effects)?,
        }
        if cfg!(debug_assertions) {
            self.check_now_and_then(now);
        }
        Ok(())
    }

    /// Checks the ledger after each round while few jobs are in the system, else so often that the cost per
    /// round stays bounded.
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
        // What is amended because of that breaks promises for the same reason.
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

    /// Applies what was changed from outside, and lets the policy begin anew from there.
    ///
    /// These are rare, and a rebuilt policy decides as the one before would have: O(jobs in the system) each round that
    /// has any, in place of a rule in every policy.
    fn disturb(&mut self, now: Time, round: &mut Round, late: Option<BreachCause>) -> Result<(), Violation> {
        for job in round.withdrawn.drain(..) {
            self.ledger.refuse(job).map_err(|rule| self.source_error(now, Some(job), rule))?;
        }
        let mut excuse = (!round.amended.is_empty()).then_some(late.unwrap_or(BreachCause::Amended));
        for Amendment { job, change } in round.amended.drain(..) {
            self.ledger.amend(job, now, change).map_err(|rule| self.source_error(now, Some(job), rule))?;
        }
        match round.fault.take() {
            Some(Fault::Away) => excuse = Some(BreachCause::Away),
            Some(Fault::Capacity { capacity, .. }) => {
                self.ledger.set_capacity(capacity).map_err(|rule| self.source_error(now, None, rule))?;
                excuse = Some(BreachCause::Capacity);
            }
            None => {}
        }
        self.ledger.excuse(excuse);
        self.policy.rebuild(now, &self.ledger);
        self.policy.event(now, Event::Rebuilt, &self.ledger);
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
        // All of them before the pass: none of them will give way at this instant.
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

    /// Drops what was to be changed of jobs that a pass of this very instant has started or refused.
    fn drop_too_late(&self, round: &mut Round) {
        let waits = |job: &JobId| self.ledger.get(*job).is_some_and(|entry| entry.state == State::Waiting);
        round.withdrawn.retain(waits);
        round.amended.retain(|amendment| self.ledger.get(amendment.job).is_some());
    }

    fn release_if_due(&mut self, now: Time, job: JobId) -> Result<(), Violation> {
        let entry = self.known(now, job)?;
        match entry.state {
            State::Running { expected: Expected::At(end), .. } if end <= now => {
                self.ledger.release(job).map_err(|rule| self.source_error(now, Some(job), rule))
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
        // Whoever was taken off the machine at this instant may have ended in it all the same.
        let entry = self.known(now, ended.job)?;
        let stopped = entry.stopped_before(now);
        if stopped && matches!(entry.state, State::Suspended { .. }) {
            return self.end_ahead(now, ended.job);
        }
        if stopped {
            return Err(self.source_error(now, Some(ended.job), Rule::NotRunning));
        }
        if self.known(now, ended.job)?.is_opportunistic(now) {
            return self.end_ahead(now, ended.job);
        }
        self.policy.event(now, Event::Ended(ended), &self.ledger);
        self.ledger.end(ended.job).map_err(|rule| self.source_error(now, Some(ended.job), rule))?;
        Ok(())
    }

    /// Takes a job out that was done before its start, or that somebody ended while it was suspended: no policy knows of ends of
    /// jobs that hold no processors.
    fn end_ahead(&mut self, now: Time, job: JobId) -> Result<(), Violation> {
        self.ledger.end(job).map_err(|rule| self.source_error(now, Some(job), rule))?;
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
        ledger.excuse(None);
        result.map_err(|violation| Violation { policy: self.policy.name().into(), ..violation })
    }

    fn known(&self, now: Time, job: JobId) -> Result<&crate::Entry, Violation> {
        self.ledger.get(job).ok_or_else(|| self.source_error(now, None, Rule::UnknownJob))
    }

    fn source_error(&self, now: Time, job: Option<JobId>, rule: Rule) -> Violation {
        let number = job.and_then(|job| self.ledger.get(job)).map(|entry| entry.request.number);
        Violation { policy: format!("{} (event source)", self.policy.name()), job: number, now, rule }
    }
}

/// Has the ledger keep what the policy decides about.
fn prepare(ledger: &mut Ledger, policy: &dyn Policy) {
    match policy.slices_time() {
        Some(slicing) => ledger.slice_time(slicing),
        None if policy.names_pes() => ledger.name_pes(),
        None => {}
    }
}

/// Whether anything was changed from outside.
fn is_disturbed(round: &Round) -> bool {
    !(round.withdrawn.is_empty() && round.amended.is_empty() && round.fault.is_none())
}
