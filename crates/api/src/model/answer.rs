//! Replies of the daemon.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ForecastView, MissedPromise, Window};

/// The reply to a submission.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct Submitted {
    /// The jobs, in the order of their indexes. Without an array it is one.
    pub jobs: Vec<Accepted>,
}

/// An accepted job, which is stored.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct Accepted {
    /// The job number.
    pub number: i64,
    /// The index in the array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// The promised window, or that of a job with a promise that has started; absent if it has no promise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<Window>,
    /// Why it has no promise; absent if it has one, or has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_promise: Option<NoPromise>,
    /// The instant at which it is given up if it has not started by then; absent without a longest wait, or once it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_by: Option<Timestamp>,
    /// Whether it has started.
    pub started: bool,
}

/// The reason why a job has no promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoPromise {
    /// It is held.
    Held,
    /// It waits for a job whose end is not known.
    After,
    /// It waits for an instant of which the policy of its queue has no notion.
    Begin,
    /// It waits for a place under the limit of its array or of its user.
    Place,
    /// The policy of its queue promises nothing, or nothing to this job.
    Policy,
}

/// The promises that a submission would get now. They are not binding.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct Quote {
    /// The windows, in the order of the indexes; null if the queue's policy promises nothing.
    pub windows: Vec<Option<Window>>,
    /// The likely start of the first job, if it would wait; absent if there is no forecast. It is not a promise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<ForecastView>,
}

/// The jobs that a request changed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct JobIds {
    /// The job numbers.
    pub jobs: Vec<i64>,
}

/// The reason why a request was rejected.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, thiserror::Error, utoipa::ToSchema)]
#[error("{message}")]
pub struct Problem {
    /// The kind of problem.
    pub code: ProblemCode,
    /// The problem, its location and the remedy.
    pub message: String,
    /// The field of the request that causes the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The job that would be affected, or that prevents the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<i64>,
    /// What the daemon would accept instead, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub possible: Option<Possible>,
}

/// What the daemon would accept instead of a refused request. It is not binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Possible {
    /// The window that would be promised without a deadline. Of an array, the one that ends last.
    Window(Window),
    /// An extension that breaks no promise, in seconds: the largest one that halving the request found. 0 if none was found.
    Extension(u64),
    /// The next time at which a reservation breaks no promise.
    Reservation(Window),
}

impl Problem {
    /// Returns a problem of the whole request.
    pub fn new(code: ProblemCode, message: impl Into<String>) -> Problem {
        Problem { code, message: message.into(), field: None, job: None, possible: None }
    }

    /// Returns a problem of one field of the request.
    pub fn with_field(field: &str, message: impl Into<String>) -> Problem {
        Problem { field: Some(field.into()), ..Problem::new(ProblemCode::Malformed, message) }
    }
}

/// The kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemCode {
    /// The request is malformed.
    Malformed,
    /// The request is refused: too large, no window, a deadline that cannot be met, or a promise
    /// that would break.
    Refused,
    /// The job, the queue or the path does not exist.
    NotFound,
    /// The caller has no permission.
    Forbidden,
    /// The state of the job does not admit the request.
    Conflict,
    /// The daemon ends, or accepts no new jobs.
    Unavailable,
    /// The state store is full or fails. The request had no effect.
    Storage,
    /// A defect of the daemon.
    Internal,
}

/// The state of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct Status {
    /// The version of the daemon.
    pub version: String,
    /// The process of the daemon.
    pub pid: i32,
    /// The start of the daemon.
    pub since: Timestamp,
    /// The present time of the daemon's clock.
    pub now: Timestamp,
    /// The folder of the state.
    pub state: String,
    /// The configuration file; absent if it runs without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// The reason why the setup of the last daemon applies in its place; absent if the configuration applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration_problem: Option<String>,
    /// The outcome of the last `reload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<ConfigurationReading>,
    /// Whether a client that sends the mails of jobs is connected; absent if the daemon does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mailer: Option<bool>,
    /// Whether new jobs are rejected.
    pub draining: bool,
    /// The number of shims that wait for the windows of promised jobs. They begin them without the daemon, too.
    #[serde(default)]
    pub waiting_shims: u64,
    /// The first promised start for which no shim waits: from then on starts need the daemon. Absent without such a start, and if
    /// no shim may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_daemon_from: Option<Timestamp>,
    /// The number of processors for jobs.
    pub cpus: u64,
    /// The processors for jobs that other daemons on this machine have, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_cpus: Vec<SharedCpus>,
    /// The damage of the state that was found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<StateDamage>,
    /// Whether the check of the history goes on, so that more damage may be found.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checking: bool,
    /// Attempts that run and that the state does not have. They keep their processors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adopted: Vec<AdoptedAttempt>,
    /// Jobs that the daemon could not place and set aside, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<SetAsideJob>,
    /// The restrictions under which the launcher works at present, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launcher: Vec<String>,
    /// The pressure on processors and memory; absent if the kernel does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<Pressure>,
    /// The queues, in order.
    pub queues: Vec<QueueStatus>,
    /// The queues for names of Slurm; absent without such tables.
    #[serde(default, skip_serializing_if = "SlurmTables::is_empty")]
    pub slurm: SlurmTables,
    /// The guarantees that it cannot enforce on this machine.
    pub unenforced: Vec<Unenforced>,
    /// The priority of jobs in their windows over other programs; absent if the daemon does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical_priority: Option<CriticalPriority>,
    /// The promises since the state was created: at most one to each run of a job. They are the sum of `kept`, `late`, `lost`,
    /// `withdrawn`, `open` and `earlier`.
    pub promises: u64,
    /// Those whose jobs started in time.
    pub kept: u64,
    /// Those whose jobs started later.
    pub late: u64,
    /// Those whose jobs ended without a start, and whose users did not request that.
    #[serde(default)]
    pub lost: u64,
    /// Those whose users cancelled, held or changed their jobs.
    #[serde(default)]
    pub withdrawn: u64,
    /// Those that are not judged yet.
    #[serde(default)]
    pub open: u64,
    /// The open ones whose plans are behind the promise.
    #[serde(default)]
    pub at_risk: u64,
    /// Those that an earlier version counted and did not judge.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earlier: u64,
    /// The jobs that an earlier version counted as broken; this version does not change the number.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub broken: u64,
    /// The last promises that were late or lost, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<MissedPromise>,
    /// What became of forecasts; absent if none was audited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecasts: Option<ForecastRecord>,
}

/// The queues for partitions, accounts and qualities of service of Slurm, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(default)]
pub struct SlurmTables {
    /// The queues for other names of partitions.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub partitions: BTreeMap<String, String>,
    /// The queues for accounts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub accounts: BTreeMap<String, String>,
    /// The queues for qualities of service.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub qos: BTreeMap<String, String>,
}

impl SlurmTables {
    fn is_empty(&self) -> bool {
        *self == SlurmTables::default()
    }
}

/// A job that the daemon could not place. It is held until it is released or cancelled; an attempt that it has runs on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct SetAsideJob {
    /// The number of the job.
    pub job: i64,
    /// The reason.
    pub reason: String,
}

/// The outcome of the last new reading of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct ConfigurationReading {
    /// The number of new readings since the start of the daemon.
    pub count: u64,
    /// The reason why the configuration stays as it was; absent if it was replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What became of forecasts with calibrated bounds: the first forecast of each job that waited, against its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct ForecastRecord {
    /// Jobs with such a forecast that have started.
    pub audited: u64,
    /// Those that started by the median.
    pub kept_50: u64,
    /// Those that started by the bound of 80 %.
    pub kept_80: u64,
    /// Those that started by the bound of 95 %.
    pub kept_95: u64,
}

/// The pressure on the machine and on its jobs: shares of the time in which processes wait for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct Pressure {
    /// The whole machine.
    pub machine: PressureOn,
    /// The jobs, with their shims; absent if they have no control groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<PressureOn>,
}

/// The pressure on processors and memory. Parts that the kernel does not report are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct PressureOn {
    /// Some process waits for a processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Stall>,
    /// Some process waits for memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Stall>,
    /// All processes that are not idle wait for memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_full: Option<Stall>,
}

/// Shares of the time, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct Stall {
    /// The last 10 seconds.
    pub avg10: f64,
    /// The last minute.
    pub avg60: f64,
    /// The last five minutes.
    pub avg300: f64,
}

/// A part of the state that differs from the last commit, or that this version cannot read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct StateDamage {
    /// The part.
    pub part: String,
    /// The job, if it is the row of a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<i64>,
    /// The problem.
    pub problem: String,
}

/// An attempt that runs without a record in the state.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct AdoptedAttempt {
    /// The job.
    pub job: i64,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The processors that are kept for it, by number.
    pub cpus: Vec<u32>,
    /// The end of its window; absent if its shim has none or does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// Why the state does not have it.
    pub problem: String,
}

/// Processors that another daemon has, too. Jobs of both daemons share them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct SharedCpus {
    /// The processors, by number.
    pub cpus: Vec<u32>,
    /// The user of the other daemon, by number.
    pub uid: u32,
    /// The name of that user.
    pub user: String,
    /// The process of the other daemon.
    pub pid: u32,
}

/// A guarantee that cannot be enforced.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct Unenforced {
    /// The name of the guarantee.
    pub what: String,
    /// The possible consequence.
    pub sentence: String,
}

/// The priority of jobs in their windows over other programs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct CriticalPriority {
    /// The name of the means that give it: `confinement`, `cpu-weight`, `nice`, `real-time`; or the reason why there are none:
    /// `none`, `no-right`, `foreign-groups`.
    pub means: String,
    /// What the means do.
    pub sentence: String,
}

/// The present state of a queue.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct QueueStatus {
    /// The name.
    pub name: String,
    /// The policy with its parameters.
    pub policy: String,
    /// The mistake of the policy for which the queue is stopped: it starts nothing. Absent if it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The jobs to which the policy promises a start: `nothing`, `the head` or `every job`.
    pub promises: String,
    /// The present processors of the pool.
    pub cpus: u64,
    /// The present memory of the pool, in bytes; absent if memory is not accounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The processors allocated to jobs in their windows.
    pub cpus_held: u64,
    /// The memory allocated to jobs in their windows, in bytes.
    pub memory_held: u64,
    /// The present GPUs of the pool.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gpus: u64,
    /// The GPUs allocated to jobs in their windows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gpus_held: u64,
    /// The time limit of a job without one, in seconds; absent if each job needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_time: Option<f64>,
    /// The longest time limit, in seconds; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time: Option<f64>,
    /// The number of jobs in their windows.
    pub running: u64,
    /// The number of waiting jobs.
    pub waiting: u64,
}

/// The capacity of the pools over time.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct Pools {
    /// The pool of each queue, in order.
    pub pools: Vec<Pool>,
}

/// The capacity of one pool from now on.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct Pool {
    /// The queue.
    pub queue: String,
    /// The maximum number of processors.
    pub cpus: u64,
    /// The processors by number. Empty if the queue shares them with other queues, so that none is its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_numbers: Vec<u32>,
    /// Those of `cpu_numbers` that are offline or withheld.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus_offline: Vec<u32>,
    /// The free capacity until the last window ends, and for at least one day.
    pub slices: Vec<Slice>,
    /// The decayed usage of each user, the largest share first. Empty if the order of the queue does not depend on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<UserUsage>,
    /// The decayed usage of each group, the largest share first, as that of users. A job counts for the first group of its user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_usage: Vec<GroupUsage>,
}

/// The decayed usage of a group in a queue.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct GroupUsage {
    /// The group.
    pub group: String,
    /// The group, by number.
    pub gid: u32,
    /// The part in the usage of all groups: `group_usage_share` in order formulas.
    pub share: f64,
    /// The processor-hours: `group_usage` in order formulas.
    pub cpu_hours: f64,
}

/// The decayed usage of a user in a queue.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct UserUsage {
    /// The user.
    pub user: String,
    /// The user, by number.
    pub uid: u32,
    /// The part in the usage of all users: `usage_share` in order formulas.
    pub share: f64,
    /// The processor-hours: `usage` in order formulas.
    pub cpu_hours: f64,
}

/// The free capacity of a pool from an instant on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct Slice {
    /// The instant.
    pub from: Timestamp,
    /// The processors of the pool.
    pub cpus: u64,
    /// The processors without a window.
    pub cpus_free: u64,
    /// The memory without a window, in bytes.
    pub memory_free: u64,
    /// The GPUs without a window.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gpus_free: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}
