//! `miserly slurm`: a Slurm cluster. Only `drive`, `hand-back` and `check --probe` change it.

mod audit;

mod check;

mod drive;

mod forecast;

mod hand_back;

mod holes;

mod queue;

mod replay;

mod signals;

pub(crate) use self::queue::{ClusterFilter, cluster_queue, cluster_queue_text};

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::RangeInclusive;
use std::thread::sleep;

use anyhow::bail;
use jiff::{SignedDuration, Timestamp};
use miserly_core::Span;
use miserly_forecast::Forecaster;
use miserly_import::ImportOptions;
use miserly_run::Stopwatch;
use miserly_slurm::{Change, Cluster, JobState, Poller, Quality, Slurm, SlurmError, learn, log};
use miserly_units::duration;
use serde::Serialize;

use super::import::write;
use super::live::{counted, local, table};
use crate::args::{
    PeriodArgs, SlurmClusterArgs, SlurmCommand, SlurmLogArgs, SlurmStatusArgs, SlurmWatchArgs,
};
use crate::output::{print, print_json};

/// The difference of clocks that is worth a line.
const CLOCKS: i64 = 2;

pub(crate) fn run(args: &SlurmClusterArgs) -> anyhow::Result<()> {
    match &args.command {
        SlurmCommand::Check(args) => check::check(args),
        SlurmCommand::Status(args) => status(args),
        SlurmCommand::Log(args) => accounting(args),
        SlurmCommand::Watch(args) => watch(args),
        SlurmCommand::Forecast(args) => forecast::forecast(args),
        SlurmCommand::Holes(args) => holes::holes(args),
        SlurmCommand::Twin(args) => replay::twin(args),
        SlurmCommand::Shadow(args) => replay::shadow(args),
        SlurmCommand::Audit(args) => audit::audit(args),
        SlurmCommand::Drive(args) => drive::drive(args),
        SlurmCommand::Queue(args) => queue::queue(args),
        SlurmCommand::HandBack(args) => hand_back::hand_back(args),
    }
}

/// Reads the state of a cluster, to show it. A version that is not known is worth a line.
fn read(slurm: &Slurm) -> Result<Cluster, SlurmError> {
    let cluster = Cluster::read(slurm)?;
    warn(cluster.configuration.unknown_version());
    Ok(cluster)
}

/// Reads the state of a cluster, to schedule its jobs. A version that is not tested is worth a line.
fn read_to_schedule(slurm: &Slurm) -> Result<Cluster, SlurmError> {
    let cluster = Cluster::read(slurm)?;
    warn(cluster.configuration.untested_version());
    Ok(cluster)
}

fn warn(warning: Option<String>) {
    if let Some(warning) = warning {
        note!("warning: {warning}");
    }
}

/// Warns of the parts of preemption that no forecast has.
fn warn_of_preemption(cluster: &Cluster, qualities: &[Quality]) {
    for what in cluster.preemption_left_out(qualities) {
        note!("warning: no forecast has {what}");
    }
}

fn status(args: &SlurmStatusArgs) -> anyhow::Result<()> {
    let before = Timestamp::now();
    let cluster = read(&args.cluster.slurm())?;
    let during = before.as_second()..=Timestamp::now().as_second();
    if args.json { print_json(&cluster) } else { print(&status_text(&cluster, &during)) }
}

/// Returns the cluster in words: its partitions, and why jobs wait. `during` are the seconds in which it was read.
fn status_text(cluster: &Cluster, during: &RangeInclusive<i64>) -> String {
    let configuration = &cluster.configuration;
    let mut text = format!(
        "cluster {}: Slurm {}, {}, {}\n",
        configuration.cluster, configuration.version, configuration.scheduler, configuration.priority
    );
    let now = configuration.now;
    let ahead = now - now.clamp(*during.start(), *during.end());
    if ahead.abs() > CLOCKS {
        let way = if ahead > 0 { "ahead of" } else { "behind" };
        text += &format!("its clock is {} s {way} the one of this machine\n", ahead.abs());
    }
    let header = [
        "PARTITION",
        "STATE",
        "NODES",
        "OUT",
        "CPUS",
        "USED",
        "RUNNING",
        "WAITING",
        "CPUS WAITED FOR",
        "LONGEST WAIT",
    ];
    let rows = cluster.partitions.iter().map(|(name, partition)| {
        let nodes: Vec<_> = partition.nodes.iter().filter_map(|node| cluster.nodes.get(node)).collect();
        let out = nodes.iter().filter(|node| !node.is_usable()).count();
        let inside = |state: &JobState| {
            let jobs = cluster.jobs.values().filter(|job| job.state == *state);
            jobs.filter(|job| job.partitions.iter().any(|other| other == name)).collect::<Vec<_>>()
        };
        let waiting = inside(&JobState::Pending);
        let longest = waiting.iter().map(|job| configuration.now - job.submitted).max();
        vec![
            format!("{name}{}", if partition.is_default { "*" } else { "" }),
            partition.state.clone(),
            nodes.len().to_string(),
            out.to_string(),
            nodes.iter().map(|node| node.cpus).sum::<u64>().to_string(),
            nodes.iter().map(|node| node.cpus_used).sum::<u64>().to_string(),
            inside(&JobState::Running).len().to_string(),
            waiting.len().to_string(),
            waiting.iter().map(|job| job.cpus).sum::<u64>().to_string(),
            longest.map_or_else(|| "-".to_owned(), seconds),
        ]
    });
    text += &table(&header, &header[2..], rows);
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for job in cluster.jobs.values().filter(|job| job.state == JobState::Pending) {
        // The nodes follow that are not available, and they differ from job to job.
        let reason = job.reason.as_deref().and_then(|reason| reason.split(',').next());
        *reasons.entry(reason.unwrap_or("none")).or_default() += 1;
    }
    if !reasons.is_empty() {
        let each: Vec<String> = reasons.iter().map(|(reason, jobs)| format!("{reason} {jobs}")).collect();
        text += &format!("reasons of waiting jobs: {}\n", each.join(", "));
    }
    for (name, reservation) in &cluster.reservations {
        let [begin, end] = [reservation.begin, reservation.end].map(instant);
        text += &format!(
            "reservation {name}: {} from {begin} to {end}\n",
            counted(reservation.nodes.len() as u64, "node")
        );
    }
    text
}

/// Checks that a period of the accounting has begun, and ends after that.
fn check_period(period: &PeriodArgs) -> anyhow::Result<()> {
    let PeriodArgs { since, until, .. } = *period;
    if since > Timestamp::now() {
        bail!("--since {} is in the future: the accounting has jobs of the past", local(since));
    }
    if let Some(until) = until.filter(|until| *until < since) {
        bail!("--until {} is before --since {}", local(until), local(since));
    }
    Ok(())
}

fn accounting(args: &SlurmLogArgs) -> anyhow::Result<()> {
    check_period(&args.period)?;
    let slurm = args.period.cluster.slurm();
    let mut options = args.options();
    // The accounting does not have the size of the machine.
    let cluster = match read(&slurm) {
        // Its accounting may have another form.
        Err(error @ SlurmError::TooOld { .. }) => return Err(error.into()),
        other => other,
    };
    if let Ok(cluster) = &cluster {
        options.procs = Some(cluster.nodes.values().map(|node| node.cpus).sum::<u64>().into());
        options.nodes = u32::try_from(cluster.nodes.len()).ok();
    }
    let log = log(&slurm, args.period.since, args.period.until, &options)?;
    if let Err(error) = cluster {
        note!("warning: the log has no size of the machine: {error}");
    }
    write(&log.sorted()?, &args.written)
}

/// A line of `watch`.
#[derive(Serialize)]
struct WatchLine<'a> {
    at: Timestamp,
    #[serde(flatten)]
    change: &'a Change,
}

fn watch(args: &SlurmWatchArgs) -> anyhow::Result<()> {
    let mut poller = Poller::new(args.cluster.slurm());
    let clock = Stopwatch::start();
    let mut first = true;
    loop {
        match poller.poll() {
            Ok(changes) => {
                if first {
                    warn(poller.cluster().and_then(|cluster| cluster.configuration.unknown_version()));
                }
                let mut output = std::io::stdout().lock();
                for change in &changes {
                    let line = serde_json::to_string(&WatchLine { at: Timestamp::now(), change })?;
                    writeln!(output, "{line}")?;
                }
                output.flush()?;
            }
            // A restart of the controller is no end.
            Err(error) if !first => {
                note!("warning: {error}; the next try is in {} s", poller.pause().as_secs());
            }
            Err(error) => return Err(error.into()),
        }
        first = false;
        if args.period.is_some_and(|period| clock.elapsed() + poller.pause() > period) {
            return Ok(());
        }
        sleep(poller.pause());
    }
}

/// Returns a forecaster that learned from the accounting, if there is one.
fn learned(slurm: &Slurm, days: i64) -> Option<Forecaster> {
    let mut forecaster = Forecaster::default();
    if days == 0 {
        return None;
    }
    let since = Timestamp::now().saturating_sub(SignedDuration::from_hours(24 * days)).unwrap_or_default();
    let options = ImportOptions { keep_ids: true, lenient: true, ..ImportOptions::default() };
    match log(slurm, since, None, &options) {
        Ok(log) => {
            learn(&mut forecaster, &log);
            return Some(forecaster);
        }
        Err(SlurmError::Accounting(_)) => {
            note!("warning: the accounting has no ended jobs: time limits count as runtimes");
        }
        Err(error) => note!("warning: without the accounting, time limits count as runtimes: {error}"),
    }
    None
}

fn seconds(seconds: i64) -> String {
    duration(Span::from_secs(seconds.max(0)).unwrap_or(Span::MAX))
}

fn instant(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| "-".to_owned(), local)
}
