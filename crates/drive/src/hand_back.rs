//! The end of driving: Slurm schedules its nodes again.

use std::collections::BTreeMap;
use std::path::Path;

use miserly_slurm::{Cluster, Job, JobState, Slurm};

use crate::desk::{Stored, StoredJob, Used};
use crate::{Drive, DriveError, Order, orders, store};

/// The outcome of [`Drive::hand_back`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandedBack {
    /// The orders that Slurm was given; none if there was nothing to hand back.
    pub orders: Vec<Order>,
    /// The jobs that the driver has suspended, and that stay so: their processors are in use.
    pub stay_suspended: Vec<String>,
    /// Whether the driver of the folder has ended. Otherwise it ends at its next step, and may have suspended further jobs.
    pub has_ended: bool,
}

impl Drive {
    /// Hands the nodes back to Slurm: placed jobs that have not started are no longer bound to nodes, and the reservation ends.
    ///
    /// With the folder of its state, a driver that runs ends at its next step ([`DriveError::HandedBack`]), jobs get the
    /// requests of their users back, and the jobs that the driver has suspended are resumed. One whose processors are in use
    /// stays suspended: the next call resumes it, if they are free then.
    ///
    /// # Errors
    /// If the cluster cannot be read or asked, or the folder has no state.
    pub fn hand_back(
        slurm: &Slurm,
        reservation: &str,
        folder: Option<&Path>,
    ) -> Result<HandedBack, DriveError> {
        let (stored, has_ended) = match folder {
            Some(folder) => store::hand_back(folder)?,
            None => (Stored::default(), true),
        };
        let cluster = Cluster::read(slurm)?;
        let end = cluster.reservations.get(reservation).map(|reservation| reservation.end);
        // One that has ended stays for a while, and may be asked for no second end.
        let is_active = end.is_some_and(|end| end > cluster.configuration.now + 1);
        let inside =
            |job: &&Job| job.state == JobState::Pending && job.reservation.as_deref() == Some(reservation);
        let back = |job: &Job| {
            let form = stored.jobs.get(&job.id).map(|job| &job.facts.form);
            let all = cluster.nodes.len() as u64;
            let count = form.map(|form| (form.least_nodes.max(1), form.most_nodes.unwrap_or(all)));
            Order::TakeBack {
                job: job.id.clone(),
                nodes: form.map(|form| form.nodes.clone()).unwrap_or_default(),
                count: count.unwrap_or((job.nodes.max(1), all)),
                releases: job.priority == orders::PLACED,
            }
        };
        let placed = cluster.jobs.values().filter(|_| is_active).filter(inside);
        let mut orders: Vec<Order> = placed.map(back).collect();
        for command in orders.iter().flat_map(Order::commands) {
            slurm.control(&command)?;
        }
        // Slurm may have started one of these meanwhile.
        let (resumed, stay_suspended) = resume_suspended(slurm, &stored.jobs)?;
        orders.extend(resumed);
        if is_active {
            let end = Order::HandBack { reservation: reservation.to_owned() };
            for command in end.commands() {
                if let Some(message) = slurm.control(&command)? {
                    return Err(DriveError::Rights { reservation: reservation.to_owned(), message });
                }
            }
            orders.push(end);
        }
        Ok(HandedBack { orders, stay_suspended, has_ended })
    }
}

/// Resumes the jobs that a driver has suspended, where their processors are free. Returns the orders, and the jobs that stay suspended.
fn resume_suspended(
    slurm: &Slurm,
    stored: &BTreeMap<String, StoredJob>,
) -> Result<(Vec<Order>, Vec<String>), DriveError> {
    let (mut resumed, mut others) = (vec![], vec![]);
    let suspended: Vec<_> = stored.iter().filter(|(_, job)| job.facts.suspension.is_some()).collect();
    if suspended.is_empty() {
        return Ok((resumed, others));
    }
    let cluster = Cluster::read(slurm)?;
    let mut used = Used::of(&cluster, |id| stored.get(id).map(|job| &job.facts.form));
    for (id, stored) in suspended {
        let Some(job) = cluster.jobs.get(id).filter(|job| job.state == JobState::Suspended) else { continue };
        let order = Order::Resume { job: id.clone() };
        let is_free = used.takes(&cluster, job, &stored.facts.form);
        if is_free && slurm.control(&order.commands()[0])?.is_none() {
            resumed.push(order);
        } else {
            others.push(id.clone());
        }
    }
    Ok((resumed, others))
}
