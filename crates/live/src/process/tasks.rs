//! The work for attempts that may wait: launches, looks at attempts, kills, removal of files.
//!
//! Launches have threads of their own, so they never wait for processes that do not die.

use std::io;
use std::time::Duration;

use miserly_core::Time;
use miserly_engine::{Attempt, Launch};
use miserly_executor::{FindFailure, LaunchFailure};
use miserly_launch::{FoundAttempt, KillResult, Shim};

use super::convert;
use super::home::Home;
use super::message::{LoopHandle, LoopMessage};
use super::pool::Pool;
use crate::crash_point::CrashPoint;

/// The number of threads for launches. A launch mostly waits for the disk and for its shim.
pub(super) const LAUNCHERS: usize = 4;
/// The number of threads for other tasks.
const HELPERS: usize = 2;
/// The time for dying processes and for a shim that begins or exits.
const PATIENCE: Duration = Duration::from_secs(1);

/// The threads for tasks.
#[derive(Debug)]
pub(super) struct Tasks {
    launchers: Pool<(Attempt, PendingLaunch)>,
    helpers: Pool<(Attempt, Task)>,
}

/// A launch that is still to succeed.
#[derive(Debug)]
pub(super) struct PendingLaunch {
    pub(super) launch: Box<Launch>,
    /// Whether an earlier try failed, and its folder has to be removed.
    pub(super) is_repeated: bool,
    /// The instant of the request.
    pub(super) since: Time,
}

/// A task other than a launch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// Find out the state of the attempt.
    Find,
    /// Kill the processes of the attempt.
    Kill,
    /// Set the record of the attempt aside and remove its folder.
    Retire,
    /// Remove the folder of an unknown attempt.
    Remove,
}

/// The result of a task.
#[derive(Debug)]
pub(super) enum TaskResult {
    /// The attempt was launched.
    Launched(Box<Shim>),
    /// The launch failed.
    Failed(Box<FailedLaunch>),
    /// The folder of the attempt belongs to another attempt.
    Taken(String),
    /// The state of the attempt, or the reason why it is unknown.
    Found(Box<Result<FoundAttempt, FindFailure>>),
    /// The processes were killed, or not.
    Killed(io::Result<KillResult>),
}

/// A failed launch.
#[derive(Debug)]
pub(super) struct FailedLaunch {
    pub(super) pending: PendingLaunch,
    pub(super) error: LaunchFailure,
}

impl Tasks {
    /// Starts the threads. They send their results to `shims`.
    ///
    /// # Errors
    /// If the machine has no thread left.
    pub(super) fn start(home: &Home, shims: &LoopHandle) -> io::Result<Tasks> {
        let (launch_home, handle) = (home.clone(), shims.clone());
        let run_launch = move |(attempt, pending)| {
            let result = run_launch(&launch_home, attempt, pending);
            handle.send(LoopMessage::Finished(attempt, result));
        };
        let (home, handle) = (home.clone(), shims.clone());
        let run_task = move |(attempt, task)| {
            if let Some(result) = run_task(&home, attempt, task) {
                handle.send(LoopMessage::Finished(attempt, result));
            }
        };
        Ok(Tasks {
            launchers: Pool::start("launch", LAUNCHERS, run_launch)?,
            helpers: Pool::start("attempts", HELPERS, run_task)?,
        })
    }

    pub(super) fn launch(&self, attempt: Attempt, pending: PendingLaunch) {
        self.launchers.submit((attempt, pending));
    }

    pub(super) fn submit(&self, attempt: Attempt, task: Task) {
        self.helpers.submit((attempt, task));
    }
}

fn run_launch(home: &Home, attempt: Attempt, pending: PendingLaunch) -> TaskResult {
    let path = home.executor.attempt_folder(attempt);
    if pending.is_repeated {
        // It was given up, so nothing will run in it.
        home.executor.remove(attempt);
    } else if path.exists() {
        // The folder belongs to another attempt: nothing in it is adopted or removed.
        return TaskResult::Taken(format!("{} is there already", path.display()));
    }
    let request = convert::request(&home.clock, attempt, &pending.launch);
    CrashPoint::BeforeLaunch.pass();
    let launched = home.executor.launch(&request);
    CrashPoint::AfterLaunch.pass();
    match launched {
        Ok(shim) => TaskResult::Launched(Box::new(shim)),
        Err(error) => TaskResult::Failed(Box::new(FailedLaunch { pending, error })),
    }
}

/// Carries out a task. Returns the result, if it has one.
fn run_task(home: &Home, attempt: Attempt, task: Task) -> Option<TaskResult> {
    match task {
        Task::Find => Some(TaskResult::Found(Box::new(home.executor.find(attempt, PATIENCE)))),
        Task::Kill => Some(TaskResult::Killed(home.executor.kill_job(attempt, PATIENCE))),
        Task::Retire => {
            CrashPoint::BeforeForget.pass();
            home.executor.retire(attempt);
            None
        }
        Task::Remove => {
            home.executor.remove(attempt);
            None
        }
    }
}
