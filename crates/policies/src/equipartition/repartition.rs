//! The changes that bring the jobs of a host to their shares.

use miserly_core::{Context, JobId, Ledger, Procs, Sizes, StartReason, State, Violation};

use super::host::{Assigned, Host};
use super::state::AssignedHost;
use super::{Repartitioned, Rules};

impl Host {
    /// Divides the processors, if that is due. Otherwise starts jobs on unallocated processors.
    ///
    /// `first` is the admission number of the first job in the queue.
    pub(super) fn settle(
        &mut self,
        context: &mut Context<'_>,
        rules: &Rules,
        first: Option<u64>,
    ) -> Result<(), Violation> {
        if self.is_due(context.now(), context.ledger(), rules) {
            self.is_immediate = false;
            self.repartition(context, rules, first)
        } else {
            self.start_on_unallocated(context, rules, first)?;
            self.pledge(context)
        }
    }

    /// Gives every job its share. Jobs with too many processors are reduced first.
    fn repartition(
        &mut self,
        context: &mut Context<'_>,
        rules: &Rules,
        first: Option<u64>,
    ) -> Result<(), Violation> {
        let ledger = context.ledger();
        self.refresh(ledger);
        let changed = self.jobs.iter().copied().filter(|assigned| assigned.working != assigned.target);
        let runs = |assigned: &Assigned| is_running(ledger, assigned.job);
        let (running, starting): (Vec<Assigned>, Vec<Assigned>) = changed.partition(runs);
        let (shrinking, growing): (Vec<Assigned>, Vec<Assigned>) =
            running.into_iter().partition(|assigned| assigned.working > assigned.target);
        let moved = !shrinking.is_empty() || !growing.is_empty();
        for assigned in shrinking {
            self.stale.push(assigned.admitted);
            context.resize(assigned.job, assigned.target)?;
        }
        for assigned in starting {
            self.start(context, rules, &assigned, assigned.target, first)?;
        }
        for assigned in growing {
            self.stale.push(assigned.admitted);
            context.resize(assigned.job, assigned.target)?;
        }
        if moved { context.set_host_state(self.id, &Repartitioned(Some(context.now()))) } else { Ok(()) }
    }

    /// Starts jobs without a processor on unallocated ones, in order of admission.
    pub(super) fn start_on_unallocated(
        &mut self,
        context: &mut Context<'_>,
        rules: &Rules,
        first: Option<u64>,
    ) -> Result<(), Violation> {
        let unallocated = |context: &Context<'_>, host| context.ledger().free_hosts().on(host).cpus_count();
        if unallocated(context, self.id).is_zero() {
            return Ok(());
        }
        for assigned in self.jobs.clone() {
            let free = unallocated(context, self.id);
            let Sizes { least, most } = assigned.requested;
            if free >= least && !is_running(context.ledger(), assigned.job) {
                self.start(context, rules, &assigned, free.min(most), first)?;
            }
        }
        Ok(())
    }

    fn start(
        &mut self,
        context: &mut Context<'_>,
        rules: &Rules,
        assigned: &Assigned,
        procs: Procs,
        first: Option<u64>,
    ) -> Result<(), Violation> {
        self.stale.push(assigned.admitted);
        let need = rules.need(context.ledger(), assigned.job, assigned.for_quantum);
        let placement = self.placement(need, procs);
        self.unstarted = self.unstarted.minus(&need.without_cpus()).unwrap_or_default();
        context.set_job_state(assigned.job, &AssignedHost(None))?;
        if assigned.for_quantum {
            return context.start_for_quantum(assigned.job, placement, context.now() + rules.quantum);
        }
        let entry = context.ledger().entry(assigned.job);
        let reason = match first {
            Some(first) if first < assigned.admitted => StartReason::Backfilled,
            _ if entry.request.submit == context.now() => StartReason::Immediate,
            _ => StartReason::Reserved,
        };
        context.start_reduced(assigned.job, placement, reason)
    }

    /// Stores the assigned host of jobs that have no processor yet.
    fn pledge(&self, context: &mut Context<'_>) -> Result<(), Violation> {
        for assigned in self.jobs.iter().filter(|assigned| assigned.working.is_zero()) {
            let entry = context.ledger().entry(assigned.job);
            let AssignedHost(host) = entry.policy_state.get();
            if entry.state == State::Waiting && host.is_none() {
                context.set_job_state(assigned.job, &AssignedHost(Some(self.id)))?;
            }
        }
        Ok(())
    }
}

fn is_running(ledger: &Ledger, job: JobId) -> bool {
    matches!(ledger.entry(job).state, State::Running { .. })
}
