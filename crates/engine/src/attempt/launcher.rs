//! The interface between the engine and the component that runs attempts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use miserly_api::model::{Exit, Failure, KilledBy, LostBy, Problem, Submission};
use miserly_core::{Span, Time};

use crate::{ArrayMember, Credential, IdleTerms, MemoryAmount, SentSignal, Usage};

/// A start of a job: the job's number, and the attempt number, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt {
    /// The job.
    pub job: i64,
    /// The number of the attempt, from 1.
    pub nth: u32,
}

/// An action for one attempt.
#[derive(Clone, Debug)]
pub enum Action {
    /// Launch the attempt.
    Launch(Box<Launch>),
    /// Stop its processes and keep them stopped.
    Stop,
    /// Let its processes continue.
    Continue,
    /// Begin its window: it has these processors for itself until the end.
    BeginWindow {
        /// The processors, by number.
        cpus: Vec<u32>,
        /// The end of the window.
        end: Time,
    },
    /// Plan the window of an opportunistic job, or of one whose shim waits. Without a daemon it begins and ends by itself.
    ///
    /// It takes effect when no other shim may begin a window that overlaps with it.
    PlanWindow(PlannedWindow),
    /// Take the planned window back.
    RevokeWindow,
    /// Begin the command of a waiting shim before its window, on idle resources.
    RunEarly {
        /// The processors on which it may run, by number.
        cpus: Vec<u32>,
    },
    /// End a waiting shim. If it has begun the window by itself, it reports that instead.
    Withdraw,
    /// Move its processes to these processors, by number.
    Move(Vec<u32>),
    /// Change the end of its window.
    EndAt(Time),
    /// Change the running time that a time-sliced job has in all. Time in which it is stopped does not count.
    RunFor(Span),
    /// Set the latest end of a stopped attempt.
    EndIfOrphaned {
        /// The latest end of its window.
        end: Time,
        /// How long it continues if it resumes by itself because no daemon runs.
        left: Span,
    },
    /// Send its processes a signal, once.
    Signal(SentSignal),
    /// End it: by a request first, and by force after the grace period.
    Kill {
        /// The grace period.
        grace: Span,
    },
    /// Write it out by the command of its queue, and end it by force when that has ended, or at an instant.
    WriteOut {
        /// The latest instant of its end.
        until: Time,
    },
    /// End it by force: its window and its cleanup time are over.
    EndOverdue {
        /// Whether its running time counts, which only its shim knows exactly. It is ended if its shim stays stopped.
        by_running_time: bool,
    },
    /// Remove its files. Its end is durable.
    Forget,
}

/// The parameters of a launch.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Launch {
    /// The submission.
    pub submission: Arc<Submission>,
    /// The job's name.
    pub name: String,
    /// Its queue.
    pub queue: String,
    /// The queue of the configuration whose rules apply: the same, or the one whose pool a reservation has a part of.
    pub configured_queue: String,
    /// Its place in an array.
    pub array: Option<ArrayMember>,
    /// The user, by number.
    pub uid: u32,
    /// The proof of the submission, if the launcher needs one.
    pub credential: Option<Credential>,
    /// The file of the standard output.
    pub output: PathBuf,
    /// Whether its outputs follow those of an earlier attempt that ran.
    pub append: bool,
    /// The file of the standard error, if it is not that of the output.
    pub error: Option<PathBuf>,
    /// The memory limit; `None` if memory is not accounted.
    pub memory: Option<MemoryAmount>,
    /// Whether it has the processors of its window for itself, also while they are idle.
    pub strict: bool,
    /// The GPUs that it has, by index; `None` where there are none for jobs.
    pub gpus: Option<Vec<u32>>,
    /// The processors on which it may run, by number.
    pub cpus: Vec<u32>,
    /// The end of its window; `None` for an opportunistic job before its window.
    pub end: Option<Time>,
    /// Whether only its shim is launched, which waits for the window.
    pub waits: bool,
    /// The number of the run of the command, from 1: attempts that never ran do not count.
    pub ordinal: u32,
    /// Whether it continues where an earlier attempt was written out, by the program of its queue.
    pub restart: bool,
    /// The planned window of an opportunistic job, or of one whose shim waits, if it is known.
    pub planned_window: Option<PlannedWindow>,
    /// The grace period before the end.
    pub grace: Span,
    /// The time after the window until its resources are free.
    pub cleanup_time: Span,
    /// How long it stays stopped when no daemon runs.
    pub orphan_resume_delay: Span,
    /// What happens to it while it uses almost no processor time in its window.
    pub idle: Option<IdleTerms>,
    /// The running time of a time-sliced job. Such a job begins stopped, and `end` has no meaning.
    pub limit: Option<Span>,
}

/// The slots of a time-sliced queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotSchedule {
    /// The duration of each slot's turn.
    pub quantum: Span,
    /// The attempts that run in each slot, by slot number. An attempt may run in several. A single slot is not rotated.
    pub slots: BTreeMap<u32, BTreeSet<Attempt>>,
}

/// The delay after which a shim begins a planned window by itself although a daemon is there.
pub const BEGIN_DELAY: Span = Span::from_ticks(2_000_000);

/// A window that has not begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedWindow {
    /// The start.
    pub start: Time,
    /// The end.
    pub end: Time,
    /// The processors of the job in it, by number.
    pub cpus: Vec<u32>,
    /// The attempts that have some of these processors before. The window waits for their ends, at most the cleanup time.
    pub after: Vec<Attempt>,
    /// The instant until which it waits for them.
    pub latest: Time,
}

/// A window that a shim may begin by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldWindow {
    /// The start.
    pub start: Time,
    /// The end.
    pub end: Time,
    /// The processors, by number.
    pub cpus: Vec<u32>,
}

/// Events of attempts while no daemon ran.
#[derive(Clone, Debug, Default)]
pub struct Absence {
    /// The attempts that ended.
    pub ended: Vec<(Attempt, AttemptOutcome)>,
    /// The instants at which commands began, as far as they are known. Attempts may live.
    pub launched: Vec<(Attempt, Time)>,
    /// The resources that they used, as far as they are known.
    pub used: Vec<(Attempt, Usage)>,
    /// Those of them whose epilogs failed, and why.
    pub epilogs: Vec<(Attempt, String)>,
    /// The windows that attempts are in, as their shims report them.
    pub begun: Vec<BegunWindow>,
}

/// An attempt in its window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BegunWindow {
    /// The attempt.
    pub attempt: Attempt,
    /// The processors on which it runs, by number.
    pub cpus: Vec<u32>,
    /// The end of the window.
    pub end: Time,
}

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// It ended.
    Ended {
        /// The instant of the end.
        at: Time,
        /// The exit status.
        exit: Exit,
        /// The cause; `None` if it ended by itself.
        by: Option<KilledBy>,
    },
    /// It was ended by [`Action::WriteOut`].
    WrittenOut {
        /// The instant of the end.
        at: Time,
        /// Why the command of its queue failed. Its work is lost then.
        failed: Option<String>,
    },
    /// Its program could not be run.
    Failed {
        /// The instant of the failure.
        at: Time,
        /// The cause.
        why: Failure,
        /// The message of the system.
        message: String,
    },
    /// It is gone and its exit status is unknown.
    Lost(LostBy),
    /// It never ran and never will. The job is to be launched again, as another attempt.
    NeverRan,
}

/// The component that starts, stops and ends attempts.
///
/// # Contract
/// Actions for one attempt are carried out in the order of the calls. No method waits.
pub trait Launcher {
    /// Checks whether an attempt of a submission could be launched under this job name.
    ///
    /// # Errors
    /// The field of the submission that makes a launch impossible.
    fn check(&self, submission: &Submission, name: &str) -> Result<(), Problem>;

    /// Queues an action for an attempt.
    fn act(&mut self, attempt: Attempt, action: Action);

    /// Delays all launches for this time, because the machine shuts down.
    fn hold_launches(&mut self, _time: Span) {}

    /// Replaces the slot schedule of a queue.
    ///
    /// From now on the launcher rotates the slots: only attempts of the current slot run. `None` means that the queue is gone or
    /// is not time-sliced any more. It has no running jobs then.
    fn rotate_slots(&mut self, queue: &str, schedule: Option<&SlotSchedule>);
}
