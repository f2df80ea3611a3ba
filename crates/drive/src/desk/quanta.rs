//! Jobs that run for a quantum, and the jobs that are suspended for them (Chiang and Vernon §2.4).
//!
//! A job that has not ended by the end of its quantum leaves its node as an [`Opportunistic`] job does.
//!
//! A suspended job keeps its node and its memory. Slurm resumes it without a look at its processors: two jobs would share them.
//! So the driver asks for that only if they are free.

use std::collections::BTreeMap;

use miserly_core::{JobId, Kind, Pes, Placement, Share, SlotId, State, Time};
use miserly_slurm::{Cluster, Detail, Job, JobState};
use serde::{Deserialize, Serialize};

use super::case::{Case, Stage};
use super::opportunistic::Opportunistic;
use super::rebuild::{holds_nodes, on_hosts};
use super::{Desk, Step};
use crate::notes::Note;
use crate::orders::Order;

/// A run for a quantum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Quantum {
    /// Its start in Slurm, seconds since 1970.
    pub(super) start: Option<i64>,
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

    /// Takes in that the policy requeues a job: its quantum is over.
    pub(super) fn end_quantum(&mut self, at: Time, id: &str, cluster: &Cluster, step: &mut Step) {
        let Some((case, job)) = self.cases.get_mut(id).zip(cluster.jobs.get(id)) else { return };
        let quantum = case.facts.quantum.take();
        let on = match std::mem::take(&mut case.facts.stage) {
            Stage::Running => on_hosts(&self.site, job, &case.facts.form),
            // Slurm starts it yet, maybe.
            Stage::Placed { asked: 1.., nodes, .. } => {
                let Some(ledger) = self.driver.as_ref().map(|driver| driver.ledger()) else { return };
                let amount = case.handle.map(|job| ledger.machine().amount(&ledger.entry(job).request));
                nodes.iter().filter_map(|node| self.site.find(node).zip(amount)).collect()
            }
            Stage::Waiting | Stage::Placed { .. } => return,
        };
        let share = |(host, amount)| Share { host, amount, pes: Pes::Count };
        let place = Placement::across(SlotId(0), on.into_iter().map(share).collect());
        let start = quantum.and_then(|quantum| quantum.start).or(job.start.filter(|_| holds_nodes(job)));
        case.facts.opportunistic = Some(Opportunistic::leaves(at, &self.site, &place, start));
        step.changed = true;
        if let Some(start) = start {
            step.notes.push((id.to_owned(), Note::QuantumOver { ran: (at.secs() - start).max(0) }));
        }
    }

    /// Returns the orders that make Slurm suspend jobs and resume them as the ledger does.
    pub(super) fn orders_for_suspensions(&self, cluster: &Cluster) -> Vec<Order> {
        let mut orders = vec![];
        let mut used: Option<Used> = None;
        for (id, case) in self.cases.iter().filter(|(_, case)| case.facts.suspension.is_some()) {
            let Some(job) = cluster.jobs.get(id) else { continue };
            match (case.handle.is_some_and(|handle| self.has_suspended(handle)), &job.state) {
                (true, JobState::Running) => orders.push(Order::Suspend { job: id.clone() }),
                (false, JobState::Suspended) => {
                    let form = |id: &str| self.cases.get(id).map(|case| &case.facts.form);
                    let used = used.get_or_insert_with(|| Used::of(cluster, form));
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
                let stood = (at - Time::from_ticks(since)).ticks();
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

/// The processors that jobs use on each node. Those of suspended jobs are free.
pub(crate) struct Used(BTreeMap<String, u64>);

impl Used {
    /// Reads them from the jobs. `form` has the form of a job, if it is known.
    pub(crate) fn of<'a>(cluster: &Cluster, form: impl Fn(&str) -> Option<&'a Detail>) -> Used {
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
