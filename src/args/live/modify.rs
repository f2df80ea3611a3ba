//! The arguments of `miserly modify`.

use std::collections::BTreeMap;

use clap::Args;
use jiff::Timestamp;
use miserly_api::model::{JobRef, Modification, NewEnvironment, RawVariable, TimeBound};
use miserly_api::submit::{Export, GpuRequest, gpus, length_of_time, memory, wait_time, when};
use miserly_units::UnitError;

use super::{JobsArgs, one_job};

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
pub(crate) struct ModifyArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,

    /// The new time limit: seconds, or 90min, 12h, 7d, 1:30:00
    #[arg(long, short, value_name = "TIME", value_parser = length_of_time, group = "change")]
    pub(crate) time: Option<u64>,

    /// The new number of processors
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), group = "change")]
    pub(crate) cpus: Option<u64>,

    /// The new memory of the job, such as 512MiB or 8GiB
    #[arg(long, short, visible_alias = "mem", value_name = "SIZE", value_parser = memory, group = "change")]
    pub(crate) memory: Option<u64>,

    /// The new number of GPUs, with the new type before it if it changes: 2, a100:2
    #[arg(long, short = 'G', value_name = "[TYPE:]N", value_parser = gpus, group = "change")]
    pub(crate) gpus: Option<GpuRequest>,

    /// The new queue
    #[arg(
        long,
        visible_short_alias = 'p',
        visible_alias = "partition",
        value_name = "QUEUE",
        group = "change"
    )]
    pub(crate) queue: Option<String>,

    /// The new name
    #[arg(
        long,
        short,
        visible_short_alias = 'J',
        visible_alias = "job-name",
        value_name = "NAME",
        group = "change"
    )]
    pub(crate) name: Option<String>,

    /// The new earliest start: 2026-03-01T08:00, 08:00 (the next one), +2h, tomorrow; none removes it
    #[arg(long, visible_short_alias = 'b', value_name = "WHEN", value_parser = bound, group = "change")]
    pub(crate) begin: Option<Bound>,

    /// The new latest end, in the notation of --begin
    #[arg(long, value_name = "WHEN", value_parser = bound, group = "change")]
    pub(crate) deadline: Option<Bound>,

    /// The new longest wait, such as 10min, from the submission or from the earliest start; none removes it
    #[arg(long, value_name = "TIME", value_parser = wait, group = "change")]
    pub(crate) start_within: Option<Wait>,

    /// Whether the job may run on past its time limit while no other job needs its place
    #[arg(long, value_name = "true|false", group = "change")]
    pub(crate) overrun_if_idle: Option<bool>,

    /// The new environment, from the present one of this command: ALL, NONE, or a list of NAME and NAME=VALUE, separated by commas
    #[arg(long, value_name = "WHAT", value_parser = Export::parse, group = "change")]
    pub(crate) export: Option<Export>,

    /// Takes the place of this other job of the same user and queue, which moves back with those between them
    #[arg(long, value_name = "JOB", value_parser = one_job, group = "change", conflicts_with = "queue")]
    pub(crate) before: Option<JobRef>,

    /// Breaks the promises to jobs that wait for these; without it the request is refused
    #[arg(long)]
    pub(crate) move_promises: bool,

    /// Prints the promises that would move, and changes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Changes the jobs without a question, as it does where the input is no terminal
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// A bound on the time of a job, or its removal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound(Option<Timestamp>);

fn bound(text: &str) -> Result<Bound, String> {
    if text == "none" { Ok(Bound(None)) } else { when(text).map(|at| Bound(Some(at))) }
}

/// The longest wait, or its removal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait(Option<f64>);

fn wait(text: &str) -> Result<Wait, UnitError> {
    if text == "none" { Ok(Wait(None)) } else { wait_time(text).map(|secs| Wait(Some(secs))) }
}

impl ModifyArgs {
    /// Returns the changes. `before` is the number of the job whose place is taken. `environment` is that of this command, as text
    /// and as bytes.
    pub(crate) fn changes(
        &self,
        before: Option<i64>,
        environment: impl FnOnce() -> (BTreeMap<String, String>, Vec<RawVariable>),
    ) -> Modification {
        let exported = |export: &Export| {
            let (text, bytes) = environment();
            Box::new(NewEnvironment { text: export.environment(text), bytes: export.raw_environment(bytes) })
        };
        let removed = |given: Option<Bound>, which| given.filter(|Bound(at)| at.is_none()).map(|_| which);
        let waits = self.start_within.filter(|Wait(secs)| secs.is_none()).map(|_| TimeBound::StartWithin);
        let remove =
            [removed(self.begin, TimeBound::Begin), removed(self.deadline, TimeBound::Deadline), waits];
        Modification {
            name: self.name.clone(),
            cpus: self.cpus,
            memory: self.memory,
            gpus: self.gpus.as_ref().map(|gpus| gpus.count),
            gpu_type: self.gpus.as_ref().and_then(|gpus| gpus.gpu_type.clone()),
            // At most 10^10, which a double holds exactly.
            time: self.time.map(|seconds| seconds as f64),
            queue: self.queue.clone(),
            begin: self.begin.and_then(|Bound(at)| at),
            deadline: self.deadline.and_then(|Bound(at)| at),
            start_within: self.start_within.and_then(|Wait(secs)| secs),
            overrun_if_idle: self.overrun_if_idle,
            remove: remove.into_iter().flatten().collect(),
            environment: self.export.as_ref().map(exported),
            before,
        }
    }
}
