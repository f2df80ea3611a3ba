//! Why a job cannot be planned.

use miserly_slurm::{Cluster, Detail, Job, has_gpu_parts};

use crate::Settings;
use crate::instant::instant;
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
    let fixed = |why| Obstacle { why, is_fixed: true };
    if let Some(why) = obstacle_of_state(settings, cluster, job, form) {
        return Some(fixed(why));
    }
    if !waits_for_driver(job) {
        let reason = job.reason.as_deref().unwrap_or_default();
        return Some(Obstacle { why: format!("Slurm's reason: {reason}"), is_fixed: false });
    }
    obstacle_of_form(settings, site, cluster, job, form).map(fixed)
}

/// Returns why a job cannot be planned in its state, if it cannot.
fn obstacle_of_state(settings: &Settings, cluster: &Cluster, job: &Job, form: &Detail) -> Option<String> {
    let is_down =
        |name: &String| cluster.partitions.get(name).is_none_or(|partition| partition.state != "up");
    let why = if form.is_unreadable {
        "Slurm's description of it cannot be read: is there a line break in its name?"
    } else if job.is_held() && job.reason.as_deref() == Some("BadConstraints") {
        "Slurm says that its request can never be met (BadConstraints)"
    } else if job.is_held() {
        "it is held"
    } else if job.reservation.as_ref().is_some_and(|name| *name != settings.reservation) {
        "it uses a reservation"
    } else if job.partitions.iter().all(is_down) {
        "its partition is not up"
    } else if job.after.is_some() {
        "it waits for other jobs"
    } else {
        return None;
    };
    Some(why.to_owned())
}

/// Returns whether a job waits for the driver by Slurm's reason. A reason that stays until Slurm looks again is no obstacle once the
/// begin is over, and the driver counts the tasks of arrays by itself.
fn waits_for_driver(job: &Job) -> bool {
    let reason = job.reason.as_deref().unwrap_or_default();
    job.names_nodes_as_reason()
        || matches!(reason, "BeginTime" | "Reservation" | "Dependency" | "JobArrayTaskLimit")
}

/// Returns why a job cannot be planned in its form, if it cannot.
fn obstacle_of_form(
    settings: &Settings,
    site: &Site,
    cluster: &Cluster,
    job: &Job,
    form: &Detail,
) -> Option<String> {
    if let Some(gres) = &form.gres_otherwise {
        return Some(format!("generic resources by job, task or socket are not supported ({gres})"));
    }
    if let Some(gres) = form.gres_per_node.as_ref().filter(|list| has_gpu_parts(list)) {
        return Some(format!("parts of GPUs are not supported ({gres})"));
    }
    if form.features.as_deref().is_some_and(|list| list.contains(['|', '[', '*', '(', '!'])) {
        return Some("features with alternatives or counts are not supported".to_owned());
    }
    if let Some(cause) = site.unfit_for_one_node(job, form) {
        return Some(format!("{} {cause}", settings.policy));
    }
    let allowed = site.allowed(job, form, instant(cluster.configuration.now));
    let needed = form.least_nodes.max(form.nodes.len() as u64).max(1);
    ((allowed.len() as u64) < needed)
        .then(|| "too few nodes in service are of the kind that it asks for".to_owned())
}
