//! A job, as the daemon shows it.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::PathText;

use super::{JobUsage, Mail, StepView};

/// A job: its request, its state and its promise.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct JobView {
    /// The job number.
    pub number: i64,
    /// The number of the first job of its array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<i64>,
    /// The index in the array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// The name of the job.
    pub name: String,
    /// The comment of its user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The number of the user.
    pub uid: u32,
    /// The name of the user.
    pub user: String,
    /// The queue.
    pub queue: String,
    /// The requested processors; of a resizable job the most.
    pub cpus: u64,
    /// The requested tasks; absent if none were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
    /// The most jobs of its array that may run at the same time; absent without such a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array_limit: Option<u32>,
    /// The least processors of a resizable job; absent for other jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resizable: Option<u64>,
    /// The most processors that a resizable job wants now, after `miserly resize`; absent for other jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<u64>,
    /// The requested memory, in bytes.
    pub memory: u64,
    /// The requested GPUs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gpus: u64,
    /// The requested type of the GPUs; absent for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// The requested memory of each GPU, in bytes; absent for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory: Option<u64>,
    /// Whether it requests that memory of one GPU only, which other jobs may share. Nothing enforces the share.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gpu_share: bool,
    /// The indexes of the GPUs that it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub has_gpus: Vec<u32>,
    /// The time limit, in seconds, without what the job was given past it.
    pub time: f64,
    /// Whether it is a script.
    pub script: bool,
    /// The program and its arguments. Like the paths, it is absent in lists that were not requested
    /// with details, and for users other than the job's, root and the daemon's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "super::lossless::optional")]
    #[schema(value_type = Option<PathText>)]
    pub directory: Option<PathBuf>,
    /// The file of the standard output.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "super::lossless::optional")]
    #[schema(value_type = Option<PathText>)]
    pub output: Option<PathBuf>,
    /// The file of the standard error.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "super::lossless::optional")]
    #[schema(value_type = Option<PathText>)]
    pub error: Option<PathBuf>,
    /// The time of the submission.
    pub submitted: Timestamp,
    /// The earliest start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin: Option<Timestamp>,
    /// The deadline of the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The latest start, while it has not run: if it has not started by then, it is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_by: Option<Timestamp>,
    /// Whether it runs on past its time limit while no other job needs its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overrun_if_idle: bool,
    /// The time past its time limit that it was given so far, in seconds; `time` has it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrun: Option<f64>,
    /// Since when it uses almost no processor time, if its queue looks for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_since: Option<Timestamp>,
    /// The unfinished jobs that have to end first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(default)]
    pub after: Vec<i64>,
    /// Those of `after` that have to succeed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_ok: Vec<i64>,
    /// Those of `after` that have to fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_not_ok: Vec<i64>,
    /// The events on which a mail is wanted; absent for other users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<Mail>,
    /// Whether its work may be lost and repeated.
    pub restartable: bool,
    /// Whether it may run on idle resources before its start.
    pub opportunistic: bool,
    /// The state.
    pub phase: Phase,
    /// The promise to the present run; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<PromiseView>,
    /// The planned start, if the policy has one. A plan is not a promise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<Timestamp>,
    /// The likely start, while it waits; absent if there is no forecast. A forecast is not a promise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<ForecastView>,
    /// The reasons why it does not run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(default)]
    pub reasons: Vec<WaitReason>,
    /// The reason of its present start, or of its last one; absent while it waits, and for jobs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_reason: Option<StartReason>,
    /// The slots in which it runs, if its queue is time-sliced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<Slots>,
    /// The judged promises of its runs, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judged: Vec<JudgedPromise>,
    /// The delay of its last start with a promise, if that was later than promised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<LateStart>,
    /// Why it still runs after its window, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overdue: Option<Overdue>,
    /// Whether its user has stopped its processes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// How it lost processors in its window, or the sole use of them; the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_lost: Option<String>,
    /// Why the epilog of an attempt failed; the last time. The outcome of the job is that of its command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epilog_failed: Option<String>,
    /// Whether it is suspended without a process: a command of its queue has written it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub written_out: bool,
    /// Why it was not written out when it was suspended, so that it began anew; the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_out_failed: Option<String>,
    /// Why the daemon could not place the job and set it aside. It is held until it is released; an attempt that it has runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<String>,
    /// The number of the latest attempt, or 0. A connection to the job names it.
    pub attempts: u32,
    /// How often its command was begun, as far as that is known: more than once if it was requeued, retried or lost. An attempt
    /// whose launch failed, or whose shim only waited, does not count.
    pub runs: u32,
    /// The exit codes of the attempts that failed and after which it ran again, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retried: Vec<i32>,
    /// The resources that its ended attempts used; absent if none has ended, in lists that were not requested with details,
    /// and for users other than the job's, root and the daemon's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<JobUsage>,
    /// The last 500 steps of its last run that had some; absent as `usage` is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepView>,
    /// The guarantees that cannot be enforced on this machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(default)]
    pub unenforced: Vec<String>,
}

impl JobView {
    /// Returns the notation of the job: its number, or that of its array with its index, such as `1[60]`.
    pub fn label(&self) -> String {
        match (self.array, self.index) {
            (Some(array), Some(index)) => format!("{array}[{index}]"),
            _ => self.number.to_string(),
        }
    }

    /// Returns whether the promise to the last run was late or lost.
    pub fn missed_promise(&self) -> bool {
        self.judged.last().is_some_and(|last| matches!(last.judgement, Judgement::Late | Judgement::Lost))
    }

    /// Removes the parts that other users may not read: the command, the paths, the usage and the steps.
    pub fn remove_details(&mut self) {
        self.command = None;
        self.mail = None;
        self.directory = None;
        self.output = None;
        self.error = None;
        self.usage = None;
        self.steps = vec![];
        if let Phase::Failed { message, .. } = &mut self.phase {
            // It names the program, the folder or the output.
            message.clear();
        }
    }
}

/// The likely start of a waiting job. No bound is later than the promise.
///
/// The bounds are absent until enough earlier forecasts have come out to calibrate them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct ForecastView {
    /// The instant of the forecast.
    pub made: Timestamp,
    /// The median: it starts by then in half of all cases.
    pub median: Timestamp,
    /// It starts by then in 80 % of all cases; absent if that is not calibrated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_80: Option<Timestamp>,
    /// It starts by then in 95 % of all cases; absent if that is not calibrated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_95: Option<Timestamp>,
}

impl ForecastView {
    /// Returns the median and both bounds, if they are calibrated.
    pub fn bounds(&self) -> Option<[Timestamp; 3]> {
        Some([self.median, self.by_80?, self.by_95?])
    }
}

/// The time in which a job's resources are reserved for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct Window {
    /// The latest start.
    pub start: Timestamp,
    /// The latest end: the start and the time limit.
    pub end: Timestamp,
}

/// The state of a job.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Phase {
    /// Held by its user or an administrator. It has no window.
    Held,
    /// Waiting in its queue.
    #[default]
    Queued,
    /// Opportunistic: runs on idle resources before its start.
    Opportunistic {
        /// The time at which it first ran.
        start: Timestamp,
        /// Whether it is parked: stopped because nothing is idle.
        parked: bool,
    },
    /// Running in its window.
    Running(JobAllocation),
    /// Suspended in its window for another job.
    Suspended(JobAllocation),
    /// Ended by itself.
    Done {
        /// The start.
        start: Timestamp,
        /// The end.
        end: Timestamp,
        /// The exit status.
        exit: Exit,
        /// The processors that it had at its end: ranges of numbers, each with its first and its last one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cpu_ranges: Vec<(u32, u32)>,
    },
    /// Ended by the daemon or a user.
    Killed {
        /// The start, if it started.
        start: Option<Timestamp>,
        /// The end.
        end: Timestamp,
        /// The cause.
        by: KilledBy,
        /// The exit status, if it ran.
        exit: Option<Exit>,
        /// The processors that it had at its end: ranges of numbers, each with its first and its last one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cpu_ranges: Vec<(u32, u32)>,
    },
    /// Not run, because it could not be.
    Failed {
        /// The time of the finding.
        at: Timestamp,
        /// The cause.
        why: Failure,
        /// The message of the system.
        message: String,
    },
    /// Gone from the machine, with an unknown exit status.
    Lost {
        /// The time of the finding.
        at: Timestamp,
        /// The cause.
        why: LostBy,
    },
    /// Running, although the state does not have it: the state is older than the job.
    Adopted {
        /// The end of its window; absent if it has none.
        end: Option<Timestamp>,
        /// The processors that are kept for it, by number.
        cpus: Vec<u32>,
    },
    /// Stored, but its record cannot be read. It does not run, unless it ran before.
    Unreadable {
        /// The problem.
        problem: String,
        /// The processors that are kept for its attempt, by number.
        cpus: Vec<u32>,
    },
}

impl Phase {
    /// Returns the start of a job that runs or ran in its window.
    pub fn started(&self) -> Option<Timestamp> {
        match self {
            Phase::Running(holding) | Phase::Suspended(holding) => Some(holding.start),
            Phase::Done { start, .. } => Some(*start),
            Phase::Killed { start, .. } => *start,
            _ => None,
        }
    }

    /// Returns the state of a job that its user cancelled before it ran.
    pub fn cancelled(end: Timestamp) -> Phase {
        Phase::Killed { start: None, end, by: KilledBy::User, exit: None, cpu_ranges: vec![] }
    }

    /// Returns the processors of a job that runs, or those that it had at its end: ranges of numbers.
    pub fn cpus(&self) -> Vec<(u32, u32)> {
        match self {
            Phase::Running(JobAllocation { cpus, .. })
            | Phase::Adopted { cpus, .. }
            | Phase::Unreadable { cpus, .. } => number_ranges(cpus),
            Phase::Done { cpu_ranges, .. } | Phase::Killed { cpu_ranges, .. } => cpu_ranges.clone(),
            _ => vec![],
        }
    }

    /// Returns whether a job ended by itself with exit code 0.
    pub fn succeeded(&self) -> bool {
        matches!(self, Phase::Done { exit: Exit::Code(0), .. })
    }

    /// Returns the end of a finished job.
    pub fn ended(&self) -> Option<Timestamp> {
        match self {
            Phase::Done { end, .. } | Phase::Killed { end, .. } => Some(*end),
            Phase::Failed { at, .. } | Phase::Lost { at, .. } => Some(*at),
            Phase::Held
            | Phase::Queued
            | Phase::Opportunistic { .. }
            | Phase::Running(_)
            | Phase::Suspended(_)
            | Phase::Adopted { .. }
            | Phase::Unreadable { .. } => None,
        }
    }
}

/// Returns numbers, such as those of processors, as ranges with both ends.
///
/// # Example
/// ```
/// use miserly_api::model::number_ranges;
///
/// assert_eq!(number_ranges(&[7, 0, 1, 2, 5, 8]), [(0, 2), (5, 5), (7, 8)]);
/// assert_eq!(number_ranges(&[u32::MAX]), [(u32::MAX, u32::MAX)]);
/// ```
pub fn number_ranges(numbers: &[u32]) -> Vec<(u32, u32)> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in sorted {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

/// The resources allocated to a job in its window.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct JobAllocation {
    /// The start.
    pub start: Timestamp,
    /// The latest end.
    pub end: Timestamp,
    /// The processors, by number.
    pub cpus: Vec<u32>,
}

/// A job that still holds its resources after its window and the cleanup time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct Overdue {
    /// The instant since which it is overdue.
    pub since: Timestamp,
    /// The cause.
    pub cause: OverdueCause,
}

/// The reason why a job is overdue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum OverdueCause {
    /// Its end takes time.
    #[default]
    Ending,
    /// Its shim was stopped.
    ShimStopped,
    /// Processes do not die: they wait in the kernel, or have the rights of another user.
    Processes {
        /// The processes.
        pids: Vec<u32>,
    },
}

/// The slots of a time-sliced job.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct Slots {
    /// The slot of its own placement, from 0.
    pub own: u32,
    /// All slots in which it runs, in order: its own, and alternates in which its processors are
    /// free.
    pub runs_in: Vec<u32>,
    /// The number of used slots, which are rotated.
    pub used: u64,
    /// The share of the time in which it runs, above 0 and at most 1. Context switches are
    /// deducted.
    pub fraction: f64,
}

/// The exit status of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// An exit code.
    Code(i32),
    /// A signal.
    Signal(i32),
}

/// The cause of the end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KilledBy {
    /// The end of its window.
    Time,
    /// Its user or an administrator.
    User,
    /// A shutdown of the machine, or the end of the user's session.
    Shutdown,
    /// It needed more memory than it had requested.
    Memory,
    /// It used almost no processor time for as long as its queue permits.
    Idle,
}

/// The reason why a job could not be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The working directory does not exist.
    Directory,
    /// The input file cannot be opened.
    Input,
    /// The output file cannot be opened.
    Output,
    /// The program does not exist or cannot be executed.
    Program,
    /// The prolog of the queue failed.
    Prolog,
    /// The queue's policy will never start it.
    Refused,
    /// A job that it waits for has not ended as required.
    Dependency,
    /// It had not started by the latest start that its user set.
    NotInTime,
    /// Any other failure.
    System,
}

/// The reason why the exit status of a job is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LostBy {
    /// The machine was rebooted.
    Reboot,
    /// Its shim was killed.
    Shim,
    /// Its attempt left no record on this machine, and the state is a restored one.
    Restored,
}

/// The promise to a job, and its history.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct PromiseView {
    /// The promised window. Its start is the latest start, by which the promise is judged.
    pub promised: Window,
    /// The window at the latest by the present plan: the same or earlier, unless the promise is at risk; absent if no start is
    /// planned any more.
    pub now: Option<Window>,
    /// How far the plan is behind the promise; absent if the promise is not at risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_risk: Option<AtRisk>,
    /// The latest starts by the plans of all runs, in order.
    pub history: Vec<PromiseChange>,
}

/// A promise whose plan is behind it. It is not judged yet.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct AtRisk {
    /// The time from the latest start to the planned start, in seconds; absent if no start is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<f64>,
    /// The cause for which the plan moved behind the promise.
    pub why: PromiseChangeReason,
}

/// The judgement of a promise. There is one for each run of a job that had a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The job started by its latest start, or ran and ended before it.
    Kept,
    /// The job started later.
    Late,
    /// The job ended without a start, and its user did not request that.
    Lost,
    /// The user of the job cancelled, held or changed it, or a condition of the user was not met.
    Withdrawn,
}

/// A judged promise of a job.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct JudgedPromise {
    /// The latest start.
    pub promised: Timestamp,
    /// The judgement.
    pub judgement: Judgement,
    /// The delay of a late start, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<f64>,
    /// The cause of a late start or of a loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<PromiseChangeReason>,
}

/// A promise that was not kept, with its job.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct MissedPromise {
    /// The number of the job.
    pub job: i64,
    /// The time of the judgement.
    pub at: Timestamp,
    /// The latest start.
    pub promised: Timestamp,
    /// The judgement: late or lost.
    pub judgement: Judgement,
    /// The delay of a late start, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<f64>,
    /// The cause.
    pub why: PromiseChangeReason,
}

/// A change of a promise.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct PromiseChange {
    /// The time of the change.
    pub at: Timestamp,
    /// The latest start from then on; absent if none is promised any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// The reason of the change.
    pub why: PromiseChangeReason,
}

/// The reason of a change of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromiseChangeReason {
    /// The submission.
    Submitted,
    /// Another job left capacity.
    Earlier,
    /// A job was overdue.
    Overdue,
    /// No daemon ran or it stalled, or the machine slept, when the job was due.
    Away,
    /// The machine, or the session of the daemon, shut down when the job was due.
    Shutdown,
    /// The launch alone took longer than the slack: the daemon or the shim woke up, and made the process.
    Launch,
    /// The machine lost capacity.
    Capacity,
    /// Another request was amended.
    Amended,
    /// The attempt was lost, and the job runs again.
    Lost,
    /// The policy of the queue made a mistake, and the queue was stopped.
    Stopped,
    /// The job was held.
    Held,
    /// The job was released.
    Released,
    /// A user requested another run of the job.
    Requeued,
    /// The job failed, and runs again.
    Retried,
    /// The request of the job was changed.
    Modified,
    /// An operator held, changed or cancelled the job of another user.
    Operator,
    /// The policy of the queue took the job off its resources.
    Displaced,
    /// The policy of the queue will never start the job.
    Refused,
}

miserly_core::listed_enum! {
    /// The reason for which the policy of its queue started a job.
    #[derive(Deserialize, Serialize, utoipa::ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum StartReason {
        /// At its submission, without overtaking a waiting job before it in the queue.
        Immediate "immediate",
        /// In queue order: as the head of the queue, or at the start reserved for it.
        Reserved "reserved",
        /// Ahead of a job before it in the queue that still waited.
        Backfilled "backfilled",
        /// At the start of a window that was promised to its user.
        Promised "promised",
        /// For a short quantum at once, regardless of the queue.
        Quantum "quantum",
    }
}

impl From<miserly_core::StartReason> for StartReason {
    fn from(reason: miserly_core::StartReason) -> StartReason {
        match reason {
            miserly_core::StartReason::Immediate => StartReason::Immediate,
            miserly_core::StartReason::Reserved => StartReason::Reserved,
            miserly_core::StartReason::Backfilled => StartReason::Backfilled,
            miserly_core::StartReason::Promised => StartReason::Promised,
            miserly_core::StartReason::Quantum => StartReason::Quantum,
        }
    }
}

/// A reason why a job waits.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum WaitReason {
    /// The job is held.
    Held,
    /// The earliest start has not come.
    Begin {
        /// The earliest start.
        at: Timestamp,
    },
    /// Other jobs have to end first.
    After {
        /// The other jobs.
        jobs: Vec<i64>,
    },
    /// As many jobs of its array as its limit permits have begun or have a promise.
    ArrayLimit {
        /// The limit.
        limit: u32,
    },
    /// Other jobs of the user, or of the users that a limit counts together, have all places under the limit.
    UserLimit {
        /// The limit: the name of its table, and `running` or `cpus`, such as `students.cpus`.
        limit: String,
        /// The most jobs or processors at the same time.
        most: u64,
    },
    /// Too few resources are free.
    Resources {
        /// The resource: `cpus`, `memory`, `gpus` or `slots`.
        kind: String,
        /// The requested amount.
        requested: u64,
        /// The free amount.
        free: u64,
    },
    /// The free resources are reserved for other jobs.
    Reserved,
    /// A reservation of an operator has the resources, or is the queue of the job and has not begun.
    Reservation {
        /// The name of the reservation.
        name: String,
        /// Its beginning.
        from: Timestamp,
        /// Its end.
        to: Timestamp,
    },
    /// An opportunistic job is parked because the memory of the machine is short. Its window is not affected.
    MemoryShort,
}

/// The delay of a start that was later than promised.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct LateStart {
    /// The delay, in seconds.
    pub by: f64,
    /// The cause.
    pub why: PromiseChangeReason,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
