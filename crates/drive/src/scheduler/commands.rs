//! The requests to Slurm.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::Span;
use miserly_slurm::{Cluster, Detail, Job, JobState, Reservation};

use super::job::{DrivenJob, DrivenState};
use super::{Opportunistic, START_TIMEOUT, Scheduler, Step};
use crate::instant::instant;
use crate::notes::Note;
use crate::orders::{Order, PLACED, minutes};

/// The users of the jobs that are about to start, and the orders for jobs.
struct JobOrders {
    users: BTreeSet<u32>,
    orders: Vec<Order>,
}

impl Scheduler {
    /// Returns whether there are placements that are not sent to Slurm yet. `occupied` are the nodes to wait for.
    pub(super) fn has_new_placements(&self, cluster: &Cluster, occupied: &BTreeSet<String>) -> bool {
        let held = self.held_by_starts();
        let is_new = |(id, job): (&String, &DrivenJob)| {
            let is_assigned = || {
                let is_assigned = matches!(job.state(), DrivenState::Assigned { .. });
                is_assigned && !job.waits_for(occupied) && !held.contains(id)
            };
            job.opportunistic().map_or_else(is_assigned, Opportunistic::is_new)
                && cluster.jobs.contains_key(id)
        };
        self.jobs.iter().any(is_new)
    }

    /// Returns the jobs that are placed only when others run. Slurm fills all nodes of a job but the last one, and would take the
    /// processors of the jobs that are to start there.
    fn held_by_starts<'a>(&'a self) -> BTreeSet<String> {
        let order = |(id, job): (_, &'a DrivenJob)| {
            let to = job.assignment()?;
            let is_assigned = matches!(job.state(), DrivenState::Assigned { .. });
            // Those of one node wait for no other.
            Some(((is_assigned, to.since, to.nodes.len() > 1, job.number), id, to))
        };
        let mut starting: Vec<_> = self.jobs.iter().filter_map(order).collect();
        starting.sort_unstable_by_key(|(order, ..)| *order);
        let mut taken: BTreeSet<&String> = BTreeSet::new();
        let mut held = BTreeSet::new();
        for ((is_assigned, ..), id, to) in starting {
            if is_assigned && to.filled().any(|node| taken.contains(node)) {
                held.insert(id.clone());
            }
            taken.extend(&to.nodes);
        }
        held
    }

    /// Finds the commands that make Slurm follow the ledger. `occupied` are the nodes to wait for.
    pub(super) fn give_orders(
        &mut self,
        cluster: &Cluster,
        read: &BTreeMap<String, Detail>,
        occupied: &BTreeSet<String>,
        step: &mut Step,
    ) {
        let reservation = self.settings.reservation.clone();
        let present = cluster.reservations.get(&reservation);
        self.hold_nodes(cluster, present, step);
        // A job is suspended before another one is placed on its processors.
        step.orders.append(&mut self.orders_for_suspensions(cluster, occupied));
        let owner = self.settings.owner;
        let held = self.held_by_starts();
        let mut jobs = JobOrders { users: [owner].into(), orders: vec![] };
        let mut driven = std::mem::take(&mut self.jobs);
        for (id, known) in &mut driven {
            if let Some(job) = cluster.jobs.get(id) {
                let is_held = known.waits_for(occupied) || held.contains(id);
                self.order_for_job(cluster, (known, job), is_held, &mut jobs, step);
            }
        }
        self.jobs = driven;
        let admitted = present.map(admitted_users).unwrap_or_default();
        let mut more = &jobs.users - &admitted;
        if present.is_none() {
            // The reservation is made with its owner.
            more.remove(&owner);
        }
        if !more.is_empty() {
            step.orders.push(Order::Admit { reservation: reservation.clone(), users: more });
        }
        step.orders.append(&mut jobs.orders);
        let fewer = &admitted - &jobs.users;
        if !fewer.is_empty() {
            step.orders.push(Order::Dismiss { reservation, users: fewer });
        }
        self.write_comments(cluster, read, step);
    }

    /// Finds the commands that reserve the nodes.
    fn hold_nodes(&self, cluster: &Cluster, present: Option<&Reservation>, step: &mut Step) {
        let reservation = self.settings.reservation.clone();
        let nodes: Vec<String> = self.site.names().map(str::to_owned).collect();
        let minutes = minutes(self.settings.fallback);
        let Some(present) = present else {
            let owner = self.settings.owner;
            step.orders.push(Order::Reserve { reservation, nodes, owner, minutes });
            return;
        };
        let has: BTreeSet<&String> = present.nodes.iter().collect();
        if has != nodes.iter().collect() {
            step.orders.push(Order::Span { reservation: reservation.clone(), nodes });
        }
        let left = instant(present.end) - instant(cluster.configuration.now);
        if left.secs() < minutes * 60 * 3 / 4 {
            step.orders.push(Order::Renew { reservation, minutes });
        }
    }

    /// Finds the command that makes Slurm follow the state of a job. `is_held`: it is not placed yet.
    fn order_for_job(
        &self,
        cluster: &Cluster,
        (known, job): (&mut DrivenJob, &Job),
        is_held: bool,
        jobs: &mut JobOrders,
        step: &mut Step,
    ) {
        let is_pending = job.state == JobState::Pending;
        let early = known.opportunistic();
        let is_placed =
            early.map_or_else(|| known.assignment().is_some() && !is_held, Opportunistic::is_placed);
        // The user of a placed job stays admitted.
        if is_pending && is_placed {
            jobs.users.insert(job.user);
        }
        let order = if early.is_some() {
            let (reservation, most) = (&self.settings.reservation, self.site.len() as u64);
            known.order_for_early_run(self.now, job, reservation, most, step)
        } else if is_pending {
            self.order_for_pending(cluster, (known, job), is_placed, step)
        } else {
            None
        };
        jobs.orders.extend(order);
    }

    /// Returns the command for a job that waits in Slurm. `is_placed`: it is to start there now.
    fn order_for_pending(
        &self,
        cluster: &Cluster,
        (known, job): (&mut DrivenJob, &Job),
        is_placed: bool,
        step: &mut Step,
    ) -> Option<Order> {
        let is_inside = job.reservation.as_ref() == Some(&self.settings.reservation);
        match known.state() {
            DrivenState::Placed { .. } if is_inside => {
                // A slurmctld that was killed forgets that the driver let a requeued job start at once.
                let is_kept = job.reason.as_deref() == Some("BeginTime") && known.lost > Span::ZERO;
                is_kept.then(|| Order::Ready { job: job.id.clone() })
            }
            _ if is_placed => self.place(cluster, (known, job), step),
            // It had another place before, where Slurm might start it yet.
            DrivenState::Waiting(_) | DrivenState::Assigned { .. } if is_inside || job.priority == PLACED => {
                Some(take_back(job, &known.form, self.site.len() as u64))
            }
            _ => None,
        }
    }

    /// Passes the placement of a job on to Slurm.
    fn place(
        &self,
        cluster: &Cluster,
        (known, job): (&mut DrivenJob, &Job),
        step: &mut Step,
    ) -> Option<Order> {
        let assignment = known.assignment()?.clone();
        if known.place(self.now) {
            let waited = self.now - assignment.since;
            let promise = known.promise.as_mut().filter(|_| waited > START_TIMEOUT);
            if let Some(promise) = promise.filter(|promise| promise.latest < self.now) {
                let why = || format!("its nodes were free only after {} s", waited.secs());
                promise.broken.get_or_insert_with(why);
            }
            let note = Note::Placed { nodes: assignment.nodes.clone(), reason: assignment.reason };
            step.notes.push((job.id.clone(), note));
        }
        step.changed = true;
        let reservation = &self.settings.reservation;
        Some(place_on(cluster, &job.id, reservation, &known.form, (assignment.nodes, assignment.last)))
    }
}

/// Returns the order that makes a placed job an ordinary waiting job. `most` is the number of nodes.
pub(super) fn take_back(job: &Job, form: &Detail, most: u64) -> Order {
    let count = (form.least_nodes.max(1), form.most_nodes.unwrap_or(most).max(1));
    // A hold of a user or an administrator stays. A request that Slurm cannot meet is held because of the placement.
    let releases = job.priority == PLACED || job.reason.as_deref() == Some("BadConstraints");
    let (nodes, without) = (form.nodes.clone(), form.not_nodes.clone());
    Order::TakeBack { job: job.id.clone(), nodes, without, count, releases }
}

/// Returns the order that makes Slurm start a job on these nodes. One of them may be filled `last`.
pub(super) fn place_on(
    cluster: &Cluster,
    id: &str,
    reservation: &str,
    form: &Detail,
    (nodes, last): (Vec<String>, Option<String>),
) -> Order {
    let without = match &last {
        Some(_) => cluster.nodes.keys().filter(|node| !nodes.contains(node)).cloned().collect(),
        None => form.not_nodes.clone(),
    };
    Order::Place { job: id.to_owned(), reservation: reservation.to_owned(), nodes, last, without }
}

/// Returns the users whose jobs a reservation admits, by number.
fn admitted_users(reservation: &Reservation) -> BTreeSet<u32> {
    reservation.users.as_deref().unwrap_or_default().split(',').filter_map(user_number).collect()
}

/// Returns the number of a user in the list of a reservation: its number, or its name on this machine.
fn user_number(name: &str) -> Option<u32> {
    let name = name.trim();
    name.parse().ok().or_else(|| Some(nix::unistd::User::from_name(name).ok()??.uid.as_raw()))
}
