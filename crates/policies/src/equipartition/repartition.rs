//! The changes that bring the jobs of a host to their shares.

use miserly_core::{Context, JobId, Ledger, Procs, StartReason, State, Violation};

use super::host::{Assigned, Host};
use super::state::AssignedHost;
use super::{Repartitioned, Rules};

impl Host {
    /// Divides the processors, if that is due. Otherwise starts jobs on unallocated processors.
    ///
    /// `first` is the admission number of the first job in the queue.
    pub(super) fn settle(
        &mut self,
        desk: &mut Context<'_>,
        rules: &Rules,
        first: Option<u64>,
    ) -> Result<(), Violation> {
        if self.is_due(desk.now(), desk.ledger(), rules) {
            self.at_once = false;
            self.repartition(desk, rules, first)
        } else {
            self.start_on_unallocated(desk, rules, first)?;
            self.pledge(desk)
        }
    }

    /// Gives every job its share. Jobs with too many processors are reduced first.
    fn repartition(
        &mut self,
        desk: &mut Context<'_>,
        rules: &Rules,
        first: Option<u64>,
    ) -> Result<(), Violation> {
        let ledger = desk.ledger();
        let (running, starting): (Vec<Assigned>, Vec<Assigned>) =
            self.jobs.iter().partition(|assigned| is_running(ledger, assigned.job));
        let has = |assigned: &Assigned| ledger.entry(assigned.job).working();
        let (shrinking, growing): (Vec<Assigned>, Vec<Assigned>) = running
            .into_iter()
            .filter(|assigned| has(assigned) != assigned.target)
            .partition(|assigned| has(assigned) > assigned.target);
        let moved = !shrinking.is_empty() || !growing.is_empty();
        for assigned in shrinking {
            desk.resize(assigned.job, assigned.target)?;
        }
        for assigned in starting {
            self.start(desk, rules, &assigned, assigned.target, first)?;
        }
        for assigned in growing {
            desk.resize(assigned.job, assigned.target)?;
        }
        if moved { desk.set_host_state(self.id, &Repartitioned(Some(desk.now()))) } else { Ok(()) }
    }

    /// Starts jobs without a processor on unallocated ones, in order of admission.
    pub(super) fn start_on_unallocated(
        &mut self,
        desk: &mut Context<'_>,
        rules: &Rules,
        first: Option<u64>,
    ) -> Result<(), Violation> {
        for assigned in self.jobs.clone() {
            let free = desk.ledger().free_hosts().on(self.id).cpus_count();
            if !free.is_zero() && !is_running(desk.ledger(), assigned.job) {
                self.start(desk, rules, &assigned, free.min(assigned.asked), first)?;
            }
        }
        Ok(())
    }

    fn start(
        &mut self,
        desk: &mut Context<'_>,
        rules: &Rules,
        assigned: &Assigned,
        procs: Procs,
        first: Option<u64>,
    ) -> Result<(), Violation> {
        let need = rules.need(desk.ledger(), assigned.job, assigned.lend);
        let placement = self.placement(need, procs);
        self.unstarted = self.unstarted.minus(&need.without_cpus()).unwrap_or_default();
        desk.set_job_state(assigned.job, &AssignedHost(None))?;
        if assigned.lend {
            return desk.start_for_quantum(assigned.job, placement, desk.now() + rules.quantum);
        }
        let entry = desk.ledger().entry(assigned.job);
        let reason = match first {
            Some(first) if first < assigned.admitted => StartReason::Backfilled,
            _ if entry.request.submit == desk.now() => StartReason::Immediate,
            _ => StartReason::Reserved,
        };
        desk.start_reduced(assigned.job, placement, reason)
    }

    /// Stores the assigned host of jobs that have no processor yet.
    fn pledge(&self, desk: &mut Context<'_>) -> Result<(), Violation> {
        for assigned in &self.jobs {
            let entry = desk.ledger().entry(assigned.job);
            let AssignedHost(host) = entry.policy_state.get();
            if entry.state == State::Waiting && host.is_none() {
                desk.set_job_state(assigned.job, &AssignedHost(Some(self.id)))?;
            }
        }
        Ok(())
    }
}

fn is_running(ledger: &Ledger, job: JobId) -> bool {
    matches!(ledger.entry(job).state, State::Running { .. })
}
