//! The arguments of `miserly slurm`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, value_parser};
use jiff::Timestamp;
use miserly_api::submit::length_of_time;
use miserly_import::{ImportOptions, SubmitAt};
use miserly_policies::PolicySpec;
use miserly_slurm::Setting;

use super::cluster::ClusterArgs;
use super::import::WrittenArgs;
use super::read::SUBMIT_AT;
use super::values::{past, words};

#[derive(Debug, Args)]
pub(crate) struct SlurmClusterArgs {
    #[command(subcommand)]
    pub(crate) command: SlurmCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SlurmCommand {
    /// Runs each command of Slurm once, and compares what they say of the same jobs
    Check(SlurmCheckArgs),
    /// Prints the partitions and the waiting jobs of the cluster
    Status(SlurmStatusArgs),
    /// Writes the accounting of the cluster as a job log
    Log(SlurmLogArgs),
    /// Prints each change of jobs and nodes as a line of JSON, until it is interrupted
    Watch(SlurmWatchArgs),
    /// Forecasts the starts of waiting jobs, or of one that is not yet submitted, beside those that Slurm expects
    Forecast(SlurmForecastArgs),
    /// Prints what can start now in each partition, and for how long
    Holes(SlurmHolesArgs),
    /// Simulates the accounting under the policy that schedules as the cluster does, and compares the starts
    Twin(SlurmTwinArgs),
    /// Simulates the accounting under another policy, and prints what it would have done: by day, user and size
    Shadow(SlurmShadowArgs),
    /// Follows the cluster, and compares forecasts and Slurm's expected starts with the starts
    Audit(SlurmAuditArgs),
    /// Schedules the nodes of partitions by a policy, until it is interrupted
    Drive(SlurmDriveArgs),
    /// Prints the jobs of a cluster with the promises of a driver, and why jobs are not planned
    Queue(SlurmQueueArgs),
    /// Hands the nodes of a driver back to Slurm at once
    HandBack(SlurmHandBackArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SlurmCheckArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// Submits a held job of one processor, compares what the commands show of it, and cancels it
    #[arg(long)]
    pub(crate) probe: bool,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SlurmStatusArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// Prints all nodes, partitions, jobs and reservations as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SlurmLogArgs {
    #[command(flatten)]
    pub(crate) period: PeriodArgs,

    /// The time that is the submission of a job
    #[arg(long, value_parser = words(&SUBMIT_AT), default_value = "submit")]
    pub(crate) submit_at: SubmitAt,

    /// Keeps the ids of jobs, users and groups [default: anonymous numbers]
    #[arg(long)]
    pub(crate) keep_ids: bool,

    #[command(flatten)]
    pub(crate) written: WrittenArgs,
}

impl SlurmLogArgs {
    pub(crate) fn options(&self) -> ImportOptions {
        ImportOptions { submit_at: self.submit_at, keep_ids: self.keep_ids, ..ImportOptions::default() }
    }
}

/// The part of the accounting that a command reads.
#[derive(Debug, Args)]
pub(crate) struct PeriodArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// The begin: jobs that ran after it: 2026-03-01T08:00, 08:00 (the last one), yesterday, now-2d
    #[arg(long, value_name = "WHEN", value_parser = past)]
    pub(crate) since: Timestamp,

    /// The end: jobs that ran before it, in the notation of --since [default: now]
    #[arg(long, value_name = "WHEN", value_parser = past)]
    pub(crate) until: Option<Timestamp>,
}

#[derive(Debug, Args)]
pub(crate) struct SlurmShadowArgs {
    #[command(flatten)]
    pub(crate) period: PeriodArgs,

    /// The policy of the shadow [default: that of the cluster, with --set]
    #[arg(short, long, value_name = "POLICY", conflicts_with = "set", required_unless_present_any = ["set", "add_nodes"])]
    pub(crate) policy: Option<PolicySpec>,

    /// Changes a setting of slurm.conf in the shadow, such as bf_window=2880, PriorityWeightAge=1000 or debug:PriorityTier=2;
    /// repeatable
    #[arg(long, value_name = "[PARTITION:]KEY=VALUE")]
    pub(crate) set: Vec<Setting>,

    /// Adds nodes in the shadow, like the commonest ones, or like the named one
    #[arg(long, value_name = "N[:NODE]", value_parser = added_nodes)]
    pub(crate) add_nodes: Option<AddedNodes>,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Nodes that a cluster does not have.
#[derive(Clone, Debug)]
pub(crate) struct AddedNodes {
    pub(crate) count: u64,
    /// The node that they are like.
    pub(crate) like: Option<String>,
}

fn added_nodes(text: &str) -> Result<AddedNodes, &'static str> {
    let (count, like) = text.split_once(':').map_or((text, None), |(count, like)| (count, Some(like)));
    let count = count.parse().ok().filter(|count| (1..=100_000).contains(count));
    let count = count.ok_or("write N or N:NODE, N from 1 to 100000")?;
    Ok(AddedNodes { count, like: like.map(str::to_owned) })
}

#[derive(Debug, Args)]
pub(crate) struct SlurmTwinArgs {
    #[command(flatten)]
    pub(crate) period: PeriodArgs,

    /// The policy [default: slurm, with the parameters of the cluster's configuration]
    #[arg(short, long, value_name = "POLICY")]
    pub(crate) policy: Option<PolicySpec>,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SlurmWatchArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// Ends after this time [default: never]
    #[arg(long = "for", value_name = "TIME", value_parser = period)]
    pub(crate) period: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct SlurmForecastArgs {
    /// The job, the array, or a task of it: 17, 17_3 [default: all waiting jobs]
    #[arg(conflicts_with = "cpus")]
    pub(crate) job: Option<String>,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    #[command(flatten)]
    pub(crate) new: NewJobArgs,

    #[command(flatten)]
    pub(crate) futures: FutureArgs,

    /// Prints JSON; times are in seconds since 1970
    #[arg(long)]
    pub(crate) json: bool,
}

/// A job that is not yet submitted.
#[derive(Debug, Args)]
pub(crate) struct NewJobArgs {
    /// Forecasts a job of this number of processors that is not yet submitted
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..), requires = "time")]
    pub(crate) cpus: Option<u64>,

    /// The time limit of that job: 4h
    #[arg(long, value_name = "TIME", requires = "cpus", value_parser = period)]
    pub(crate) time: Option<Duration>,

    /// The partition of that job [default: that of the cluster]
    #[arg(long, value_name = "NAME", requires = "cpus")]
    pub(crate) partition: Option<String>,

    /// The memory of that job on each node, or for each processor: 16G, 2Gc [default: by Slurm's configuration]
    #[arg(long, value_name = "AMOUNT", requires = "cpus")]
    pub(crate) memory: Option<String>,

    /// The number of nodes of that job [default: any]
    #[arg(long, value_name = "N", requires = "cpus", value_parser = value_parser!(u64).range(1..))]
    pub(crate) nodes: Option<u64>,

    /// The GPUs of that job on each node
    #[arg(long, value_name = "N", requires = "cpus", default_value_t = 0, hide_default_value = true)]
    pub(crate) gpus: u64,
}

#[derive(Debug, Args)]
pub(crate) struct SlurmHolesArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// Limits the list to a partition
    #[arg(long, short, value_name = "NAME")]
    pub(crate) partition: Option<String>,

    /// Prints JSON; times are in seconds since 1970
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SlurmAuditArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    #[command(flatten)]
    pub(crate) futures: FutureArgs,

    /// Ends after this time; a signal ends it earlier, with the outcome so far
    #[arg(long = "for", value_name = "TIME", value_parser = period)]
    pub(crate) period: Duration,

    /// Writes a .csv with a row for each forecast: the simulated starts, the start that Slurm expects, and the start, as soon as there is one
    #[arg(long, value_name = "OUT")]
    pub(crate) jobs: Option<PathBuf>,

    /// Prints JSON; times are in seconds
    #[arg(long)]
    pub(crate) json: bool,
}

/// The simulated futures of a forecast.
#[derive(Clone, Debug, Args)]
pub(crate) struct FutureArgs {
    /// The policy of the simulated futures [default: slurm, with the parameters of the cluster]
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: Option<PolicySpec>,

    /// The days of accounting from which runtimes are learned; 0: none
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = value_parser!(i64).range(0..=3650))]
    pub(crate) history: i64,

    /// The number of futures with likely runtimes
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u64).range(1..=1000))]
    pub(crate) draws: u64,

    /// A .csv of `audit --jobs`, by whose outcomes the bounds are calibrated; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) calibrate: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Each is a flag of its own.
pub(crate) struct SlurmDriveArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// The policy
    #[arg(short, long, value_name = "POLICY")]
    pub(crate) policy: PolicySpec,

    /// The seed of a policy that draws
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// A partition to schedule; may be given several times [default: all partitions]
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Vec<String>,

    /// The folder of the driver's state, which it creates
    #[arg(long, value_name = "DIR", required_unless_present = "dry_run")]
    pub(crate) state: Option<PathBuf>,

    /// Prints what Slurm would be asked for, and asks for nothing
    #[arg(long, conflicts_with_all = ["state", "period"])]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) reservation: ReservationArgs,

    /// The time without the driver after which Slurm schedules by itself: 10min
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = fallback)]
    pub(crate) fallback: Duration,

    /// Runs opportunistic jobs, and requeues them D before a planned start on their nodes: 40s [default of D: by Slurm's KillWait]
    ///
    /// A waiting job then runs on idle nodes ahead of its start. If the nodes are needed before it ends, it begins anew later. A job that was submitted with --no-requeue is left out.
    #[arg(long, value_name = "D", num_args = 0..=1, value_parser = period)]
    pub(crate) opportunistic: Option<Vec<Duration>>,

    /// The time that a job may take to end after its limit [default: by Slurm's KillWait and OverTimeLimit]
    #[arg(long, value_name = "TIME", value_parser = period)]
    pub(crate) margin: Option<Duration>,

    /// Writes no promises into the comments of jobs
    #[arg(long)]
    pub(crate) no_comments: bool,

    /// The days of accounting from which likely runtimes are learned; 0: none
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = value_parser!(i64).range(0..=3650))]
    pub(crate) history: i64,

    /// The number of futures with likely runtimes from which starts are forecast; 0: no forecasts
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value_parser!(u64).range(0..=1000))]
    pub(crate) draws: u64,

    /// Drives a cluster of a version of Slurm whose output is not known
    ///
    /// Another version may print the same words with another meaning. Call `miserly slurm check --probe` before.
    #[arg(long)]
    pub(crate) untested_version: bool,

    /// Ends after this time [default: never]
    #[arg(long = "for", value_name = "TIME", value_parser = period)]
    pub(crate) period: Option<Duration>,

    /// Prints lines of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The reservation by which a driver holds the nodes.
#[derive(Debug, Args)]
pub(crate) struct ReservationArgs {
    /// The name of the reservation by which the driver holds the nodes
    #[arg(long, value_name = "NAME", default_value = "miserly", value_parser = reservation)]
    pub(crate) reservation: String,
}

#[derive(Debug, Args)]
pub(crate) struct SlurmQueueArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// The folder of a driver's state: prints its jobs with all that it knows [default: the jobs that Slurm shows, with their comments]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["slurm_conf", "mine", "user", "partition"])]
    pub(crate) state: Option<PathBuf>,

    /// Limits the list to your jobs
    #[arg(long, visible_alias = "me")]
    pub(crate) mine: bool,

    /// Limits the list to the jobs of a user, by name or number
    #[arg(long, short, value_name = "USER", conflicts_with = "mine")]
    pub(crate) user: Option<String>,

    /// Limits the list to a partition
    #[arg(long, short, value_name = "NAME")]
    pub(crate) partition: Option<String>,

    /// Prints JSON; times are in seconds since 1970
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SlurmHandBackArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// The folder of the driver's state: a driver that runs ends, and jobs get their users' requests back
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,

    /// The name of the reservation by which the driver holds the nodes [default: that of the state, or miserly]
    #[arg(long, value_name = "NAME", value_parser = reservation)]
    pub(crate) reservation: Option<String>,

    /// Stays, and hands the nodes back each time the driver of --state has been gone for this long: 30s [default: hands them back now, and ends]
    ///
    /// A driver that is back within this time keeps the nodes.
    #[arg(long, value_name = "TIME", value_parser = period, requires = "state", conflicts_with = "reservation")]
    pub(crate) when_gone: Option<Duration>,
}

/// Returns the time of a fallback. Slurm's reservations have whole minutes.
fn fallback(text: &str) -> Result<Duration, String> {
    let time = period(text)?;
    let minutes = time.as_secs() / 60;
    if time.as_secs().is_multiple_of(60) && (1..=24 * 60).contains(&minutes) {
        return Ok(time);
    }
    Err("whole minutes, from 1min to 24h".to_owned())
}

fn reservation(text: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if !text.is_empty() && text.len() <= 64 && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err("letters, digits, '_', '-' and '.'".to_owned())
}

fn period(text: &str) -> Result<Duration, String> {
    length_of_time(text).map(Duration::from_secs).map_err(|error| error.to_string())
}
