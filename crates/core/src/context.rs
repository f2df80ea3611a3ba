//! The checked handle through which a policy decides.

use crate::ledger::PartialAllocation;
use crate::violation::{Culprit, Rule, Violation};
use crate::{
    Effect, HostId, JobId, JobNumber, Ledger, Persistent, Placement, Prediction, Procs, Refusal, SlotId,
    Span, StartReason, Time,
};

/// The checked handle of one pass. Every decision is checked against the ledger and applied at
/// once.
///
/// A refused decision is a defect of the policy. It changes nothing, and the policy returns it with
/// `?`.
///
/// # Example
/// A pass that starts each waiting job that fits, in the order of admission:
/// ```
/// use miserly_core::{Context, JobId, StartReason, Violation};
///
/// fn pass(context: &mut Context<'_>) -> Result<(), Violation> {
///     let waiting: Vec<JobId> = context.ledger().waiting().collect();
///     for job in waiting {
///         if let Some(placement) = context.ledger().fit_request(job) {
///             context.start(job, placement, StartReason::Reserved)?;
///         }
///     }
///     Ok(())
/// }
/// ```
pub struct Context<'a> {
    pub(crate) now: Time,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) effects: &'a mut Vec<Effect>,
    pub(crate) wake: Option<Time>,
    /// Promises of the current policy are not recorded: an outer policy may not keep them.
    pub(crate) silent: bool,
}

impl Context<'_> {
    /// Returns the instant of this pass.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the ledger, with the decisions of this pass applied.
    pub fn ledger(&self) -> &Ledger {
        self.ledger
    }

    /// Returns the decisions of this round so far.
    pub fn effects(&self) -> &[Effect] {
        self.effects
    }

    /// Starts a waiting job now.
    ///
    /// # Errors
    /// If the job does not wait, its promise was missed, the placement differs from the request, or
    /// a host has less free than the placement needs.
    pub fn start(&mut self, job: JobId, placement: Placement, reason: StartReason) -> Result<(), Violation> {
        self.begin(job, placement, PartialAllocation::Nothing, None, reason)
    }

    /// Starts a waiting job now, with fewer processors than requested if necessary and all other
    /// resources. Speed follows the processors.
    ///
    /// # Errors
    /// As [`start`](Context::start), and if the placement has no processor.
    pub fn start_reduced(
        &mut self,
        job: JobId,
        placement: Placement,
        reason: StartReason,
    ) -> Result<(), Violation> {
        self.begin(job, placement, PartialAllocation::Cpus, None, reason)
    }

    /// Starts a waiting job for a quantum.
    ///
    /// It may get less than requested, but at least one processor. If the job has not ended by
    /// itself, the policy must take it off the machine when the quantum ends.
    ///
    /// # Errors
    /// As [`start`](Context::start), and if `until` is not in the future.
    pub fn start_for_quantum(
        &mut self,
        job: JobId,
        placement: Placement,
        until: Time,
    ) -> Result<(), Violation> {
        self.begin(job, placement, PartialAllocation::All, Some(until), StartReason::Quantum)
    }

    fn begin(
        &mut self,
        job: JobId,
        placement: Placement,
        short: PartialAllocation,
        quantum: Option<Time>,
        reason: StartReason,
    ) -> Result<(), Violation> {
        let started = self.ledger.start(job, self.now, placement, short, quantum);
        let planned = started.map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::Started { job, reason, planned });
        Ok(())
    }

    /// Takes a running job off its processors, to be resumed at `until`.
    ///
    /// `by` is the admission number of the job that gets the processors. The suspended job keeps
    /// all its other resources.
    ///
    /// # Errors
    /// If the job does not run.
    pub fn suspend(&mut self, job: JobId, until: Time, by: u64) -> Result<(), Violation> {
        self.leave(job, until, by, None)
    }

    /// Takes a running job off its processors by swapping it out, which completes at `until`.
    ///
    /// Until then it keeps all its resources and does no work. At that instant the policy must call
    /// [`finish_swap_out`](Context::finish_swap_out). `by` is as in [`suspend`](Context::suspend).
    ///
    /// # Errors
    /// If the job does not run, or is still being swapped in.
    pub fn swap_out(&mut self, job: JobId, until: Time, by: u64) -> Result<(), Violation> {
        self.leave(job, Time::MAX, by, Some(until))
    }

    fn leave(&mut self, job: JobId, until: Time, by: u64, written: Option<Time>) -> Result<(), Violation> {
        let left = self.ledger.suspend(job, self.now, until, by, written);
        left.map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::Suspended { job });
        Ok(())
    }

    /// Frees the resources that a job held while it was swapped out.
    ///
    /// # Errors
    /// If the job is not being swapped out, or the swap is not complete.
    pub fn finish_swap_out(&mut self, job: JobId) -> Result<(), Violation> {
        self.ledger.vacate(job, self.now).map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::SwappedOut { job });
        Ok(())
    }

    /// Resumes a suspended job on the hosts and processors of its placement.
    ///
    /// # Errors
    /// If the job is not suspended, or the resources that it needs are not free.
    pub fn resume(&mut self, job: JobId) -> Result<(), Violation> {
        self.resume_on(job, None, Span::ZERO)
    }

    /// Resumes a suspended job, on another placement if one is given.
    ///
    /// The job is first swapped in for the span `read`. It holds all its resources from now on and
    /// works from the end of that span.
    ///
    /// # Errors
    /// As [`resume`](Context::resume), and if the placement differs from the request.
    pub fn resume_on(&mut self, job: JobId, on: Option<Placement>, read: Span) -> Result<(), Violation> {
        self.ledger.resume(job, self.now, on, read).map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::Resumed { job });
        Ok(())
    }

    /// Stores a value of the policy itself, in place of the value of the same type.
    pub fn set_policy_state<T: Persistent>(&mut self, value: &T) {
        self.ledger.set_policy_state(value);
    }

    /// Counts a slot unification at a termination.
    pub fn count_unification(&mut self) {
        self.ledger.count_unification();
    }

    /// Gives a running job this number of processors of its host, at most the requested number.
    /// Speed follows the processors.
    ///
    /// # Errors
    /// If the job does not run on one host, or the host has too few free processors.
    pub fn resize(&mut self, job: JobId, procs: Procs) -> Result<(), Violation> {
        self.ledger.resize(job, self.now, procs).map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::Resized { job, procs });
        Ok(())
    }

    /// Sets the alternate slots of a running job: the slots in which it runs besides its own.
    ///
    /// A job in an alternate slot is evicted there when another job gets its own place. The slots
    /// ascend.
    ///
    /// # Errors
    /// If the job does not run, a slot is its own or not used, or some of its processors are not
    /// idle there.
    pub fn set_alternate_slots(&mut self, job: JobId, rows: &[SlotId]) -> Result<(), Violation> {
        self.ledger.set_alternate_slots(job, rows).map_err(|rule| self.refused(job, rule))
    }

    /// Moves running jobs to other places of their own, all at once.
    ///
    /// Each moves to a slot, perhaps on other processors. A job whose processors change continues
    /// after `cost`. The moved jobs lose their alternate slots.
    ///
    /// # Errors
    /// If one of them does not run, or a place differs from the holdings of its job. Also if a
    /// place is not open when all of them have left theirs.
    pub fn remap(&mut self, moves: &[(JobId, Placement)], cost: Span) -> Result<(), Violation> {
        let remapped = self.ledger.remap(moves, self.now, cost);
        remapped.map_err(|(job, rule)| self.refused(job, rule))?;
        self.effects.extend(moves.iter().map(|(job, _)| Effect::Moved { job: *job }));
        Ok(())
    }

    /// Stores a value of a slot, in place of the value of the same type. It is dropped when the
    /// slot is no longer used.
    ///
    /// # Errors
    /// If the slot is not used.
    pub fn set_slot_state<T: Persistent>(&mut self, slot: SlotId, value: &T) -> Result<(), Violation> {
        self.ledger.set_slot_state(slot, value).map_err(|rule| refused(self.now, None, rule))
    }

    /// Takes a running job off the machine and returns it to the queue. Its work is lost, unless
    /// `keep_work`.
    ///
    /// # Errors
    /// If the job does not run.
    pub fn requeue(&mut self, job: JobId, keep_work: bool) -> Result<(), Violation> {
        let lost = self.ledger.requeue(job, self.now, keep_work).map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::Requeued { job, lost });
        Ok(())
    }

    /// Refuses a waiting job for good and removes it from the ledger.
    ///
    /// # Errors
    /// If the job does not wait.
    pub fn refuse(&mut self, job: JobId, why: Refusal) -> Result<(), Violation> {
        self.ledger.refuse(job).map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::Refused { job, why });
        Ok(())
    }

    /// Stores a value of a job, in place of the value of the same type. It is dropped when the job
    /// leaves the system.
    ///
    /// # Errors
    /// If the job is not in the ledger.
    pub fn set_job_state<T: Persistent>(&mut self, job: JobId, value: &T) -> Result<(), Violation> {
        self.ledger.set_job_state(job, value).map_err(|rule| self.refused(job, rule))
    }

    /// Stores a value of a host, in place of the value of the same type.
    ///
    /// # Errors
    /// If there is no such host.
    pub fn set_host_state<T: Persistent>(&mut self, host: HostId, value: &T) -> Result<(), Violation> {
        self.ledger.set_host_state(host, value).map_err(|rule| refused(self.now, None, rule))
    }

    /// Stores a value of a user, in place of the value of the same type. It outlives the jobs of the
    /// user, so a policy must bound its size.
    pub fn set_user_state<T: Persistent>(&mut self, user: u32, value: &T) {
        self.ledger.set_user_state(user, value);
    }

    /// Sets the prediction of a job that waits or runs, in place of an earlier one.
    ///
    /// Only a policy that [predicts](crate::Policy::predicts) may call it. A running job is expected
    /// to end when its planned span is over, and at the next tick at the earliest.
    ///
    /// # Errors
    /// If the job is suspended.
    pub fn predict(&mut self, job: JobId, prediction: Prediction) -> Result<(), Violation> {
        let end = self.ledger.predict(job, self.now, prediction).map_err(|rule| self.refused(job, rule))?;
        self.effects.extend(end.map(|end| Effect::EndMoved { job, end }));
        Ok(())
    }

    /// Returns whether promises of this policy are recorded.
    pub fn keeps_promises(&self) -> bool {
        !self.silent
    }

    /// Returns the context for an inner policy. Promises of the inner policy are dropped, unless
    /// `promises`.
    pub fn for_inner_policy(&mut self, promises: bool) -> Context<'_> {
        let silent = self.silent || !promises;
        Context { now: self.now, ledger: self.ledger, effects: self.effects, wake: None, silent }
    }

    /// Returns the wake-up that the policy of this context requested.
    pub fn wake(&self) -> Option<Time> {
        self.wake
    }

    /// Promises a waiting job that it will start at `latest` or before.
    ///
    /// A promise equal to the last one changes nothing and has no effect.
    ///
    /// # Errors
    /// If `latest` is later than the promise before.
    pub fn promise(&mut self, job: JobId, latest: Time) -> Result<(), Violation> {
        if self.silent {
            return Ok(());
        }
        if self.ledger.promise(job, latest).map_err(|rule| self.refused(job, rule))? {
            self.effects.push(Effect::Promised { job, latest });
        }
        Ok(())
    }

    /// Records that a promise cannot be kept, for a cause outside the policy, and makes a new one.
    /// The ledger holds the cause.
    ///
    /// # Errors
    /// If the job has no promise, or there was no such cause.
    pub fn break_promise(&mut self, job: JobId, latest: Time) -> Result<(), Violation> {
        if self.silent {
            return Ok(());
        }
        let why = self.ledger.break_promise(job, latest).map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::PromiseBroken { job, latest, why });
        Ok(())
    }

    /// Records the intended start of a job, for display and for the memory of the policy. It is not
    /// binding.
    ///
    /// # Errors
    /// If the job runs.
    pub fn plan(&mut self, job: JobId, start: Time) -> Result<(), Violation> {
        let changed = self.ledger.plan(job, start, None).map_err(|rule| self.refused(job, rule))?;
        self.effects.extend(changed.then_some(Effect::Planned { job, start }));
        Ok(())
    }

    /// Records the intended start of a job and its placement.
    ///
    /// # Errors
    /// If the job runs.
    pub fn plan_on(&mut self, job: JobId, start: Time, on: Placement) -> Result<(), Violation> {
        let changed = self.ledger.plan(job, start, Some(on)).map_err(|rule| self.refused(job, rule))?;
        self.effects.extend(changed.then_some(Effect::Planned { job, start }));
        Ok(())
    }

    /// Requests a pass at `at`, whatever happens before. The request is valid until the next pass.
    /// The earliest request counts.
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

/// Returns a violation without the name of the policy, which the driver adds.
fn refused(now: Time, job: Option<JobNumber>, rule: Rule) -> Violation {
    Violation { queue: 0, policy: String::new(), culprit: Culprit::Policy, job, now, rule }
}
