//! Why a waiting job has no forecast.

use std::collections::BTreeSet;

use jiff::Timestamp;
use miserly_core::Span;
use miserly_units::duration;

use crate::live_limits::{LiveLimit, limit_of_reason};
use crate::{Cluster, Detail, Job, Limit, has_gpu_parts};

impl Cluster {
    /// Returns why a waiting job has no forecast, in words, if it has none: it waits for something else than nodes or the end of
    /// jobs that count for its limits. `nodes`: the nodes in service. `limits`: the limits that the policy knows.
    pub(crate) fn obstacle(
        &self,
        job: &Job,
        detail: Option<&Detail>,
        nodes: &BTreeSet<&str>,
        limits: &[LiveLimit<'_>],
    ) -> Option<String> {
        let down = |name: &String| self.partitions.get(name).is_none_or(|partition| partition.state != "up");
        let reason = job.reason.as_deref().unwrap_or_default();
        if job.is_held() {
            return Some("it is held".to_owned());
        }
        if let Some(name) = &job.reservation {
            return Some(format!("it uses the reservation {name}"));
        }
        if job.partitions.iter().all(down) {
            return Some("its partition is not up".to_owned());
        }
        if let Some(limit) = limits.iter().find(|limit| limit.excludes(job, detail)) {
            return Some(limit.words());
        }
        let by_node = job.gres.as_ref();
        let gres = by_node.into_iter().chain(detail.and_then(|detail| detail.gres_otherwise.as_ref()));
        if let Some(list) = gres.into_iter().find(|list| has_gpu_parts(list)) {
            return Some(format!("it asks for parts of GPUs, which are not simulated ({list})"));
        }
        if let Some(why) = detail.and_then(not_simulated) {
            return Some(why);
        }
        if let Some((owner, name)) = limit_of_reason(reason) {
            let is_meant = |limit: &&LiveLimit<'_>| limit.owner == owner && limit.name == name;
            let is_known = limits.iter().filter(is_meant).any(|limit| limit.jobs.contains(job.id.as_str()));
            return (!is_known).then(|| words(self, job, detail, reason));
        }
        if !job.waits_for_nodes() {
            return Some(words(self, job, detail, reason));
        }
        let required = detail.map_or(&[][..], |detail| &detail.nodes);
        if let Some(node) = required.iter().find(|node| !nodes.contains(node.as_str())) {
            return Some(format!("it must have the node {node}, which is not in service"));
        }
        let cpus: u64 = nodes.iter().filter_map(|node| self.nodes.get(*node)).map(|node| node.cpus).sum();
        (job.cpus > cpus).then(|| format!("it needs {} processors of {cpus} that are in service", job.cpus))
    }
}

/// Returns what a job asks for that is not simulated, if there is anything.
fn not_simulated(detail: &Detail) -> Option<String> {
    if let Some(licences) = &detail.licences {
        return Some(format!("it asks for licences, which are not simulated ({licences})"));
    }
    let needs = detail.needs(&Job::default());
    if let Some(list) = needs.features.as_ref().filter(|_| needs.has_unknown_features()) {
        return Some(format!("it asks for features in a form that is not simulated ({list})"));
    }
    let required = detail.nodes.len() as u64;
    (required > 0 && detail.least_nodes > required)
        .then(|| format!("it must have {} and other nodes, which is not simulated", detail.nodes.join(", ")))
}

/// Returns a reason of Slurm in words.
fn words(cluster: &Cluster, job: &Job, detail: Option<&Detail>, reason: &str) -> String {
    let partition = cluster.partition_of(job).unwrap_or_default();
    match reason {
        "Dependency" => match &job.after {
            Some(after) => format!("it waits for other jobs ({after})"),
            None => "it waits for other jobs".to_owned(),
        },
        "DependencyNeverSatisfied" => "it waits for a job that did not end as it must have".to_owned(),
        "BeginTime" => match detail.and_then(|detail| detail.eligible) {
            Some(begin) => format!("it may start from {} on", instant(begin)),
            None => "its begin has not come".to_owned(),
        },
        "JobArrayTaskLimit" => "as many tasks of its array run as may run at a time".to_owned(),
        "Licenses" => "it waits for licences".to_owned(),
        "PartitionTimeLimit" => {
            let longest = cluster.partitions.get(partition).map(|partition| partition.longest);
            match longest {
                Some(Limit::Seconds(longest)) => format!(
                    "its time limit is above that of the partition {partition}, {}",
                    duration(Span::from_secs(longest.cast_signed()).unwrap_or(Span::MAX))
                ),
                _ => format!("its time limit is above that of the partition {partition}"),
            }
        }
        "PartitionNodeLimit" => format!("the partition {partition} does not allow its number of nodes"),
        "PartitionDown" | "PartitionInactive" => "its partition is not up".to_owned(),
        _ if reason.starts_with("QOS") => {
            format!("a limit of its quality of service that is not simulated ({reason})")
        }
        _ if reason.starts_with("Assoc") => {
            format!("a limit of its account or user that is not simulated ({reason})")
        }
        _ => format!("Slurm's reason: {reason}"),
    }
}

fn instant(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(
        |_| seconds.to_string(),
        |at| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}
