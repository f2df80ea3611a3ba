//! Suspension, swapping and resumption of jobs.

use super::changes::PartialAllocation;
use super::{Expected, Holds, Ledger, Part, State};
use crate::violation::Rule;
use crate::{HostId, JobId, Placement, Procs, Resources, Share, Span, Time};

impl Ledger {
    /// Takes a job off its processors. If it is swapped out until `written`, it keeps them until
    /// then but does no work.
    pub(crate) fn suspend(
        &mut self,
        job: JobId,
        now: Time,
        until: Time,
        by: u64,
        written: Option<Time>,
    ) -> Result<(), Rule> {
        let charge = self.charge(job);
        let entry = self.checked_mut(job)?;
        // A job that is being swapped in does no work yet.
        if entry.progress.at > now {
            return Err(Rule::NotRunning);
        }
        let State::Running { start, ref placement, released: false, .. } = entry.state else {
            return Err(Rule::NotRunning);
        };
        let placement = placement.clone();
        entry.progress.go_on(now, Procs::ZERO);
        (entry.planned, entry.planned_on) = (None, None);
        let holds = written.map_or(Holds::AllButCpus, |until| Holds::All { until });
        entry.state = State::Suspended { start, until, by, placement: placement.clone(), holds };
        self.leave_alternate_slots(job);
        if written.is_none() {
            self.give(&placement, Part::Cpus);
        }
        self.running.remove(job);
        self.suspended.insert(job);
        self.recharge(job, now, charge);
        Ok(())
    }

    /// Frees all resources that a job held after it was swapped out.
    pub(crate) fn vacate(&mut self, job: JobId, now: Time) -> Result<(), Rule> {
        let charge = self.charge(job);
        let State::Suspended { ref placement, ref mut holds, .. } = self.checked_mut(job)?.state else {
            return Err(Rule::NotSuspended);
        };
        match *holds {
            Holds::All { until } if until <= now => *holds = Holds::Nothing,
            _ => return Err(Rule::StillWriting),
        }
        let placement = placement.clone();
        self.give(&placement, Part::All);
        self.recharge(job, now, charge);
        Ok(())
    }

    /// Resumes a suspended job on its placement or on another one, after a swap-in of the span
    /// `read`.
    pub(crate) fn resume(
        &mut self,
        job: JobId,
        now: Time,
        on: Option<Placement>,
        read: Span,
    ) -> Result<(), Rule> {
        let entry = self.get(job).ok_or(Rule::UnknownJob)?;
        let State::Suspended { start, ref placement, holds, .. } = entry.state else {
            return Err(Rule::NotSuspended);
        };
        if matches!(holds, Holds::All { .. }) {
            return Err(Rule::StillWriting);
        }
        let old = placement.clone();
        let charge = self.charge(job);
        let procs = self.working_with(&entry.request, on.as_ref().unwrap_or(&old), PartialAllocation::All)?;
        let expected = Expected::At(now + read + entry.planned_left(now, procs));
        let placement = if let Some(on) = on {
            self.move_to(&old, holds, on)?
        } else {
            self.take(&old, holds.missing())?;
            old
        };
        let entry = self.entry_mut(job);
        (entry.planned, entry.planned_on) = (None, None);
        entry.progress.go_on(now + read, procs);
        entry.state =
            State::Running { start, since: now + read, expected, placement, released: false, quantum: None };
        self.leave_alternate_slots(job);
        self.suspended.remove(job);
        self.running.insert(job);
        self.recharge(job, now, charge);
        Ok(())
    }

    /// Moves the holdings of one placement to another one, or leaves them unchanged on an error.
    fn move_to(&mut self, old: &Placement, holds: Holds, on: Placement) -> Result<Placement, Rule> {
        let on = self.named(on);
        let keeps_devices = old.devices() == on.devices();
        if keeps_devices && old.shares().iter().map(beside_cpus).eq(on.shares().iter().map(beside_cpus)) {
            // Resources that the job keeps are never freed, so they replace no lost capacity.
            self.take(&on, holds.missing())?;
            return Ok(on);
        }
        self.give(old, holds.part());
        if let Err(rule) = self.take(&on, Part::All) {
            // The old placement was free a moment ago.
            self.take(old, holds.part())?;
            return Err(rule);
        }
        Ok(on)
    }
}

/// Returns the host of a share and its resources besides processors.
fn beside_cpus(share: &Share) -> (HostId, Resources) {
    (share.host, share.amount.without_cpus())
}
