//! `miserly slurm queue` and `miserly queue --slurm`: the jobs of a cluster, and the promises to them.

use std::collections::BTreeMap;
use std::path::Path;

use miserly_core::Time;
use miserly_drive::{DriverComment, QueuedJob, StartRecord, queue as queued};
use miserly_slurm::{Cluster, Job, JobState, Slurm};
use miserly_view::plain;
use serde::Serialize;

use super::instant;
use crate::args::SlurmQueueArgs;
use crate::commands::live::{counted, matches_pattern, table};
use crate::commands::users::Users;
use crate::output::{print, print_json};

pub(super) fn queue(args: &SlurmQueueArgs) -> anyhow::Result<()> {
    if let Some(state) = &args.state {
        return of_driver(state, args.json);
    }
    let wanted = ClusterFilter {
        mine: args.mine,
        user: args.user.as_deref(),
        partition: args.partition.as_deref(),
        name: None,
    };
    cluster_queue(&args.cluster.slurm(), &wanted, args.json)
}

/// The jobs of a cluster that are listed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterFilter<'a> {
    /// Only those of the caller.
    pub(crate) mine: bool,
    /// Those of a user, by name or number.
    pub(crate) user: Option<&'a str>,
    /// Those of a partition.
    pub(crate) partition: Option<&'a str>,
    /// Those with a name of this pattern.
    pub(crate) name: Option<&'a str>,
}

impl ClusterFilter<'_> {
    fn admits(&self, job: &Job, user: &str) -> bool {
        (!self.mine || job.user == rustix::process::geteuid().as_raw())
            && self.user.is_none_or(|wanted| wanted == user || wanted.parse() == Ok(job.user))
            && self.partition.is_none_or(|partition| job.partitions.iter().any(|one| one == partition))
            && self.name.is_none_or(|name| matches_pattern(name, &job.name))
    }
}

/// A job of a cluster, with the promise in its comment.
#[derive(Serialize)]
struct ClusterJob {
    job: String,
    name: String,
    user: String,
    partition: String,
    cpus: u64,
    state: String,
    /// The start of a job that runs, seconds since 1970.
    start: Option<i64>,
    /// The latest start of a waiting job, as the driver wrote it.
    starts_by: Option<String>,
    /// Its likely start, as the driver wrote it.
    likely: Option<String>,
    /// Why it waits: in the words of the driver, or else in Slurm's.
    why: Option<String>,
}

/// Prints the jobs that Slurm shows, with the promises in their comments.
pub(crate) fn cluster_queue(slurm: &Slurm, wanted: &ClusterFilter<'_>, json: bool) -> anyhow::Result<()> {
    let jobs = cluster_jobs(slurm, wanted)?;
    if json { print_json(&jobs) } else { print(&jobs_text(&jobs)) }
}

/// Returns the jobs that Slurm shows as a table.
pub(crate) fn cluster_queue_text(slurm: &Slurm, wanted: &ClusterFilter<'_>) -> anyhow::Result<String> {
    Ok(jobs_text(&cluster_jobs(slurm, wanted)?))
}

fn cluster_jobs(slurm: &Slurm, wanted: &ClusterFilter<'_>) -> anyhow::Result<Vec<ClusterJob>> {
    let mut users = Users::default();
    let mut found = vec![];
    for (job, comments) in Cluster::jobs_with_comments(slurm)? {
        let user = users.name(job.user);
        if !wanted.admits(&job, &user) {
            continue;
        }
        let waits = job.state == JobState::Pending;
        // That of a running job may be from its wait.
        let comment = DriverComment::read(&comments)
            .filter(|comment| waits || comment.is_opportunistic())
            .unwrap_or_default();
        let planned = comment.starts_by.is_some() || comment.likely.is_some();
        let why = comment.why.or_else(|| job.reason.clone().filter(|_| waits && !planned));
        found.push(ClusterJob {
            job: job.id,
            name: plain(&job.name),
            user,
            partition: job.partitions.join(","),
            cpus: job.cpus,
            state: job.state.as_str().to_owned(),
            start: job.start.filter(|_| !waits),
            starts_by: comment.starts_by.as_deref().map(plain),
            likely: comment.likely.as_deref().map(plain),
            why: why.as_deref().map(plain),
        });
    }
    // A job in it shows that it is there.
    if let (true, Some(partition)) = (found.is_empty(), wanted.partition) {
        Cluster::find_partition(slurm, partition)?;
    }
    Ok(found)
}

fn jobs_text(jobs: &[ClusterJob]) -> String {
    let none = || "-".to_owned();
    let row = |job: &ClusterJob| {
        let by = job.starts_by.as_ref().map(|by| format!("by {}", by.replacen('T', " ", 1)));
        let start = job.start.map(instant).or(by).unwrap_or_else(none);
        vec![
            job.job.clone(),
            job.name.clone(),
            job.user.clone(),
            job.partition.clone(),
            job.cpus.to_string(),
            job.state.clone(),
            start,
            job.likely.as_ref().map_or_else(none, |likely| likely.replacen('T', " ", 1)),
            job.why.clone().unwrap_or_default(),
        ]
    };
    let header = ["JOB", "NAME", "USER", "PARTITION", "CPUS", "STATE", "START", "LIKELY", "WHY"];
    table(&header, &["CPUS"], jobs.iter().map(row))
}

/// The document of a driver's jobs.
#[derive(Serialize)]
struct DriverDoc {
    jobs: Vec<QueuedJob>,
    started: u64,
    promised: u64,
    kept: u64,
    /// Of these, jobs whose promise had been moved later.
    moved: Vec<StartRecord>,
    /// Jobs that started after their first promise.
    late: Vec<StartRecord>,
}

fn of_driver(state: &Path, json: bool) -> anyhow::Result<()> {
    let (jobs, starts) = queued(state)?;
    let kept: Vec<bool> = starts.iter().filter_map(StartRecord::is_kept).collect();
    let is_moved = |start: &&StartRecord| start.is_kept() == Some(true) && start.last > start.first;
    let document = DriverDoc {
        jobs,
        started: starts.len() as u64,
        promised: kept.len() as u64,
        kept: kept.iter().filter(|kept| **kept).count() as u64,
        moved: starts.iter().filter(is_moved).cloned().collect(),
        late: starts.into_iter().filter(|start| start.is_kept() == Some(false)).collect(),
    };
    if json { print_json(&document) } else { print(&driver_text(&document)) }
}

fn driver_text(document: &DriverDoc) -> String {
    let time = |at: Option<Time>| at.map_or_else(|| "-".to_owned(), |at| instant(at.secs()));
    let rows = document.jobs.iter().filter(|job| job.stage != "running").map(|job| {
        let why = match (&job.why, &job.broken) {
            (Some(why), _) => plain(why),
            (None, Some(broken)) => format!("promise broken: {broken}"),
            (None, None) => String::new(),
        };
        let times = [job.latest, job.first, job.planned, job.likely].map(time);
        [job.job.clone(), job.stage.to_owned()].into_iter().chain(times).chain([why]).collect()
    });
    let text = table(&["JOB", "STATE", "STARTS BY", "FIRST PROMISE", "PLANNED", "LIKELY", "WHY"], &[], rows);
    let late = document.late.iter().map(|start| {
        let why = start.broken.as_deref().unwrap_or("no cause is known");
        format!(
            "late: job {}, promised by {}, started {}: {why}\n",
            start.job,
            time(start.first),
            time(Some(start.start))
        )
    });
    let mut moved: BTreeMap<&str, u64> = BTreeMap::new();
    for start in &document.moved {
        *moved.entry(start.broken.as_deref().unwrap_or("no cause is known")).or_default() += 1;
    }
    let moved = moved.iter().map(|(why, jobs)| {
        format!("kept, but moved later meanwhile: the promises of {}: {why}\n", counted(*jobs, "job"))
    });
    text + &format!(
        "{} started, {} with a promise, {} of them by their first promise\n",
        counted(document.started, "job"),
        document.promised,
        document.kept
    ) + &moved.collect::<String>()
        + &late.collect::<String>()
}
