//! The checked handle through which a policy decides.

use crate::ledger::PartialAllocation;
use crate::violation::{Rule, Violation};
use crate::{
    Effect, HostId, JobId, JobNumber, Ledger, Persistent, Placement, Procs, Refusal, SlotId, Span,
    StartReason, Time,
};

/// The checked handle of one pass: every decision is checked against the ledger and applied at once.
///
/// A refused decision is a defect of the policy. It changes nothing, and the policy hands it on with `?`.
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
    /// Promises of the policy that decides are not told: a policy around it may not keep them.
    pub(crate) silent: bool,
}

impl Context<'_> {
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
    pub fn start(&mut self, job: JobId, placement: Placement, reason: StartReason) -> Result<(), Violation> {
        self.begin(job, placement, PartialAllocation::Nothing, None, reason)
    }

    /// Starts a waiting job now, with fewer processors than it asked for, if need be, and with all else. Speed follows
    /// the processors.
    ///
    /// # Errors
    /// As [`start`](Context::start); and if the placement has no processor.
    pub fn start_reduced(
        &mut self,
        job: JobId,
        placement: Placement,
        reason: StartReason,
    ) -> Result<(), Violation> {
        self.begin(job, placement, PartialAllocation::Cpus, None, reason)
    }

    /// Starts a waiting job for a quantum, with less than it asked for, if need be, but with a processor at least. The
    /// policy has to take it off the machine when the quantum ends, if it has not ended by itself.
    ///
    /// # Errors
    /// As [`start`](Context::start); and if `until` is not in the future.
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

    /// Takes a running job off its processors, to run on at `until`; `by` is the admission number of the job that it
    /// makes room for. It keeps all else that it holds.
    ///
    /// # Errors
    /// If the job does not run.
    pub fn suspend(&mut self, job: JobId, until: Time, by: u64) -> Result<(), Violation> {
        self.leave(job, until, by, None)
    }

    /// Takes a running job off its processors by writing all that it holds out, which is done at `until`. Until then it keeps
    /// everything, and does nothing; then it has to [`vacate`](Context::vacate). `by` is as in [`suspend`](Context::suspend).
    ///
    /// # Errors
    /// If the job does not run, or is still being read back.
    pub fn swap_out(&mut self, job: JobId, until: Time, by: u64) -> Result<(), Violation> {
        self.leave(job, Time::MAX, by, Some(until))
    }

    fn leave(&mut self, job: JobId, until: Time, by: u64, written: Option<Time>) -> Result<(), Violation> {
        let left = self.ledger.suspend(job, self.now, until, by, written);
        left.map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::Suspended { job });
        Ok(())
    }

    /// Frees what a job still held while it was written out.
    ///
    /// # Errors
    /// If the job is not being written out, or that is not done yet.
    pub fn finish_swap_out(&mut self, job: JobId) -> Result<(), Violation> {
        self.ledger.vacate(job, self.now).map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::SwappedOut { job });
        Ok(())
    }

    /// Lets a suspended job run on, on the hosts and processors where it was.
    ///
    /// # Errors
    /// If the job is not suspended, or what it needs is not free.
    pub fn resume(&mut self, job: JobId) -> Result<(), Violation> {
        self.resume_on(job, None, Span::ZERO)
    }

    /// Lets a suspended job run on, on another placement if one is given. First it is read back for so long: it holds all that
    /// it needs from now on, and works from then on.
    ///
    /// # Errors
    /// As [`resume`](Context::resume); and if the placement is not what the job asked for.
    pub fn resume_on(&mut self, job: JobId, on: Option<Placement>, read: Span) -> Result<(), Violation> {
        self.ledger.resume(job, self.now, on, read).map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::Resumed { job });
        Ok(())
    }

    /// Keeps a value of the policy itself, in place of the one of the same type.
    pub fn set_policy_state<T: Persistent>(&mut self, value: &T) {
        self.ledger.set_policy_state(value);
    }

    /// Counts a slot unification at a termination.
    pub fn count_unification(&mut self) {
        self.ledger.count_unification();
    }

    /// Gives a running job this number of processors of its host, at most as many as it asked for. Speed follows the
    /// processors.
    ///
    /// # Errors
    /// If the job does not run on one host, or the host has too few processors free.
    pub fn resize(&mut self, job: JobId, procs: Procs) -> Result<(), Violation> {
        self.ledger.resize(job, self.now, procs).map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::Resized { job, procs });
        Ok(())
    }

    /// Lets a running job run in these rows besides its own, and in no others: tentatively, it gives way to whoever gets a place of
    /// his own there. The rows ascend.
    ///
    /// # Errors
    /// If the job does not run, a row is its own or not used, or some of its processors are not idle there.
    pub fn set_alternate_slots(&mut self, job: JobId, rows: &[SlotId]) -> Result<(), Violation> {
        self.ledger.set_alternate_slots(job, rows).map_err(|rule| self.refused(job, rule))
    }

    /// Moves running jobs to other places of their own, all at once: each to a row, perhaps on other processors. Where its processors are
    /// others it goes on after `cost`. Tentatively they are nowhere then.
    ///
    /// # Errors
    /// If one of them does not run, or a place is not what its job holds, or not open when all of them have left theirs.
    pub fn remap(&mut self, moves: &[(JobId, Placement)], cost: Span) -> Result<(), Violation> {
        let remapped = self.ledger.remap(moves, self.now, cost);
        remapped.map_err(|(job, rule)| self.refused(job, rule))?;
        self.effects.extend(moves.iter().map(|(job, _)| Effect::Moved { job: *job }));
        Ok(())
    }

    /// Keeps a value of a slot, in place of the one of the same type. It is dropped when the slot is not used any more.
    ///
    /// # Errors
    /// If the slot is not used.
    pub fn set_slot_state<T: Persistent>(&mut self, slot: SlotId, value: &T) -> Result<(), Violation> {
        self.ledger.set_slot_state(slot, value).map_err(|rule| refused(self.now, None, rule))
    }

    /// Takes a running job off the machine and puts it back into the queue. What it has done is lost, unless `keep_work`.
    ///
    /// # Errors
    /// If the job does not run.
    pub fn requeue(&mut self, job: JobId, keep_work: bool) -> Result<(), Violation> {
        let lost = self.ledger.requeue(job, self.now, keep_work).map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::Requeued { job, lost });
        Ok(())
    }

    /// Sends a waiting job away for good; it is in the ledger no longer.
    ///
    /// # Errors
    /// If the job does not wait.
    pub fn refuse(&mut self, job: JobId, why: Refusal) -> Result<(), Violation> {
        self.ledger.refuse(job).map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::Refused { job, why });
        Ok(())
    }

    /// Keeps a value of a job, in place of the one of the same type. It is dropped when the job leaves the system.
    ///
    /// # Errors
    /// If the job is not in the ledger.
    pub fn set_job_state<T: Persistent>(&mut self, job: JobId, value: &T) -> Result<(), Violation> {
        self.ledger.set_job_state(job, value).map_err(|rule| self.refused(job, rule))
    }

    /// Keeps a value of a host, in place of the one of the same type.
    ///
    /// # Errors
    /// If there is no such host.
    pub fn set_host_state<T: Persistent>(&mut self, host: HostId, value: &T) -> Result<(), Violation> {
        self.ledger.set_host_state(host, value).map_err(|rule| refused(self.now, None, rule))
    }

    /// The same context for a policy within this one. What it promises is not told, unless `promises`.
    pub fn for_inner_policy(&mut self, promises: bool) -> Context<'_> {
        let silent = self.silent || !promises;
        Context { now: self.now, ledger: self.ledger, effects: self.effects, wake: None, silent }
    }

    /// The wake-up that the policy of this context has asked for.
    pub fn wake(&self) -> Option<Time> {
        self.wake
    }

    /// Promises a waiting job that it will start at `latest` or before. A promise that is not earlier than
    /// the last one changes nothing and is not told again.
    ///
    /// # Errors
    /// If `latest` is later than what was promised before.
    pub fn promise(&mut self, job: JobId, latest: Time) -> Result<(), Violation> {
        if self.silent {
            return Ok(());
        }
        if self.ledger.promise(job, latest).map_err(|rule| self.refused(job, rule))? {
            self.effects.push(Effect::Promised { job, latest });
        }
        Ok(())
    }

    /// Owns up to a promise that cannot be kept, for a cause outside the policy, and makes a new one. The ledger knows
    /// the cause.
    ///
    /// # Errors
    /// If nothing was promised, or there was no such cause.
    pub fn break_promise(&mut self, job: JobId, latest: Time) -> Result<(), Violation> {
        if self.silent {
            return Ok(());
        }
        let why = self.ledger.break_promise(job, latest).map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::PromiseBroken { job, latest, why });
        Ok(())
    }

    /// Says when the policy intends to start a job: for people who ask why it waits, and for the policy's own
    /// memory. It binds nobody.
    ///
    /// # Errors
    /// If the job does not wait.
    pub fn plan(&mut self, job: JobId, start: Time) -> Result<(), Violation> {
        self.ledger.plan(job, start, None).map_err(|rule| self.refused(job, rule))?;
        self.effects.push(Effect::Planned { job, start });
        Ok(())
    }

    /// Says when and where the policy intends to start a job.
    ///
    /// # Errors
    /// If the job runs.
    pub fn plan_on(&mut self, job: JobId, start: Time, on: Placement) -> Result<(), Violation> {
        self.ledger.plan(job, start, Some(on)).map_err(|rule| self.refused(job, rule))?;
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
