//! The options for running a log.

use std::path::Path;

use anyhow::ensure;
use clap::Args;
use miserly_core::{EventOrder, Procs, Sharing, Spread};
use miserly_workload::{
    ArrivalScaling, Estimates, Factor, Feedback, FieldFilter, MOST_SHAKE, Overrun, ProcsField,
};

use crate::read::ReadArgs;
use crate::values::{procs, seconds, words};

/// The options for running a log, shared by every command that runs one.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Simulation options")]
pub struct RunArgs {
    /// The processors of the machine; simulate and compare take a list [default: MaxProcs of the log, else MaxNodes]
    #[arg(long, value_name = "N", value_parser = procs(), value_delimiter = ',', allow_negative_numbers = true)]
    pub procs: Vec<Procs>,

    /// The machine: o2k (the NCSA Origin 2000), a number of processors, or a machine file (docs/machines.md)
    #[arg(long, value_name = "MACHINE", conflicts_with = "procs")]
    pub machine: Option<String>,

    /// The number of hosts that a job may use [default: from the machine file]
    #[arg(long, value_parser = words(&SPANS), requires = "machine")]
    pub span: Option<Spread>,

    /// Whether jobs share hosts [default: from the machine file]
    #[arg(long, value_parser = words(&SHARINGS), requires = "machine")]
    pub sharing: Option<Sharing>,

    /// The estimates that the policy sees: trace[*F], exact[*R], uniform:R, uniform:R:mean or tsafrir
    ///
    /// trace: the estimates of the log, times F. exact: the actual runtimes, times R. uniform:R: drawn between the
    /// runtime T and 2RT, and exact at R = 1. uniform:R:mean: drawn between T and (2R-1)T. The default is trace, and
    /// uniform:5 for the generated workload of compare. tsafrir, tsafrir:MAX or tsafrir:MAX:PERCENT: the modal estimates
    /// of users (Tsafrir et al. 2005), with the greatest one and the percentage of jobs that have it; without MAX, both
    /// are those of the log.
    #[arg(long, value_name = "MODEL")]
    pub estimates: Option<Estimates>,

    /// The treatment of a job that reaches the estimate of the log
    #[arg(long, value_parser = words(&OVERRUNS), default_value = "kill")]
    pub overrun: Overrun,

    /// The order in which the events of one instant reach the policy
    #[arg(long, value_parser = words(&EVENT_ORDERS), default_value = "batched")]
    pub event_order: EventOrder,

    /// The field with the width of a job, if the log has both
    #[arg(long, value_parser = words(&PROCS_FIELDS), default_value = "allocated")]
    pub procs_field: ProcsField,

    /// The jobs that are left out
    #[command(flatten)]
    pub filter: FilterArgs,

    /// Skips and counts malformed lines instead of stopping at the first
    #[arg(long)]
    pub lenient: bool,

    /// Selects jobs submitted at T or later, in log time: seconds, or 90min, 12h, 7d (docs/units.md)
    #[arg(long, value_name = "T", value_parser = seconds, allow_negative_numbers = true)]
    pub from: Option<i64>,

    /// Selects jobs submitted before T, in log time: seconds, or 90min, 12h, 7d
    #[arg(long, value_name = "T", value_parser = seconds, allow_negative_numbers = true)]
    pub to: Option<i64>,

    /// Selects the jobs of these users, by number or by a name in the header, separated by commas; repeatable
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true)]
    pub user: Vec<String>,

    /// Selects the jobs of these queues, by number or by a name in the header, separated by commas; repeatable
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true)]
    pub queue: Vec<String>,

    /// Divides the times between submissions by F, which multiplies the load by F; simulate and compare take a list
    #[arg(
        long,
        value_name = "F",
        conflicts_with = "offline",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    pub scale_load: Vec<Factor>,

    /// Submits all jobs at time 0, in the order of their numbers
    #[arg(long)]
    pub offline: bool,

    /// Moves each submission at random by up to D, at most 1 d; each seed has moves of its own
    #[arg(long, value_name = "D", value_parser = shake, conflicts_with = "offline", allow_negative_numbers = true, default_value = "0")]
    pub shake: u32,

    /// Excludes jobs submitted within D of the first one from the measures: seconds, or 90min, 12h, 7d [default: that of the log's header, else 0]
    #[arg(long, value_name = "D", value_parser = seconds, allow_negative_numbers = true)]
    pub warmup: Option<i64>,

    /// The seed of the random numbers
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true)]
    pub seed: u64,

    /// Runs opportunistic jobs, and parks them D before a promised start: seconds, or 90min, 12h, 7d
    ///
    /// An opportunistic job runs ahead of its promised start on idle resources. Without this option opportunistic jobs
    /// run only on a machine with pools of which a queue has the policy miser, with a lead time of 5 s.
    #[arg(long, value_name = "D", value_parser = seconds, allow_negative_numbers = true)]
    pub preempt_lead_time: Option<i64>,

    /// Runs jobs in their windows only
    #[arg(long, conflicts_with = "preempt_lead_time")]
    pub no_opportunistic: bool,

    /// The interactive load, as poisson:EVERY:LENGTH:PROCS or a file (docs/machines.md) [default: none]
    #[arg(long, value_name = "LOAD")]
    pub interactive: Option<String>,

    /// The options of reading the log
    #[command(flatten)]
    pub read: ReadArgs,
}

/// The options that leave out jobs by fields of the log.
#[derive(Clone, Debug, Args)]
pub struct FilterArgs {
    /// Leaves out the jobs that meet a condition on fields of the log, such as 'runtime<=0'; repeatable
    ///
    /// Fields: job, submit, wait, runtime, allocated, cpu_time, used_memory, requested_procs, estimate,
    /// requested_memory, status, user, group, executable, queue, partition, preceding_job, think_time. Extra fields,
    /// if the log has them: nodes, gpus, gpu_type, job_memory, name, account, features. The value -1 means an unknown
    /// number, and - a missing text. The fields user, group, queue and partition may be compared with a name in the
    /// header of the log, such as 'user=ann'.
    #[arg(long, value_name = "FILTER")]
    pub drop: Vec<FieldFilter>,

    /// Leaves out the jobs that do not meet a condition, such as 'partition=17'; repeatable
    #[arg(long, value_name = "FILTER")]
    pub keep: Vec<FieldFilter>,
}

impl FilterArgs {
    /// Returns whether there is a condition.
    pub fn is_given(&self) -> bool {
        !self.drop.is_empty() || !self.keep.is_empty()
    }

    /// Returns the conditions of the jobs that are left out.
    pub fn dropped(&self) -> Vec<FieldFilter> {
        self.drop.iter().cloned().chain(self.keep.iter().cloned().map(FieldFilter::opposite)).collect()
    }
}

impl RunArgs {
    /// Returns the scaling of the submit times.
    pub fn arrivals(&self) -> ArrivalScaling {
        match self.scale_load.first() {
            _ if self.offline => ArrivalScaling::Offline,
            Some(factor) => ArrivalScaling::Scaled(*factor),
            None => ArrivalScaling::Logged,
        }
    }

    /// Returns the options for each value of the lists: every machine size under every load.
    pub fn sweep(&self) -> Vec<RunArgs> {
        let sizes = one_each(&self.procs);
        let loads = one_each(&self.scale_load);
        let with = |procs: &Vec<Procs>, scale_load: &Vec<Factor>| RunArgs {
            procs: procs.clone(),
            scale_load: scale_load.clone(),
            ..self.clone()
        };
        sizes.iter().flat_map(|procs| loads.iter().map(move |load| with(procs, load))).collect()
    }

    /// Returns the options for each value of the lists, if the log can be read as often.
    ///
    /// # Errors
    /// If there are several values, and the log is standard input, which can be read once.
    pub fn sweep_of(&self, trace: &Path) -> anyhow::Result<Vec<RunArgs>> {
        let sweep = self.sweep();
        ensure!(
            trace != Path::new("-") || sweep.len() == 1,
            "-: several runs need a file, not standard input"
        );
        Ok(sweep)
    }

    /// Returns the option that has several values.
    pub fn swept(&self) -> Option<&'static str> {
        match (self.procs.len(), self.scale_load.len()) {
            (2.., _) => Some("--procs"),
            (_, 2..) => Some("--scale-load"),
            _ => None,
        }
    }
}

/// Returns a list for each value, or one empty list without values.
fn one_each<T: Clone>(values: &[T]) -> Vec<Vec<T>> {
    if values.is_empty() { vec![vec![]] } else { values.iter().map(|value| vec![value.clone()]).collect() }
}

/// Parses a number of seconds by which submissions may move.
fn shake(text: &str) -> Result<u32, String> {
    let most = i64::from(MOST_SHAKE);
    let secs = seconds(text).map_err(|error| error.to_string())?;
    u32::try_from(secs).ok().filter(|_| secs <= most).ok_or_else(|| "must be at most 1 d".into())
}

const OVERRUNS: [(&str, Overrun, &str); 3] = [
    ("kill", Overrun::Kill, "The job is killed"),
    ("extend", Overrun::Extend, "The estimate is raised to the runtime when the log is read"),
    ("run", Overrun::Run, "The job continues, overdue"),
];

const SPANS: [(&str, Spread, &str); 2] = [
    ("one", Spread::One, "One host"),
    ("any", Spread::Any, "Any number of hosts; each processor has its part of the memory"),
];

const SHARINGS: [(&str, Sharing, &str); 2] =
    [("shared", Sharing::Shared, "Jobs share hosts"), ("whole", Sharing::Whole, "Each job has whole hosts")];

const EVENT_ORDERS: [(&str, EventOrder, &str); 2] = [
    ("batched", EventOrder::Batched, "All terminations, submissions and timers, then one pass"),
    ("sequential", EventOrder::Sequential, "One pass for each event, as in pyss"),
];

/// The words of the field with the width of a job.
pub const PROCS_FIELDS: [(&str, ProcsField, &str); 2] = [
    ("allocated", ProcsField::Allocated, "Field 5, else field 8"),
    ("requested", ProcsField::Requested, "Field 8, else field 5"),
];

/// The words of the ways in which jobs follow each other.
pub const FEEDBACKS: [(&str, Feedback, &str); 2] = [
    ("fields", Feedback::Fields, "The preceding job and the think time of the log, fields 17 and 18"),
    (
        "sessions",
        Feedback::Sessions,
        "The user's job that ended last in the record, less than 20 minutes before",
    ),
];
