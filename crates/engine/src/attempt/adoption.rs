//! Attempts without a usable record: the engine adopts them until they end.

use std::sync::Arc;

use miserly_api::model::{Problem, ProblemCode};
use miserly_core::Time;
use miserly_marks::mark;

use crate::job::unrecorded::UNKNOWN;
use crate::{Adoption, Attempt, BegunWindow, Caller, Ending, Engine, Journal, Launcher};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Adopts attempts that run and of which the state has no usable record. The launcher supervises them.
    pub fn adopt(&mut self, adoptions: Vec<Adoption>) {
        mark!("attempts without a record are adopted");
        Arc::make_mut(&mut self.unrecorded).adopt(adoptions);
        self.cpus.withhold(self.unrecorded.cpus());
    }

    /// Returns the windows that began without a daemon and whose jobs the system has not started, since their ledger has other plans.
    /// Those of adopted attempts are not among them.
    pub(crate) fn not_started(&self, begun: Vec<BegunWindow>) -> Vec<BegunWindow> {
        let is_left = |BegunWindow { attempt, .. }: &BegunWindow| {
            // A suspended job is in its window, too.
            let waits = self.jobs.get(attempt.job).is_none_or(|record| record.waits_in(*attempt));
            let is_aside = self.unrecorded.aside.record(attempt.job).is_some();
            waits && !is_aside && !self.unrecorded.is_adopted(*attempt) && !self.jobs.is_running(attempt.job)
        };
        begun.into_iter().filter(is_left).collect()
    }

    /// Adopts an attempt that is in a window.
    pub(crate) fn adopt_window(&mut self, BegunWindow { attempt, cpus, end }: &BegunWindow) {
        mark!("a begun window without a start is adopted");
        let record = self.jobs.get(attempt.job);
        let adoption = Adoption {
            attempt: *attempt,
            name: record.map(|record| record.name.to_string()).unwrap_or_default(),
            queue: record.map(|record| record.queue.to_string()),
            cpus: cpus.clone(),
            gpus: record.and_then(|record| record.run.as_ref()).map_or(vec![], |run| run.gpus.clone()),
            memory: record.map_or(0, |record| record.memory.kilobytes()),
            end: Some(*end).filter(|end| *end < Time::MAX),
            ..Adoption::default()
        };
        Arc::make_mut(&mut self.unrecorded).adopt([adoption]);
        self.cpus.withhold(self.unrecorded.cpus());
    }

    /// Ends the adoption of an attempt: it is over, or its window begins. Returns whether there was one.
    pub(crate) fn release_adopted(&mut self, attempt: Attempt) -> bool {
        if !self.unrecorded.is_adopted(attempt) {
            return false;
        }
        mark!("an adoption ends");
        let released = Arc::make_mut(&mut self.unrecorded).remove_adopted(attempt);
        self.batch.released.extend(released);
        self.cpus.withhold(self.unrecorded.cpus());
        true
    }

    /// Ends the adoption of an attempt that is over. Its record stays if the row of its job cannot be read: a later reader finds the
    /// end there.
    pub(crate) fn end_adopted(&mut self, attempt: Attempt) {
        if self.release_adopted(attempt) {
            tracing::warn!("job {}: its attempt {} is over; {}", attempt.job, attempt.nth, UNKNOWN);
        }
        if self.unrecorded.unreadable(attempt.job).is_none() {
            self.forget(attempt);
        }
    }

    /// Logs the waiting jobs that cannot be read. Their promises are at risk until they can be.
    pub(crate) fn report_unreadable(&self) {
        for job in self.unrecorded.unreadable_waiting() {
            tracing::error!(
                "job {job}: {}; it does not run, and its promise is at risk",
                self.unrecorded.problem(job)
            );
        }
    }

    /// Returns the attempt of a job without a usable record that the caller may cancel, if there is one.
    pub(crate) fn adopted_attempt(&self, caller: &Caller, job: i64) -> Result<Option<Attempt>, Problem> {
        let Some(adoption) = self.unrecorded.attempt(job).filter(|_| !self.jobs.contains(job)) else {
            return Ok(None);
        };
        if !self.info.is_operator(caller) {
            let message = format!("job {job} has no record; only an operator can cancel it");
            return Err(Problem::new(ProblemCode::Forbidden, message));
        }
        Ok(Some(adoption.attempt))
    }

    /// Ends the attempt of a job without a usable record. Returns whether there is one.
    ///
    /// # Errors
    /// If there is one, and the caller is no operator.
    pub(crate) fn cancel_adopted(&mut self, caller: &Caller, job: i64) -> Result<bool, Problem> {
        let Some(attempt) = self.adopted_attempt(caller, job)? else { return Ok(false) };
        let kill = self.kill(Ending::Cancelled);
        mark!("an adopted attempt is cancelled");
        self.batch.act(attempt, kill);
        Ok(true)
    }

    /// Returns the problem of a request to change a job without a usable record.
    pub(crate) fn unrecorded_problem(&self, job: i64) -> Option<Problem> {
        let message = || format!("job {job} cannot be changed: {}", self.unrecorded.problem(job));
        self.unrecorded.contains(job).then(|| Problem::new(ProblemCode::Conflict, message()))
    }
}
