//! Submissions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::PathText;
use super::{EarlySignal, Mail, SignalRequest, is_blank, is_invisible};
#[cfg(feature = "options")]
use crate::submit;

/// A job or an array of jobs to accept.
///
/// With the feature `options`, the fields that its user sets are options of a command line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
#[cfg_attr(feature = "options", derive(clap::Args))]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Submission {
    /// The program and its arguments; with `script`, the arguments of the script.
    #[cfg_attr(feature = "options", arg(skip))]
    #[serde(default)]
    pub command: Vec<String>,
    /// The text of a script. A later change of its file has no effect.
    #[cfg_attr(feature = "options", arg(skip))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// The job name [default: the name of the program]
    #[cfg_attr(
        feature = "options",
        arg(long, short, visible_short_alias = 'J', visible_alias = "job-name", value_name = "NAME")
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A comment, which all users can read
    #[cfg_attr(feature = "options", arg(long, value_name = "TEXT"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The working directory.
    #[cfg_attr(feature = "options", arg(skip))]
    #[schema(value_type = PathText)]
    #[serde(with = "super::lossless")]
    pub directory: PathBuf,
    /// The complete environment.
    #[cfg_attr(feature = "options", arg(skip))]
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The variables of the environment that are not UTF-8 text.
    #[cfg_attr(feature = "options", arg(skip))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment_bytes: Vec<RawVariable>,
    /// The requested processors.
    #[cfg_attr(feature = "options", arg(skip))]
    #[serde(default = "one")]
    pub cpus: u64,
    /// The least processors of a resizable job, whose processors may change while it runs. `cpus` are the most.
    #[cfg_attr(feature = "options", arg(
        long, num_args = 0, default_missing_value = "1", value_parser = submit::count,
        help = "Lets the scheduler change the processors of the running job, between those of --cpus 2-8, or from 1 on. The \
                job finds them in the file MISERLY_CPUS_FILE"
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resizable: Option<u64>,
    /// The signal that a resizable job gets when its processors have changed.
    #[cfg_attr(feature = "options", arg(
        long, value_name = "[B:]SIGNAL", value_parser = submit::resize_signal,
        help = "Sends a resizable job a signal when its processors have changed, such as USR1; with B: before it only to the \
                main process"
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resize_signal: Option<SignalRequest>,
    /// The number of tasks that the program starts on its processors. Only variables of its environment depend on it.
    #[cfg_attr(feature = "options", arg(skip))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
    /// The requested memory, in bytes; by default that of the queue.
    #[cfg_attr(feature = "options", arg(
        long, short, visible_alias = "mem", value_name = "SIZE", value_parser = submit::memory,
        help = "The memory of the job, such as 512MiB or 8GiB [default: from the queue]"
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The requested GPUs. The job gets their indexes in `MISERLY_GPUS`, and what its libraries need in `CUDA_VISIBLE_DEVICES`.
    #[cfg_attr(feature = "options", arg(skip))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u64>,
    /// The type of the GPUs, or several with | between them; by default any.
    #[cfg_attr(feature = "options", arg(skip))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// The least memory of each GPU, in bytes. Without a number of GPUs: the share of the memory of one, which others may share.
    #[cfg_attr(feature = "options", arg(
        long, value_name = "SIZE", value_parser = submit::memory,
        help = "The memory of each GPU, such as 40GiB; without --gpus the share of one GPU that jobs with shares have together"
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory: Option<u64>,
    /// The time limit, in seconds.
    #[cfg_attr(feature = "options", arg(skip))]
    pub time: f64,
    /// The queue [default: the first one]
    #[cfg_attr(
        feature = "options",
        arg(long, visible_short_alias = 'p', visible_alias = "partition", value_name = "QUEUE")
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The earliest start.
    #[cfg_attr(feature = "options", arg(
        long, visible_short_alias = 'b', value_name = "WHEN", value_parser = submit::when,
        help = "The earliest start: 2026-03-01T08:00, 08:00 (the next one), +2h, tomorrow"
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<Timestamp>,
    /// The deadline of the end. A job that cannot meet it is refused.
    #[cfg_attr(feature = "options", arg(
        long, value_name = "WHEN", value_parser = submit::when,
        help = "The latest end, in the notation of --begin; the job is refused if it cannot end by then"
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The longest wait, in seconds, from the submission or from `begin`. A job that has not started by then is given up.
    #[cfg_attr(feature = "options", arg(
        long, value_name = "TIME", value_parser = submit::wait_time,
        help = "The longest wait, such as 10min, from the submission or from --begin; the job is given up if it has not \
                started by then"
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_within: Option<f64>,
    /// Lets the job run on past its time limit while no other job needs its place
    #[cfg_attr(feature = "options", arg(long))]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overrun_if_idle: bool,
    /// Jobs that have to end first, with any result. The number of an array means all its jobs.
    #[cfg_attr(feature = "options", arg(skip))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<i64>,
    /// Further conditions on the ends of other jobs. All of them have to hold.
    #[cfg_attr(feature = "options", arg(skip))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The indexes of an array. Its jobs differ only in their index.
    #[cfg_attr(feature = "options", arg(
        long, short, value_name = "INDICES", value_parser = submit::array,
        help = "The indices of an array, such as 0-15, 0-15:4 or 1,3,5-9; with %4, at most 4 of its jobs run at the same \
                time. Each job gets its index in MISERLY_ARRAY_INDEX"
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Array>,
    /// Lets the scheduler stop the job and start it again from the beginning
    #[cfg_attr(feature = "options", arg(long, visible_alias = "requeue"))]
    #[serde(default)]
    pub restartable: bool,
    /// Whether and how often it runs again after a failure.
    #[cfg_attr(feature = "options", arg(
        long, value_name = "N[:CODE,...]", value_parser = submit::retry,
        help = "Runs the job again after a failure, at most N times; with N:75,111 only after these exit codes"
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// The signal that it gets before the end of its window.
    #[cfg_attr(feature = "options", arg(
        long, value_name = "[B:]SIGNAL[@TIME]", value_parser = submit::early_signal,
        help = "Sends the job a signal before the end of its window: USR1@5min, or with seconds USR1@300 [default time: 60 \
                seconds]; with B: before it only to the main process"
    ))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<EarlySignal>,
    /// The events on which a mail is wanted.
    #[cfg_attr(feature = "options", arg(skip))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<Mail>,
    /// Runs the job in its window only, not ahead of its promised start
    #[cfg_attr(feature = "options", arg(long))]
    #[serde(default)]
    pub no_opportunistic: bool,
    /// Holds the job until it is released
    #[cfg_attr(feature = "options", arg(long, visible_short_alias = 'H'))]
    #[serde(default)]
    pub hold: bool,
    /// The file of the standard input, with the % codes of --output [default: the input is empty]
    #[cfg_attr(feature = "options", arg(long, short, value_name = "FILE"))]
    #[serde(default, skip_serializing_if = "Option::is_none", with = "super::lossless::optional")]
    #[schema(value_type = Option<PathText>)]
    pub input: Option<PathBuf>,
    /// How clients reach the job while it runs; by default they do not.
    #[cfg_attr(feature = "options", arg(skip))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction: Option<Interaction>,
    /// The output file; %j is the job number, %A the array number, %a the array index, %x the job name
    #[cfg_attr(feature = "options", arg(long, short, value_name = "FILE"))]
    #[serde(default, skip_serializing_if = "Option::is_none", with = "super::lossless::optional")]
    #[schema(value_type = Option<PathText>)]
    pub output: Option<PathBuf>,
    /// The file of the error output, with the same % codes [default: the output file]
    #[cfg_attr(feature = "options", arg(long, short, value_name = "FILE"))]
    #[serde(default, skip_serializing_if = "Option::is_none", with = "super::lossless::optional")]
    #[schema(value_type = Option<PathText>)]
    pub error: Option<PathBuf>,
    /// Whether the first run appends to these files, too. Any later one does.
    #[cfg_attr(feature = "options", arg(skip))]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub append: bool,
    /// The file mode creation mask.
    #[cfg_attr(feature = "options", arg(skip))]
    #[serde(default = "mask")]
    pub umask: u32,
    /// A name of this request. A repeated request with the same name submits nothing again, and gets
    /// the jobs of the first one.
    #[cfg_attr(feature = "options", arg(skip))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// How clients reach a job while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Interaction {
    /// By its standard input, unless that is a file, and by signals.
    Stdin,
    /// By a terminal, which is its standard input, output and error. The output file has a copy of what it prints.
    Terminal {
        /// The lines of the terminal; 24 for 0, which is unknown.
        #[serde(default)]
        rows: u16,
        /// The characters of a line; 80 for 0, which is unknown.
        #[serde(default)]
        columns: u16,
    },
}

/// A variable of the environment as bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct RawVariable {
    /// The bytes of the name.
    #[schema(value_type = Vec<u32>)]
    pub name: Vec<u8>,
    /// The bytes of the value.
    #[schema(value_type = Vec<u32>)]
    pub value: Vec<u8>,
}

/// A condition on the end of another job, which is named by `job` or by `name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The result that the other job must have.
    pub when: When,
    /// The number of the other job. The number of an array means all its jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<i64>,
    /// The index of one job in the array `job`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// The name of the other job: the newest of the same user that has it now. A job of an array means the whole array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The result of a job that another one waits for.
///
/// A job succeeds if it ends by itself with exit code 0. Any other end is a failure, also if it never ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Any end.
    #[default]
    Any,
    /// Success.
    Ok,
    /// Failure.
    NotOk,
    /// Success of the job with the same index. Both are jobs of arrays.
    EachOk,
}

/// The failures after which a job runs again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// How often it runs again at most; from 1 to 100.
    pub limit: u32,
    /// The exit codes after which it runs again; all but 0 if there is none here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<i32>,
}

impl Retry {
    /// The highest limit.
    pub const MOST: u32 = 100;

    /// Returns whether a job runs again that has ended with this exit code.
    pub fn admits(&self, code: i32) -> bool {
        code != 0 && (self.codes.is_empty() || self.codes.contains(&code))
    }
}

/// The indexes of an array of jobs, and how many of its jobs run at a time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Array {
    /// The first index.
    pub first: u32,
    /// The last index, which is included if the step reaches it.
    pub last: u32,
    /// The step between indexes; at least 1.
    #[serde(default = "one_step")]
    pub step: u32,
    /// Further ranges of indexes. An index that is in several ranges counts once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<IndexRange>,
    /// The most jobs of the array that run at the same time; by default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Indexes from first to last by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IndexRange {
    /// The first index.
    pub first: u32,
    /// The last index, which is included if the step reaches it.
    pub last: u32,
    /// The step between indexes; at least 1.
    #[serde(default = "one_step")]
    pub step: u32,
}

#[cfg(feature = "options")]
/// Sets the fields of `$of` that are not given, as in `$none`, to those of `$from`.
macro_rules! complete {
    ($of:expr, $from:expr, $none:expr, $($field:ident)*) => {
        $(if $of.$field == $none.$field {
            $of.$field = $from.$field;
        })*
    };
}

#[cfg(feature = "options")]
pub(crate) use complete;

impl Submission {
    /// The most bytes of a comment.
    pub const COMMENT_MOST: usize = 1024;

    /// Returns the number of GPUs on which the job runs. A share is on one.
    pub fn gpu_count(&self) -> u64 {
        self.gpus.unwrap_or(u64::from(self.is_gpu_share()))
    }

    /// Returns whether the job requests a share of the memory of one GPU.
    pub fn is_gpu_share(&self) -> bool {
        self.gpus.is_none() && self.gpu_memory.is_some()
    }

    /// Returns this submission, with the options that are not given from `other`.
    #[cfg(feature = "options")]
    pub(crate) fn or(mut self, other: Submission) -> Submission {
        let none = Submission::default();
        complete!(self, other, none,
            name comment resizable resize_signal tasks memory gpu_memory queue begin deadline start_within overrun_if_idle array restartable retry signal no_opportunistic hold input output
            error);
        self
    }

    /// Returns the name of the job: the requested one, or that of the program.
    pub fn job_name(&self) -> String {
        let program = || {
            let program = self.command.first().filter(|_| self.script.is_none());
            program_name(program.map_or("script", String::as_str))
        };
        self.name.clone().unwrap_or_else(program)
    }
}

/// Returns the name of a program's job: that of its file, without characters that no name has.
pub fn program_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path).replace(is_invisible, "?");
    if is_blank(&name) { "?".to_owned() } else { name }
}

const fn one() -> u64 {
    1
}

const fn one_step() -> u32 {
    1
}

const fn mask() -> u32 {
    0o077
}

impl Array {
    /// Returns the array of one range of indexes, without a limit.
    pub const fn range(first: u32, last: u32, step: u32) -> Array {
        Array { first, last, step, more: vec![], limit: None }
    }

    /// Returns the ranges of the indexes, as they are written.
    pub fn ranges(&self) -> impl Iterator<Item = IndexRange> {
        let Array { first, last, step, .. } = *self;
        std::iter::once(IndexRange { first, last, step }).chain(self.more.iter().copied())
    }

    /// Returns the number of indexes, where one that is in several ranges counts in each.
    pub fn count(&self) -> u64 {
        self.ranges().map(IndexRange::count).fold(0, u64::saturating_add)
    }

    /// Returns the indexes. O(n log n) for the [`count`](Array::count) n.
    pub fn indexes(&self) -> BTreeSet<u32> {
        self.ranges().flat_map(IndexRange::indexes).collect()
    }
}

impl IndexRange {
    /// Returns the number of indexes.
    pub fn count(self) -> u64 {
        if self.first > self.last {
            return 0;
        }
        u64::from((self.last - self.first) / self.step.max(1)) + 1
    }

    /// Returns the indexes, in order.
    pub fn indexes(self) -> impl Iterator<Item = u32> {
        (self.first..=self.last).step_by(usize::try_from(self.step.max(1)).unwrap_or(usize::MAX))
    }
}
