//! A job as people see it.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A job: what was asked for, where it stands, and what was promised.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobView {
    /// The number that its user was told.
    pub number: i64,
    /// The number of the first job of its array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<i64>,
    /// Its index in the array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// What people call it.
    pub name: String,
    /// Whose it is: the user's number.
    pub uid: u32,
    /// Whose it is.
    pub user: String,
    /// The queue.
    pub queue: String,
    /// How many processors it asked for.
    pub cpus: u64,
    /// How much memory, bytes.
    pub memory: u64,
    /// For how long, seconds.
    pub time: f64,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whether it is a script.
    pub script: bool,
    /// The folder that it runs in.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub directory: PathBuf,
    /// Where its output goes.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub output: PathBuf,
    /// Where its errors go.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub error: PathBuf,
    /// When it was submitted.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub submitted: Timestamp,
    /// Not before this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub begin: Option<Timestamp>,
    /// To be over by this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub deadline: Option<Timestamp>,
    /// The jobs whose end it waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(default)]
    pub after: Vec<i64>,
    /// Its work may be thrown away and done again.
    pub restartable: bool,
    /// It may run ahead of its start on what is idle.
    pub opportunistic: bool,
    /// Where it stands.
    pub phase: Phase,
    /// What was promised; nothing, where its queue's policy promises nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<PromiseView>,
    /// When the policy means to start it, where it said so: a plan, which binds nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub planned: Option<Timestamp>,
    /// Why it does not run, while it does not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(default)]
    pub reasons: Vec<Why>,
    /// In which slots it runs, where its queue's jobs take turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<Slots>,
    /// Its start, if that was later than promised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<LateStart>,
    /// How often it was started; more than once if it was requeued or lost.
    pub attempts: u32,
    /// What is promised to it and cannot be enforced here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(default)]
    pub unenforced: Vec<String>,
}

/// From when until when a job's resources are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Window {
    /// The latest start.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub start: Timestamp,
    /// When the job is ended, if it has not ended by itself: the start and the time that was asked for.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub end: Timestamp,
}

/// Where a job stands.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Phase {
    /// Its user or an administrator keeps it from running. It has no window.
    Held,
    /// In the queue, not yet due.
    Batch,
    /// Not yet due, and running on what is idle.
    Opportunistic {
        /// When it first ran.
        #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
        start: Timestamp,
        /// It is stopped at the moment, because nothing is idle.
        parked: bool,
    },
    /// In its window: what it asked for is its own.
    Critical(Holding),
    /// In its window, stopped for another job.
    Suspended(Holding),
    /// It ended by itself.
    Done {
        /// When it started.
        #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
        start: Timestamp,
        /// When it ended.
        #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
        end: Timestamp,
        /// How it ended.
        exit: Exit,
    },
    /// It was ended.
    Killed {
        /// When it started, if it did.
        #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
        start: Option<Timestamp>,
        /// When it was over.
        #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
        end: Timestamp,
        /// By what.
        by: KilledBy,
        /// How it ended, if it ran.
        exit: Option<Exit>,
    },
    /// It could not be run.
    Failed {
        /// When that was found.
        #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
        at: Timestamp,
        /// Why.
        why: Failure,
        /// What the system said.
        message: String,
    },
    /// It was on the machine and is there no longer, and nobody knows how it ended.
    Lost {
        /// When that was found.
        #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
        at: Timestamp,
        /// Why.
        why: LostBy,
    },
}

impl Phase {
    /// When it was over, if it is.
    pub fn ended(&self) -> Option<Timestamp> {
        match self {
            Phase::Done { end, .. } | Phase::Killed { end, .. } => Some(*end),
            Phase::Failed { at, .. } | Phase::Lost { at, .. } => Some(*at),
            Phase::Held
            | Phase::Batch
            | Phase::Opportunistic { .. }
            | Phase::Critical(_)
            | Phase::Suspended(_) => None,
        }
    }
}

/// What a job in its window holds.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Holding {
    /// When it started.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub start: Timestamp,
    /// When it will be ended, if it has not ended by itself.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub end: Timestamp,
    /// The processors, by number.
    pub cpus: Vec<u32>,
}

/// When a job runs that takes turns with others on its processors.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Slots {
    /// The slot in which its place is, from 0.
    pub own: u32,
    /// All slots in which it runs, in order: its own, and others in which its processors are free.
    pub runs_in: Vec<u32>,
    /// How many slots are used, and so take turns.
    pub used: u64,
    /// The share of the time in which it runs, above 0 and at most 1: by its slots, and by what it takes to switch between them, as the
    /// policy's `switch` says.
    pub fraction: f64,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// What ended a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum KilledBy {
    /// The end of its window.
    Time,
    /// More memory than it asked for.
    Memory,
    /// Its user or an administrator.
    User,
}

/// Why a job could not be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The folder that it is to run in is not there.
    Directory,
    /// Its output cannot be opened.
    Output,
    /// The program is not there, or cannot be run.
    Program,
    /// The queue's policy will never start it.
    Refused,
    /// Anything else.
    System,
}

/// Why nobody knows how a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LostBy {
    /// The machine was started again under it.
    Reboot,
    /// Its shim was killed.
    Shim,
}

/// The promise of a job, and how it came to be.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PromiseView {
    /// As it was first told.
    pub told: Window,
    /// As it is now: the same or earlier, unless it was broken.
    pub now: Window,
    /// Why it was broken, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// Every change, in order.
    pub history: Vec<Told>,
}

/// One change of a promise.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Told {
    /// When it was made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// The latest start since then.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub start: Timestamp,
    /// What changed it.
    pub why: ToldWhy,
}

/// What changes a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToldWhy {
    /// The submission.
    Submitted,
    /// Room that another job left.
    Earlier,
    /// A job that did not end when it should have.
    Overdue,
    /// The daemon was not there, or the machine slept, when it was due.
    Away,
    /// The machine lost capacity.
    Capacity,
    /// Another request was amended.
    Amended,
}

impl ToldWhy {
    /// The word that tables and files use.
    pub const fn as_str(self) -> &'static str {
        match self {
            ToldWhy::Submitted => "submitted",
            ToldWhy::Earlier => "earlier",
            ToldWhy::Overdue => "overdue",
            ToldWhy::Away => "away",
            ToldWhy::Capacity => "capacity",
            ToldWhy::Amended => "amended",
        }
    }
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Why {
    /// It is held.
    Held,
    /// It is not to start before then.
    Begin {
        /// When.
        #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
        at: Timestamp,
    },
    /// Other jobs have to end first.
    After {
        /// Which.
        jobs: Vec<i64>,
    },
    /// Too little is free now.
    Resources {
        /// What: cpus, memory.
        kind: String,
        /// How much it asks for.
        asked: u64,
        /// How much is free.
        free: u64,
    },
    /// What is free now is kept for others until their starts.
    Reserved,
}

/// A start that was later than promised.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LateStart {
    /// By how much, seconds.
    pub by: f64,
    /// Why.
    pub why: ToldWhy,
}
