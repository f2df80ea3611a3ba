//! The work for attempts that may wait: launches, looks at attempts, kills, removal of files.

use std::io;
use std::time::Duration;

use miserly_core::Time;
use miserly_engine::{Attempt, Launch};
use miserly_executor::{FindFailure, LaunchFailure};
use miserly_launch::KillResult;

use crate::convert;
use crate::crash_point::CrashPoint;
use crate::site::{Found, Host};

/// The most launches at a time. A launch mostly waits for the disk and for its shim.
pub const LAUNCHERS: usize = 4;
/// The time for dying processes and for a shim that begins or exits.
const PATIENCE: Duration = Duration::from_secs(1);

/// A launch that is still to succeed.
#[derive(Debug)]
pub struct PendingLaunch {
    /// Its parameters.
    pub launch: Box<Launch>,
    /// Whether an earlier try failed, and its folder has to be removed.
    pub is_repeated: bool,
    /// The instant of the request.
    pub since: Time,
}

/// A task other than a launch.
#[derive(Clone, Copy, Debug)]
pub enum Task {
    /// Find out the state of the attempt.
    Find,
    /// Kill the processes of the attempt.
    Kill,
    /// Set the record of the attempt aside and remove its folder.
    Retire,
}

/// The result of a task. `T` is the handle of a shim.
#[derive(Debug)]
pub enum TaskResult<T> {
    /// The attempt was launched.
    Launched(T),
    /// The launch failed.
    Failed(Box<FailedLaunch>),
    /// The folder of the attempt belongs to another attempt.
    Taken(String),
    /// The state of the attempt, or the reason why it is unknown.
    Found(Box<Result<Found<T>, FindFailure>>),
    /// The processes were killed, or not.
    Killed(io::Result<KillResult>),
}

/// A failed launch.
#[derive(Debug)]
pub struct FailedLaunch {
    /// The launch.
    pub pending: PendingLaunch,
    /// The failure.
    pub error: LaunchFailure,
}

/// Launches an attempt.
pub fn run_launch<H: Host>(host: &H, attempt: Attempt, pending: PendingLaunch) -> TaskResult<H::Shim> {
    if pending.is_repeated {
        // It was given up, so nothing will run in it.
        host.remove(attempt);
    } else if host.has_folder(attempt) {
        // The folder belongs to another attempt: nothing in it is adopted or removed.
        return TaskResult::Taken(format!("{} is there already", host.folder(attempt).display()));
    }
    let request = convert::request(host.clock(), attempt, &pending.launch);
    host.pass(CrashPoint::BeforeLaunch);
    let launched = host.launch(request);
    host.pass(CrashPoint::AfterLaunch);
    match launched {
        Ok(shim) => TaskResult::Launched(shim),
        Err(error) => TaskResult::Failed(Box::new(FailedLaunch { pending, error })),
    }
}

/// Carries out a task. Returns the result, if it has one.
pub fn run_task<H: Host>(host: &H, attempt: Attempt, task: Task) -> Option<TaskResult<H::Shim>> {
    match task {
        Task::Find => Some(TaskResult::Found(Box::new(host.find(attempt, PATIENCE)))),
        Task::Kill => Some(TaskResult::Killed(host.kill_job(attempt, PATIENCE))),
        Task::Retire => {
            host.pass(CrashPoint::BeforeForget);
            host.retire(attempt);
            None
        }
    }
}
