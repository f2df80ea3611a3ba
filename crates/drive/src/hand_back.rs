//! The end of driving: Slurm schedules its nodes again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use miserly_slurm::{Cluster, Job, JobState, Slurm};

use crate::comment::{CommentField, orders_to_clear};
use crate::scheduler::{Stored, StoredJob, UsedCpus};
use crate::{Drive, DriveError, Order, Settings, orders, store};

/// The outcome of [`Drive::hand_back`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandedBack {
    /// The name of the reservation.
    pub reservation: String,
    /// The orders that Slurm was given; none if there was nothing to hand back.
    pub orders: Vec<Order>,
    /// The jobs that the driver has suspended, and that stay so: their processors are in use.
    pub stay_suspended: Vec<String>,
    /// The nodes of these jobs, which stay reserved until the next call, but not for longer than the driver had reserved them.
    pub kept: Vec<String>,
    /// Whether the driver of the folder has ended. Otherwise it ends at its next step, and may have suspended further jobs.
    pub has_ended: bool,
}

impl Drive {
    /// Hands the nodes back to Slurm: placed jobs that have not started are no longer bound to nodes, and the reservation ends.
    ///
    /// With the folder of its state, a driver that runs ends at its next step ([`DriveError::HandedBack`]), jobs get the
    /// requests and comments of their users back, and the jobs that the driver has suspended are resumed. One whose processors are in use
    /// stays suspended, and its nodes stay reserved: the next call resumes it, if they are free then.
    ///
    /// # Errors
    /// If the cluster cannot be read or asked, the folder has no state, or the reservation is not that of a driver.
    pub fn hand_back(
        slurm: &Slurm,
        reservation: Option<&str>,
        folder: Option<&Path>,
    ) -> Result<HandedBack, DriveError> {
        Drive::hand_back_after(slurm, reservation, folder, store::hand_back)
    }

    /// Hands the nodes back as [`hand_back`](Drive::hand_back), if the driver of a folder is gone. One that starts meanwhile waits.
    /// Returns `None` if there is a driver, or never was one.
    ///
    /// # Errors
    /// As [`hand_back`](Drive::hand_back).
    pub fn hand_back_if_gone(slurm: &Slurm, folder: &Path) -> Result<Option<HandedBack>, DriveError> {
        let Some(_lock) = store::lock_unused(folder)? else { return Ok(None) };
        let end = |folder: &Path| Ok((store::read(folder)?.0, true));
        Drive::hand_back_after(slurm, None, Some(folder), end).map(Some)
    }

    /// Returns whether the driver of a folder is gone. There was none in a folder without a state.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub fn is_gone(folder: &Path) -> Result<bool, DriveError> {
        store::lock_unused(folder).map(|lock| lock.is_some())
    }

    /// Hands the nodes back. `end` ends the driver of the folder, and returns its state, and whether it has ended.
    fn hand_back_after(
        slurm: &Slurm,
        reservation: Option<&str>,
        folder: Option<&Path>,
        end: impl FnOnce(&Path) -> Result<(Stored, bool), DriveError>,
    ) -> Result<HandedBack, DriveError> {
        let stored = folder.map(store::read).transpose()?.and_then(|(stored, _)| stored.reservation);
        let reservation = reservation.or(stored.as_deref()).unwrap_or(Settings::RESERVATION);
        let cluster = Cluster::read(slurm)?;
        // One that has ended may be asked for no second end.
        let active = cluster.reservations.get(reservation);
        let active = active.filter(|one| one.is_active(cluster.configuration.now));
        if let Some(other) = active.filter(|one| !one.is_of_driver()) {
            let flags = other.flags.join(",");
            return Err(DriveError::NotOfDriver { reservation: reservation.to_owned(), flags });
        }
        let (stored, has_ended) = folder.map_or_else(|| Ok((Stored::default(), true)), end)?;
        let is_active = active.is_some();
        // A driver that runs has changed it until its end.
        let cluster = if folder.is_some() { Cluster::read(slurm)? } else { cluster };
        let mut orders =
            if is_active { take_back_placed(slurm, &cluster, reservation, &stored)? } else { vec![] };
        // Slurm may have started one of these meanwhile.
        let (resumed, stay_suspended) = resume_suspended(slurm, &stored.jobs)?;
        orders.extend(resumed);
        let suspended = stay_suspended.iter().filter_map(|job| cluster.jobs.get(job));
        let kept: BTreeSet<&String> = suspended.filter(|_| is_active).flat_map(|job| &job.on).collect();
        let kept: Vec<String> = kept.into_iter().cloned().collect();
        if is_active {
            orders.push(end_reservation(slurm, reservation, &kept)?);
        }
        orders.extend(clear_comments(slurm, &cluster, &stored)?);
        Ok(HandedBack { reservation: reservation.to_owned(), orders, stay_suspended, kept, has_ended })
    }
}

/// Takes the placed jobs back that have not started. Returns the orders.
fn take_back_placed(
    slurm: &Slurm,
    cluster: &Cluster,
    reservation: &str,
    stored: &Stored,
) -> Result<Vec<Order>, DriveError> {
    let is_inside =
        |job: &&Job| job.state == JobState::Pending && job.reservation.as_deref() == Some(reservation);
    let back = |job: &Job| {
        let form = stored.jobs.get(&job.id).map(|stored| &stored.job.form);
        let all = cluster.nodes.len() as u64;
        let count = form.map(|form| (form.least_nodes.max(1), form.most_nodes.unwrap_or(all)));
        Order::TakeBack {
            job: job.id.clone(),
            nodes: form.map(|form| form.nodes.clone()).unwrap_or_default(),
            without: form.map(|form| form.not_nodes.clone()).unwrap_or_default(),
            count: count.unwrap_or((job.nodes.max(1), all)),
            releases: job.priority == orders::PLACED,
        }
    };
    let orders: Vec<Order> = cluster.jobs.values().filter(is_inside).map(back).collect();
    for command in orders.iter().flat_map(Order::commands) {
        slurm.control(&command)?;
    }
    Ok(orders)
}

/// Ends the reservation of a driver, or keeps these nodes in it. Returns the order.
fn end_reservation(slurm: &Slurm, reservation: &str, kept: &[String]) -> Result<Order, DriveError> {
    let reservation = reservation.to_owned();
    let order = if kept.is_empty() {
        Order::HandBack { reservation: reservation.clone() }
    } else {
        // Otherwise Slurm would start other jobs there, before they can be resumed.
        Order::Span { reservation: reservation.clone(), nodes: kept.to_vec() }
    };
    for command in order.commands() {
        if let Some(message) = slurm.control(&command)? {
            return Err(DriveError::Rights { reservation, message });
        }
    }
    Ok(order)
}

/// Takes the promises out of the comments of jobs. Returns the orders.
fn clear_comments(slurm: &Slurm, cluster: &Cluster, stored: &Stored) -> Result<Vec<Order>, DriveError> {
    if stored.jobs.is_empty() {
        return Ok(vec![]);
    }
    let known = stored.jobs.keys().filter_map(|id| cluster.jobs.get(id));
    let both = [CommentField::Comment, CommentField::AdminComment];
    let orders = orders_to_clear(&both, known, cluster, &Cluster::comments(slurm)?);
    for command in orders.iter().flat_map(Order::commands) {
        // A job may have ended meanwhile.
        slurm.control(&command)?;
    }
    Ok(orders)
}

/// Resumes the jobs that a driver has suspended, where their processors are free. Returns the orders, and the jobs that stay suspended.
fn resume_suspended(
    slurm: &Slurm,
    stored: &BTreeMap<String, StoredJob>,
) -> Result<(Vec<Order>, Vec<String>), DriveError> {
    let (mut resumed, mut others) = (vec![], vec![]);
    let suspended: Vec<_> = stored.iter().filter(|(_, job)| job.job.is_suspended()).collect();
    if suspended.is_empty() {
        return Ok((resumed, others));
    }
    let cluster = Cluster::read(slurm)?;
    let mut used = UsedCpus::new(&cluster, |id| stored.get(id).map(|stored| &stored.job.form));
    for (id, stored) in suspended {
        let Some(job) = cluster.jobs.get(id).filter(|job| job.state == JobState::Suspended) else { continue };
        let order = Order::Resume { job: id.clone() };
        let is_free = used.take_if_free(&cluster, job, &stored.job.form);
        if is_free && slurm.control(&order.commands()[0])?.is_none() {
            resumed.push(order);
        } else {
            others.push(id.clone());
        }
    }
    Ok((resumed, others))
}
