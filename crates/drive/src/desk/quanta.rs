//! Jobs that run for a quantum, and the jobs that are suspended for them (Chiang and Vernon §2.4).
//!
//! A job that has not ended by the end of its quantum leaves its node as an [`Opportunistic`] job does.
//!
//! A suspended job keeps its node and its memory. Slurm resumes it without a look at its processors: two jobs would share them.
//! So the driver asks for that only if they are free.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{Driver, JobId, Kind, Span, State, Time};
use miserly_slurm::{Cluster, Detail, Job, JobState, Limit};
use serde::{Deserialize, Serialize};

use super::case::{Case, Facts, Stage};
use super::opportunistic::Opportunistic;
use super::rebuild::{holds_nodes, on_all_hosts, placement};
use super::{AWAY, Desk, Step};
use crate::notes::Note;
use crate::orders::Order;

/// A run for a quantum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Quantum {
    /// The end of the quantum, in ticks.
    until: i64,
    /// The start of the run in Slurm, seconds since 1970.
    pub(super) start: Option<i64>,
}

impl Quantum {
    pub(super) fn new(until: Time) -> Quantum {
        Quantum { until: until.ticks(), start: None }
    }

    /// Returns the end of the quantum.
    pub(super) fn until(self) -> Time {
        Time::from_ticks(self.until)
    }
}

/// A suspension of a job by the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Suspension {
    /// The instant at which it was seen suspended, in ticks.
    since: Option<i64>,
}

impl Desk {
    /// Takes in that the policy suspends a job. Returns whether it may: the job of a partition that is not driven goes on, and so
    /// does one that Slurm has suspended for another reason.
    pub(super) fn suspend(&mut self, id: &str, cluster: &Cluster, step: &mut Step) -> bool {
        let driven = self.settings.partitions(cluster);
        let is_driven = |job: &&Job| job.partitions.iter().any(|name| driven.contains(name));
        let runs = cluster.jobs.get(id).filter(is_driven).is_some_and(|job| job.state == JobState::Running);
        let Some(case) = self.cases.get_mut(id).filter(|case| runs && case.facts.stage == Stage::Running)
        else {
            return false;
        };
        case.facts.suspension = Some(Suspension::default());
        step.notes.push((id.to_owned(), Note::Suspended));
        true
    }

    /// Returns the time for which the driver has had a job suspended until now, if Slurm has it suspended still.
    pub(super) fn stood(now: Time, facts: &Facts) -> Span {
        let since = facts.suspension.and_then(|suspension| suspension.since).map(Time::from_ticks);
        Span::from_ticks(facts.stood) + since.map_or(Span::ZERO, |since| (now - since).max(Span::ZERO))
    }

    /// Returns whether a job that the ledger has suspended makes room for a job that is placed.
    pub(super) fn is_needed(&self, victim: JobId) -> bool {
        let Some(ledger) = self.driver.as_ref().map(Driver::ledger) else { return false };
        let Some(State::Suspended { by, .. }) = ledger.get(victim).map(|entry| &entry.state) else {
            return false;
        };
        let is_for = |case: &Case| {
            let entry = case.handle.and_then(|job| ledger.get(job));
            entry.is_some_and(|entry| entry.admitted == *by)
        };
        self.cases.values().filter(|case| case.facts.quantum.is_some()).any(is_for)
    }

    /// Takes in that the policy requeues a job: its quantum is over.
    pub(super) fn end_quantum(&mut self, at: Time, id: &str, cluster: &Cluster, step: &mut Step) {
        let Some((case, job)) = self.cases.get_mut(id).zip(cluster.jobs.get(id)) else { return };
        let quantum = case.facts.quantum.take();
        let on = match std::mem::take(&mut case.facts.stage) {
            Stage::Running => on_all_hosts(&self.site, job, &case.facts.form),
            // Slurm starts it yet, maybe.
            Stage::Placed { asked: 1.., nodes, .. } => {
                let Some(ledger) = self.driver.as_ref().map(Driver::ledger) else { return };
                let amount = case.handle.map(|job| ledger.machine().amount(&ledger.entry(job).request));
                nodes.iter().filter_map(|node| self.site.find(node).zip(amount)).collect()
            }
            Stage::Waiting | Stage::Placed { .. } => return,
        };
        let start = quantum.and_then(|quantum| quantum.start).or(job.start.filter(|_| holds_nodes(job)));
        case.facts.opportunistic = Some(Opportunistic::leaves(at, &self.site, &placement(on), start));
        step.changed = true;
        if let Some(start) = start {
            let ran = (at.secs() - start).max(0);
            case.facts.lost = case.facts.lost.max(ran);
            step.notes.push((id.to_owned(), Note::QuantumOver { ran }));
        }
    }

    /// Ends the quanta of jobs that are not in the ledger, because their nodes are out of service.
    pub(super) fn end_other_quanta(&mut self, cluster: &Cluster, step: &mut Step) {
        let is_over = |quantum: Quantum| quantum.until() <= self.now;
        let is_other = |case: &Case| case.handle.is_none() && case.facts.quantum.is_some_and(is_over);
        let others: Vec<String> =
            self.cases.iter().filter(|(_, case)| is_other(case)).map(|(id, _)| id.clone()).collect();
        for id in others {
            self.end_quantum(self.now, &id, cluster, step);
        }
    }

    /// Has jobs go on whose quantum was over long ago, while there was no driver, if no suspended job waits for their nodes.
    pub(super) fn let_long_runs_go_on(&mut self, cluster: &Cluster, step: &mut Step) {
        let wanted: BTreeSet<String> = self.nodes_of_suspended(cluster).cloned().collect();
        for (id, case) in &mut self.cases {
            let Some(quantum) = case.facts.quantum.filter(|quantum| self.now - quantum.until() > AWAY) else {
                continue;
            };
            let goes_on = |job: &Job| holds_nodes(job) && !job.on.iter().any(|node| wanted.contains(node));
            if cluster.jobs.get(id).is_some_and(goes_on) {
                // One that was not seen running yet gets its record with that.
                step.starts.extend(quantum.start.map(|start| case.facts.record(id, start)));
                case.facts.quantum = None;
                step.changed = true;
                self.stale = true;
            }
        }
    }

    /// Returns the nodes of the jobs that the driver has suspended.
    pub(super) fn nodes_of_suspended<'a>(&'a self, cluster: &'a Cluster) -> impl Iterator<Item = &'a String> {
        let suspended = self.cases.iter().filter(|(_, case)| case.facts.suspension.is_some());
        suspended.filter_map(|(id, _)| cluster.jobs.get(id)).flat_map(|job| &job.on)
    }

    /// Returns the orders that make Slurm suspend jobs and resume them as the ledger does. `left` are the nodes to wait for.
    pub(super) fn orders_for_suspensions(&self, cluster: &Cluster, left: &BTreeSet<String>) -> Vec<Order> {
        let mut orders = vec![];
        let mut used: Option<Used> = None;
        // Slurm may start a placed job that is taken back in this step. Its processors are not free before the next one.
        let is_taken_back = |(id, case): (&String, &Case)| {
            let job = cluster.jobs.get(id).filter(|job| job.state == JobState::Pending);
            let is_inside =
                job.is_some_and(|job| job.reservation.as_ref() == Some(&self.settings.reservation));
            // Slurm keeps one that was just requeued from starting.
            let may_start = case.facts.opportunistic.as_ref().is_none_or(Opportunistic::holds_nodes);
            is_inside && may_start && case.facts.stage == Stage::Waiting
        };
        let is_settled = !self.cases.iter().any(is_taken_back);
        for (id, case) in self.cases.iter().filter(|(_, case)| case.facts.suspension.is_some()) {
            let Some(job) = cluster.jobs.get(id) else { continue };
            match (case.handle.is_some_and(|handle| self.has_suspended(handle)), &job.state) {
                // No job is placed yet on a node to wait for.
                (true, JobState::Running) if job.on.iter().all(|node| !left.contains(node)) => {
                    orders.push(Order::Suspend { job: id.clone() });
                }
                (false, JobState::Suspended) if is_settled => {
                    let form = |id: &str| self.cases.get(id).map(|case| &case.facts.form);
                    let used = used.get_or_insert_with(|| Used::new(cluster, form));
                    if used.takes(cluster, job, &case.facts.form) {
                        orders.push(Order::Resume { job: id.clone() });
                    }
                }
                _ => {}
            }
        }
        orders
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

impl Case {
    /// Takes in whether Slurm has the job suspended, and the ledger. Returns whether its end has moved.
    pub(super) fn follow_suspension(
        &mut self,
        at: Time,
        job: &Job,
        in_ledger: bool,
        step: &mut Step,
    ) -> bool {
        let Some(Suspension { since }) = self.facts.suspension else { return false };
        match (job.state == JobState::Suspended, since) {
            (true, None) => {
                self.facts.suspension = Some(Suspension { since: Some(at.ticks()) });
                step.changed = true;
            }
            (false, None) if !in_ledger => {
                self.facts.suspension = None;
                step.changed = true;
            }
            (false, Some(since)) => {
                // If it was not the driver that resumed it, it is suspended again.
                self.facts.suspension = in_ledger.then(Suspension::default);
                let stood =
                    (at - Time::from_ticks(since)).ticks().min(moved_by(job) - self.facts.stood).max(0);
                self.facts.stood += stood;
                step.changed = true;
                step.notes.push((job.id.clone(), Note::Resumed { after: stood / 1_000_000 }));
                return !in_ledger;
            }
            _ => {}
        }
        false
    }
}

/// Returns the time by which the end of a job has moved, in ticks: without a driver, others may have resumed it.
fn moved_by(job: &Job) -> i64 {
    match (job.start, job.end, job.limit) {
        (Some(start), Some(end), Limit::Seconds(limit)) => {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            end.saturating_sub(start).saturating_sub(limit).saturating_add(1).saturating_mul(1_000_000)
        }
        _ => i64::MAX,
    }
}

/// The processors that jobs use on each node. Those of suspended jobs are free.
pub(crate) struct Used(BTreeMap<String, u64>);

impl Used {
    /// Reads them from the jobs. `form` has the form of a job, if it is known.
    pub(crate) fn new<'a>(cluster: &Cluster, form: impl Fn(&str) -> Option<&'a Detail>) -> Used {
        let mut used = Used(BTreeMap::new());
        let runs = |job: &&Job| holds_nodes(job) && job.state != JobState::Suspended;
        let unknown = Detail::default();
        for job in cluster.jobs.values().filter(runs) {
            used.add(job, form(&job.id).unwrap_or(&unknown));
        }
        used
    }

    /// Gives a suspended job its processors, if they are free on all of its nodes.
    pub(crate) fn takes(&mut self, cluster: &Cluster, job: &Job, form: &Detail) -> bool {
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
