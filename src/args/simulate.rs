//! The arguments of `miserly simulate` and of the commands that show its policies and schedules.

use std::path::PathBuf;

use clap::Args;
use miserly_policies::PolicySpec;
use miserly_workload::Feedback;

use super::run::{FEEDBACKS, RunArgs};
use super::tables::{By, GroupingParser, ReportFileArgs, RunTableArgs};
use super::values::{seconds, slide_name, words};

#[derive(Debug, Args)]
pub(crate) struct FeedbackArgs {
    /// Submits jobs some time after the simulated end of an earlier job of their user, instead of as logged
    ///
    /// The think time between stays that of the log. Other jobs come as logged. The log is held in memory. Runs have no
    /// paired differences, because the jobs come in another order under each policy.
    #[arg(long, value_name = "BY", value_parser = words(&FEEDBACKS), conflicts_with = "report")]
    pub(crate) feedback: Option<Feedback>,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// The job log or the accounting of a cluster, plain or gzipped; - is standard input
    pub(crate) trace: PathBuf,

    /// The policy, such as easy or 'easy(backfill=shortest)'; miserly policies lists all
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: PolicySpec,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    #[command(flatten)]
    pub(crate) feedback: FeedbackArgs,

    /// Adds the waits of each group of jobs; repeatable. Ranges have upper bounds of your own: procs:1,8,64,
    /// runtime:1h,12h, time-limit:4h,1d, or two of them: procs:1,8,64+runtime:1h,12h (docs/formats.md)
    #[arg(long, value_name = "KIND", value_parser = GroupingParser)]
    pub(crate) by: Vec<By>,

    /// Writes a row for each job: to a .csv with the columns of Batsim, or to a .swf with the simulated fields
    #[arg(long, value_name = "OUT")]
    pub(crate) jobs: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) table: RunTableArgs,

    #[command(flatten)]
    pub(crate) report: ReportFileArgs,

    /// Prints JSON (docs/simulate.schema.json)
    #[arg(long)]
    pub(crate) json: bool,

    /// Adds the distributions of the measures and the time series to the JSON
    #[arg(long, requires = "json")]
    pub(crate) details: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The job logs, plain or gzipped [default: a generated workload]
    #[arg(value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,

    /// A policy, such as easy; repeatable [default: a representative set]
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: Vec<PolicySpec>,

    /// The policy with which the verdict compares the best one [default: the first policy; easy of the representative set]
    #[arg(long, value_name = "POLICY")]
    pub(crate) against: Option<PolicySpec>,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    #[command(flatten)]
    pub(crate) feedback: FeedbackArgs,

    #[command(flatten)]
    pub(crate) table: RunTableArgs,

    #[command(flatten)]
    pub(crate) report: ReportFileArgs,

    /// Adds the waits of each group of jobs; repeatable. Ranges have upper bounds of your own: procs:1,8,64,
    /// runtime:1h,12h, time-limit:4h,1d, or two of them: procs:1,8,64+runtime:1h,12h (docs/formats.md). The verdict
    /// names who gains and who pays by the first
    #[arg(long, value_name = "KIND", value_parser = GroupingParser)]
    pub(crate) by: Vec<By>,

    /// Writes the verdict as one picture for a slide: the question, up to three policies, two schedules, who gains and who pays. A .png
    /// needs rsvg-convert, inkscape or chromium
    #[arg(long, value_name = "FILE.svg|FILE.png", value_parser = slide_name)]
    pub(crate) slide: Option<PathBuf>,

    /// Shows on the page which jobs start earlier or later under B than under A [default: easy and the best]
    ///
    /// Both are policies of the comparison. The default of A is easy, else the first policy. The default of B is the
    /// other policy with the shortest mean wait.
    #[arg(long, value_names = ["A", "B"], num_args = 2, requires = "report")]
    pub(crate) difference: Vec<PolicySpec>,

    /// Writes a .csv with a row for each job into a folder, for each log and policy
    #[arg(long, value_name = "DIR")]
    pub(crate) jobs: Option<PathBuf>,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl CompareArgs {
    /// Returns whether schedules are drawn.
    pub(crate) fn is_drawn(&self) -> bool {
        self.report.is_requested() || self.slide.is_some()
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The job log or the accounting of a cluster, plain or gzipped; - is standard input
    pub(crate) trace: PathBuf,

    /// The job number: field 1 of the log
    #[arg(value_name = "JOB", value_parser = job_number)]
    pub(crate) job: i64,

    /// The policy, such as easy or 'easy(backfill=shortest)'; miserly policies lists all
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: PolicySpec,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    /// Prints times in seconds of the log, instead of dates
    #[arg(long)]
    pub(crate) seconds: bool,

    /// Prints JSON; times are in seconds of the log
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MatrixArgs {
    /// The job log or the accounting of a cluster, plain or gzipped; - is standard input
    pub(crate) trace: PathBuf,

    /// The instant, in log time, after all its events: seconds, or 90min, 12h, 7d
    #[arg(value_name = "TIME", value_parser = seconds)]
    pub(crate) time: i64,

    /// A policy with time slices, such as 'gang(packing=best-fit)'
    #[arg(long, short, value_name = "POLICY")]
    pub(crate) policy: PolicySpec,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PoliciesArgs {
    /// A policy or a queue order to show in detail
    pub(crate) name: Option<String>,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses the number of a job.
fn job_number(text: &str) -> Result<i64, &'static str> {
    text.parse().map_err(|_| "the job must be a number: field 1 of its line")
}
