//! What the engine has done on the machine, in the ledger's words: the interface of every launcher.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use miserly_api::model::{Exit, Failure, KilledBy, LostBy, Problem, Submission};
use miserly_core::{Span, Time};

/// A start of a job: its number, and the how-manieth start it is, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt {
    /// The job.
    pub job: i64,
    /// Which start of it.
    pub nth: u32,
}

/// What is to be done for one attempt. What is asked for one attempt is done in the order in which it is asked.
#[derive(Clone, Debug)]
pub enum Action {
    /// Start it.
    Launch(Box<Launch>),
    /// Stop it, and keep it stopped.
    Stop,
    /// Let it run on.
    Continue,
    /// Its window begins: it runs on these processors, alone, until that end.
    Critical {
        /// The processors, by number.
        cpus: Vec<u32>,
        /// The end of its window.
        end: Time,
    },
    /// It runs ahead of its window, which is then: if no daemon is there, it begins and ends by itself.
    Ahead(Ahead),
    /// It runs on these processors from now on, by number.
    Move(Vec<u32>),
    /// Its window ends then.
    EndAt(Time),
    /// It takes turns, and its window ends when it has run for so long in all: the time in which it is stopped does not count.
    RunFor(Span),
    /// It is stopped, and its window ends then at the latest.
    EndAlone {
        /// The latest end.
        end: Time,
        /// How long it goes on if it goes on by itself, because no daemon is there.
        left: Span,
    },
    /// End it: ask, and insist after the grace.
    Kill {
        /// How long it has to end by itself.
        grace: Span,
        /// For whom.
        by: KilledBy,
    },
    /// It is over, and that is on disk: whatever was kept for it can go.
    Forget,
}

/// How an attempt is to be started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What was asked for.
    pub submission: Arc<Submission>,
    /// What people call the job.
    pub name: String,
    /// The number of the first job of its array, and its index there.
    pub array: Option<(i64, u32)>,
    /// Whose it is.
    pub uid: u32,
    /// Where its output goes.
    pub output: PathBuf,
    /// Where its errors go, if not with its output.
    pub error: Option<PathBuf>,
    /// The memory that it may have, kilobytes; 0 where that is not accounted.
    pub memory: u64,
    /// The processors that it may run on, by number.
    pub cpus: Vec<u32>,
    /// The end of its window; none before its start, while it runs on what is idle.
    pub end: Option<Time>,
    /// Its window, while it runs on what is idle, as far as that is known.
    pub ahead: Option<Ahead>,
    /// How long before the end it is told to end.
    pub grace: Span,
    /// How long it stays stopped when there is no daemon.
    pub alone: Span,
    /// For a job that takes turns: how long it may run, stopped time not counted. It begins stopped, and `end` means nothing.
    pub limit: Option<Span>,
}

/// Jobs that take turns on the processors of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// How long each row runs in its turn.
    pub quantum: Span,
    /// The rows by number, and who runs in each; a job may run in several. With one row there are no turns.
    pub rows: BTreeMap<u32, BTreeSet<Attempt>>,
}

/// A window that has not begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// When it begins.
    pub start: Time,
    /// When it ends.
    pub end: Time,
    /// The processors that are the job's own in it, by number.
    pub cpus: Vec<u32>,
}

/// What happened to attempts while no daemon was there.
#[derive(Clone, Debug, Default)]
pub struct Meanwhile {
    /// Those that are over.
    pub over: Vec<(Attempt, Outcome)>,
    /// Those that are in a window, as their shims have it.
    pub critical: Vec<Critical>,
}

/// An attempt in its window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Critical {
    /// Which.
    pub attempt: Attempt,
    /// The processors that it runs on, by number.
    pub cpus: Vec<u32>,
    /// The end of its window.
    pub end: Time,
}

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ended.
    Ended {
        /// When.
        at: Time,
        /// How.
        exit: Exit,
        /// Who ended it; nobody, if it ended by itself.
        by: Option<KilledBy>,
    },
    /// Its program never ran, because it cannot.
    Failed {
        /// When.
        at: Time,
        /// Why.
        why: Failure,
        /// What the system said.
        message: String,
    },
    /// It is gone, all of it, and nobody knows how.
    Lost(LostBy),
    /// It never ran and never will: it is to be started once more, as another attempt.
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

    /// Replaces the slot schedule of a queue.
    ///
    /// From now on the launcher rotates the slots: only jobs of the current slot run. `None` means that the queue is gone or is
    /// not time-sliced any more; it has no running jobs then.
    fn take_turns(&mut self, queue: &str, turns: Option<&Turns>);
}
