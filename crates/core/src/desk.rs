//! The checked handle through which a policy decides.

use crate::violation::{Rule, Violation};
use crate::{Broken, Effect, JobId, JobNumber, Ledger, Placement, Reason, Time};

/// The checked handle of one pass: every decision is checked against the ledger and applied at once.
///
/// A refused decision is a defect of the policy. It changes nothing, and the policy hands it on with `?`.
pub struct Desk<'a> {
    pub(crate) now: Time,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) effects: &'a mut Vec<Effect>,
    pub(crate) wake: Option<Time>,
}

impl Desk<'_> {
    /// The instant of this pass.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Who holds what, this pass's own decisions included.
    pub fn ledger(&self) -> &Ledger {
        self.ledger
    }

    /// Starts a waiting job now.
    ///
    /// # Errors
    /// If the job does not wait, its promise has been missed, the placement is not what the job asked for,
    /// or a host has less free than that.
    pub fn start(&mut self, job: JobId, placement: Placement, reason: Reason) -> Result<(), Violation> {
        let planned = self.ledger.start(job, self.now, placement).map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::Started { job, reason, planned });
        Ok(())
    }

    /// Promises a waiting job that it will start at `latest` or before. A promise that is not earlier than
    /// the last one changes nothing and is not told again.
    ///
    /// # Errors
    /// If `latest` is later than what was promised before.
    pub fn promise(&mut self, job: JobId, latest: Time) -> Result<(), Violation> {
        if self.ledger.promise(job, latest).map_err(|rule| self.refused(job, rule))? {
            self.effects.push(Effect::Promised { job, latest });
        }
        Ok(())
    }

    /// Owns up to a promise that cannot be kept, for a cause outside the policy, and makes a new one.
    ///
    /// # Errors
    /// If nothing was promised, or there was no such cause.
    pub fn break_promise(&mut self, job: JobId, latest: Time, why: Broken) -> Result<(), Violation> {
        self.ledger.break_promise(job, latest, why).map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::PromiseBroken { job, latest, why });
        Ok(())
    }

    /// Says when the policy intends to start a job: for people who ask why it waits, and for the policy's own
    /// memory. It binds nobody.
    ///
    /// # Errors
    /// If the job does not wait.
    pub fn plan(&mut self, job: JobId, start: Time) -> Result<(), Violation> {
        self.ledger.plan(job, start).map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::Planned { job, start });
        Ok(())
    }

    /// Asks for a pass at `at`, whatever happens before. It stands until the next pass; the earliest counts.
    ///
    /// # Errors
    /// If `at` is not in the future.
    pub fn wake_at(&mut self, at: Time) -> Result<(), Violation> {
        if at <= self.now {
            return Err(refused(self.now, None, Rule::WakeInThePast));
        }
        self.wake = Some(self.wake.map_or(at, |earlier| earlier.min(at)));
        Ok(())
    }

    fn refused(&self, job: JobId, rule: Rule) -> Violation {
        let number = self.ledger.get(job).map(|entry| entry.request.number);
        refused(self.now, number, rule)
    }
}

/// The driver, which knows the policy, puts its name in.
fn refused(now: Time, job: Option<JobNumber>, rule: Rule) -> Violation {
    Violation { policy: String::new(), job, now, rule }
}
