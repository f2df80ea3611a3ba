//! Jobs that run for a quantum, and the jobs that are suspended for them (Chiang and Vernon §2.4).
//!
//! A job that has not ended by the end of its quantum leaves its node as an [`Opportunistic`] job does.
//!
//! A suspended job keeps its node and its memory. Slurm resumes it without a look at its processors: two jobs would share them.
//! So the driver asks for that only if they are free.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{Driver, JobId, Kind, Placement, Span, State, Time};
use miserly_slurm::{Cluster, Detail, Job, JobState, Limit};

use super::job::{DrivenJob, DrivenState, Run};
use super::opportunistic::Opportunistic;
use super::rebuild::{holds_nodes, on_all_hosts, placement};
use super::{AWAY, RebuildCause, Scheduler, Step};
use crate::instant::instant;
use crate::notes::Note;
use crate::orders::Order;

impl Scheduler {
    /// Takes in that the policy suspends a job. Returns whether it may: the job of a partition that is not driven goes on, and so
    /// does one that Slurm has suspended for another reason.
    pub(super) fn suspend(&mut self, id: &str, cluster: &Cluster, step: &mut Step) -> bool {
        let driven = self.settings.partitions(cluster);
        let is_driven = |job: &&Job| job.partitions.iter().any(|name| driven.contains(name));
        let runs = cluster.jobs.get(id).filter(is_driven).is_some_and(|job| job.state == JobState::Running);
        let suspended = self.jobs.get_mut(id).is_some_and(|known| runs && known.suspend());
        if suspended {
            step.notes.push((id.to_owned(), Note::Suspended));
        }
        suspended
    }

    /// Returns whether a job that the ledger has suspended makes room for a job that is placed.
    pub(super) fn is_needed(&self, victim: JobId) -> bool {
        let Some(ledger) = self.driver.as_ref().map(Driver::ledger) else { return false };
        let Some(State::Suspended { by, .. }) = ledger.get(victim).map(|entry| &entry.state) else {
            return false;
        };
        let is_for = |job: &DrivenJob| {
            let entry = job.handle.and_then(|handle| ledger.get(handle));
            entry.is_some_and(|entry| entry.admitted == *by)
        };
        self.jobs.values().filter(|job| job.quantum().is_some()).any(is_for)
    }

    /// Takes in that the policy requeues a job: its quantum is over.
    pub(super) fn end_quantum(&mut self, at: Time, id: &str, cluster: &Cluster, step: &mut Step) {
        let place = self.place_to_leave(id, cluster);
        let Some((known, job)) = self.jobs.get_mut(id).zip(cluster.jobs.get(id)) else { return };
        let start = known.quantum_start().or(job.start.filter(|_| holds_nodes(job)).map(instant));
        known.wait_again();
        let Some(place) = place else { return };
        known.set_opportunistic(Opportunistic::leaving(at, &self.site, &place, start));
        step.changed = true;
        if let Some(start) = start {
            let ran = known.lose_run(at, start);
            step.notes.push((id.to_owned(), Note::QuantumOver { ran }));
        }
    }

    /// Returns the nodes of a job that has to leave them, or may start there yet.
    fn place_to_leave(&self, id: &str, cluster: &Cluster) -> Option<Placement> {
        let (known, job) = self.jobs.get(id).zip(cluster.jobs.get(id))?;
        match known.state() {
            DrivenState::Running(_) => Some(placement(on_all_hosts(&self.site, job, &known.form))),
            DrivenState::Placed { assignment, .. } => {
                let ledger = self.driver.as_ref()?.ledger();
                let amount =
                    known.handle.map(|handle| ledger.machine().amount(&ledger.entry(handle).request));
                let nodes = assignment.nodes.iter();
                Some(placement(nodes.filter_map(|node| self.site.find(node).zip(amount))))
            }
            DrivenState::Waiting(_) | DrivenState::Assigned { .. } => None,
        }
    }

    /// Ends the quanta of jobs that are not in the ledger, because their nodes are out of service.
    pub(super) fn end_other_quanta(&mut self, cluster: &Cluster, step: &mut Step) {
        let is_over = |job: &DrivenJob| job.quantum().is_some_and(|until| until <= self.now);
        let others = self.jobs.iter().filter(|(_, job)| job.handle.is_none() && is_over(job));
        let others: Vec<String> = others.map(|(id, _)| id.clone()).collect();
        for id in others {
            self.end_quantum(self.now, &id, cluster, step);
        }
    }

    /// Has jobs go on whose quantum was over long ago, while there was no driver, if no suspended job waits for their nodes.
    pub(super) fn let_long_runs_go_on(&mut self, cluster: &Cluster, step: &mut Step) {
        let wanted: BTreeSet<String> = self.nodes_of_suspended(cluster).cloned().collect();
        let goes_on = |job: &Job| holds_nodes(job) && !job.on.iter().any(|node| wanted.contains(node));
        for (id, known) in &mut self.jobs {
            let is_over = known.quantum().is_some_and(|until| self.now - until > AWAY);
            if is_over && cluster.jobs.get(id).is_some_and(goes_on) {
                // One that was not seen running yet gets its record with that.
                step.starts.extend(known.forget_quantum(id));
                step.changed = true;
                self.rebuild = self.rebuild.max(Some(RebuildCause::Quantum));
            }
        }
    }

    /// Returns the nodes of the jobs that the driver has suspended.
    pub(super) fn nodes_of_suspended<'a>(&'a self, cluster: &'a Cluster) -> impl Iterator<Item = &'a String> {
        let suspended = self.jobs.iter().filter(|(_, job)| job.is_suspended());
        suspended.filter_map(|(id, _)| cluster.jobs.get(id)).flat_map(|job| &job.on)
    }

    /// Returns the orders that make Slurm suspend jobs and resume them as the ledger does. `occupied` are the nodes to wait for.
    pub(super) fn orders_for_suspensions(
        &self,
        cluster: &Cluster,
        occupied: &BTreeSet<String>,
    ) -> Vec<Order> {
        let mut orders = vec![];
        let mut used: Option<UsedCpus> = None;
        let is_settled = !self.jobs.iter().any(|(id, job)| self.is_taken_back(cluster, id, job));
        for (id, known) in self.jobs.iter().filter(|(_, job)| job.is_suspended()) {
            let Some(job) = cluster.jobs.get(id) else { continue };
            match (known.handle.is_some_and(|handle| self.has_suspended(handle)), &job.state) {
                // No job is placed yet on a node to wait for.
                (true, JobState::Running) if job.on.iter().all(|node| !occupied.contains(node)) => {
                    orders.push(Order::Suspend { job: id.clone() });
                }
                (false, JobState::Suspended) if is_settled => {
                    let form = |id: &str| self.jobs.get(id).map(|job| &job.form);
                    let used = used.get_or_insert_with(|| UsedCpus::new(cluster, form));
                    if used.take_if_free(cluster, job, &known.form) {
                        orders.push(Order::Resume { job: id.clone() });
                    }
                }
                _ => {}
            }
        }
        orders
    }

    /// Returns whether a placed job is taken back in this step. Slurm may start it yet, so its processors are not free before the
    /// next step.
    fn is_taken_back(&self, cluster: &Cluster, id: &str, known: &DrivenJob) -> bool {
        let job = cluster.jobs.get(id).filter(|job| job.state == JobState::Pending);
        let is_inside = job.is_some_and(|job| job.reservation.as_ref() == Some(&self.settings.reservation));
        // Slurm keeps one that was just requeued from starting.
        let may_start = known.opportunistic().is_none_or(Opportunistic::may_hold_nodes);
        is_inside && may_start && known.is_waiting()
    }

    /// Returns whether the ledger has a job suspended.
    pub(super) fn has_suspended(&self, job: JobId) -> bool {
        match &self.driver {
            Some(driver) => driver.ledger().get(job).is_some_and(|entry| is_suspended(&entry.state)),
            None => self.restored.iter().any(|(other, entry)| *other == job && is_suspended(&entry.state)),
        }
    }
}

pub(super) fn is_suspended(state: &State) -> bool {
    matches!(state, State::Suspended { .. })
}

impl DrivenJob {
    /// Has the driver suspend it, if it runs to its end. Returns whether it does.
    fn suspend(&mut self) -> bool {
        let DrivenState::Running(
            Run::Ordinary { suspended_for } | Run::Suspended { since: None, suspended_for },
        ) = *self.state()
        else {
            return false;
        };
        self.run_on(Run::Suspended { since: None, suspended_for });
        true
    }

    /// Takes in whether Slurm has the job suspended, and the ledger. Returns whether its end has moved.
    pub(super) fn follow_suspension(
        &mut self,
        at: Time,
        job: &Job,
        is_in_ledger: bool,
        step: &mut Step,
    ) -> bool {
        let DrivenState::Running(Run::Suspended { since, suspended_for }) = *self.state() else {
            return false;
        };
        match (job.state == JobState::Suspended, since) {
            (true, None) => self.run_on(Run::Suspended { since: Some(at), suspended_for }),
            (false, None) if !is_in_ledger => self.run_on(Run::Ordinary { suspended_for }),
            (false, Some(since)) => {
                let after = (at - since).min(moved_by(job) - suspended_for).max(Span::ZERO);
                let suspended_for = suspended_for + after;
                // If it was not the driver that resumed it, it is suspended again.
                self.run_on(if is_in_ledger {
                    Run::Suspended { since: None, suspended_for }
                } else {
                    Run::Ordinary { suspended_for }
                });
                step.notes.push((job.id.clone(), Note::Resumed { after }));
            }
            _ => return false,
        }
        step.changed = true;
        since.is_some() && !is_in_ledger
    }
}

/// Returns the time by which the end of a job has moved: without a driver, others may have resumed it.
fn moved_by(job: &Job) -> Span {
    match (job.start, job.end, job.limit) {
        (Some(start), Some(end), Limit::Seconds(limit)) => {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let moved = end.saturating_sub(start).saturating_sub(limit).saturating_add(1);
            Span::from_secs(moved).unwrap_or(Span::MAX)
        }
        _ => Span::MAX,
    }
}

/// The processors that jobs use on each node. Those of suspended jobs are free.
pub(crate) struct UsedCpus(BTreeMap<String, u64>);

impl UsedCpus {
    /// Reads them from the jobs. `form` has the form of a job, if it is known.
    pub(crate) fn new<'a>(cluster: &Cluster, form: impl Fn(&str) -> Option<&'a Detail>) -> UsedCpus {
        let mut used = UsedCpus(BTreeMap::new());
        let runs = |job: &&Job| holds_nodes(job) && job.state != JobState::Suspended;
        let unknown = Detail::default();
        for job in cluster.jobs.values().filter(runs) {
            used.add(job, form(&job.id).unwrap_or(&unknown));
        }
        used
    }

    /// Gives a suspended job its processors, if they are free on all of its nodes.
    pub(crate) fn take_if_free(&mut self, cluster: &Cluster, job: &Job, form: &Detail) -> bool {
        let is_free = |node: &String| {
            let cpus = cluster.nodes.get(node).map_or(0, |node| node.cpus);
            self.0.get(node).copied().unwrap_or(0) + cpus_on(job, form, node) <= cpus
        };
        let is_free = job.on.iter().all(is_free);
        if is_free {
            self.add(job, form);
        }
        is_free
    }

    fn add(&mut self, job: &Job, form: &Detail) {
        for node in &job.on {
            *self.0.entry(node.clone()).or_default() += cpus_on(job, form, node);
        }
    }
}

fn cpus_on(job: &Job, form: &Detail, node: &str) -> u64 {
    form.part_on(job, node).get(Kind::Cpus)
}
