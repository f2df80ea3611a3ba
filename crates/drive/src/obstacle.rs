//! Why a job cannot be planned.

use miserly_slurm::{Cluster, Detail, Job};

use crate::Settings;

use crate::site::Site;

/// Why a job cannot be planned.
pub(crate) struct Obstacle {
    pub(crate) why: String,
    /// Whether it stays until something changes. Otherwise it is Slurm's reason, which may be an old one.
    pub(crate) is_fixed: bool,
}

/// Returns why a waiting job cannot be planned now, if it cannot.
pub(crate) fn obstacle(
    settings: &Settings,
    site: &Site,
    cluster: &Cluster,
    job: &Job,
    form: &Detail,
) -> Option<Obstacle> {
    let why = |why: String| Some(Obstacle { why, is_fixed: true });
    if form.is_unreadable {
        return why("Slurm's description of it cannot be read: is there a line break in its name?".to_owned());
    }
    let down = |name: &String| cluster.partitions.get(name).is_none_or(|partition| partition.state != "up");
    if job.is_held() {
        return why(match job.reason.as_deref() {
            Some("BadConstraints") => {
                "Slurm says that its request can never be met (BadConstraints)".to_owned()
            }
            _ => "it is held".to_owned(),
        });
    }
    if job.reservation.as_ref().is_some_and(|name| *name != settings.reservation) {
        return why("it uses a reservation".to_owned());
    }
    if job.partitions.iter().all(down) {
        return why("its partition is not up".to_owned());
    }
    if job.after.is_some() {
        return why("it waits for other jobs".to_owned());
    }
    let reason = job.reason.as_deref().unwrap_or_default();
    // A reason that stays until Slurm looks again is no obstacle once the begin is over.
    let waits = matches!(
        reason,
        "" | "Priority"
            | "Resources"
            | "Cleaning"
            | "BeginTime"
            | "Reservation"
            | "Dependency"
            // The driver counts the tasks of arrays by itself.
            | "JobArrayTaskLimit"
    ) || reason.starts_with("ReqNodeNotAvail")
        || reason.starts_with("Nodes required for job are DOWN");
    if !waits {
        return Some(Obstacle { why: format!("Slurm's reason: {reason}"), is_fixed: false });
    }
    if let Some(gres) = &form.gres_otherwise {
        return why(format!("generic resources by job, task or socket are not supported ({gres})"));
    }
    if form.features.as_deref().is_some_and(|list| list.contains(['|', '[', '*', '(', '!'])) {
        return why("features with alternatives or counts are not supported".to_owned());
    }
    if let Some(cause) = site.unfit_for_one_node(job, form) {
        return why(format!("{} {cause}", settings.policy));
    }
    let allowed = site.allowed(job, form, cluster.configuration.now);
    if (allowed.len() as u64) < form.least_nodes.max(form.nodes.len() as u64).max(1) {
        return why("too few nodes in service are of the kind that it asks for".to_owned());
    }
    None
}
