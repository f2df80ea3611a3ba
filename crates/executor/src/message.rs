//! The messages between a daemon and its executor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use miserly_api::model::Submission;
use miserly_launch::{AttemptEnd, CriticalPriority, KillResult, LostAttempt, ShimParts};
use serde::{Deserialize, Serialize};

use crate::{AttemptId, FindFailure, GroupFacts, GroupSettings, LaunchFailure, LaunchRequest, QueueRules};

/// The settings of an executor. They come before the daemon gives up its rights, so they are to be believed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// The folder of the state, which only root can replace.
    pub state: PathBuf,
    /// The daemon's user, by number.
    pub uid: u32,
    /// The group of the daemon's user, by number. It follows the attempts.
    pub gid: u32,
    /// The path of the daemon's socket, for the environment of jobs.
    pub socket: PathBuf,
    /// Whether root may submit jobs.
    pub allow_root: bool,
    /// The rules for jobs of other users.
    pub rules: Rules,
    /// The control groups of jobs, if they have any.
    pub groups: Option<GroupSettings>,
}

/// The rules for jobs: those for jobs of other users, and the programs of queues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Whether programs with the set-user-ID bit give jobs no rights.
    pub no_new_privileges: bool,
    /// The queues of which the contrary is true.
    pub other_privileges: BTreeSet<String>,
    /// Whether each job has `/tmp`, `/dev/shm` and System V IPC of its own.
    pub private_folders: bool,
    /// The service of PAM whose modules check the account and set up the session; `None` for no PAM.
    pub pam: Option<String>,
    /// The priority of jobs in their windows over other programs.
    pub critical_priority: CriticalPriority,
    /// The programs around attempts, by the name of the queue.
    pub programs: BTreeMap<String, QueueRules>,
}

impl Rules {
    /// Returns whether programs with the set-user-ID bit give the jobs of a queue no rights.
    pub fn no_new_privileges(&self, queue: &str) -> bool {
        self.no_new_privileges != self.other_privileges.contains(queue)
    }
}

/// A message with the number of its request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Numbered<T> {
    pub(crate) number: u64,
    pub(crate) body: T,
}

/// A request of the daemon.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// Begin. Only the first request is this one. It has the file of the shim's program.
    Begin(Settings),
    /// Seal a submission. It has the connection of the client.
    Seal(Box<Submission>),
    /// Seal the changed submission of a job. It has the connection of the client.
    Reseal(Box<ResealRequest>),
    Launch(Box<LaunchRequest>),
    Find {
        attempt: AttemptId,
        wait: Duration,
    },
    KillJob {
        attempt: AttemptId,
        wait: Duration,
    },
    WakeShim(AttemptId),
    KillShim(AttemptId),
    Remove(AttemptId),
    EndPartition(AttemptId),
    /// Keep this memory for jobs, in bytes.
    KeepMemory(u64),
    /// Keep other programs off these processors, and off no others.
    Confine(Vec<u32>),
}

/// The submission of a job before and after a change, with the credential from before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResealRequest {
    /// The text of the credential.
    pub credential: String,
    /// The submission before the change.
    pub before: Submission,
    /// The submission after the change.
    pub after: Submission,
}

/// The reply to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Begun {
        groups: Option<GroupFacts>,
        warnings: Vec<String>,
    },
    /// The text of a credential.
    Sealed(String),
    /// The attempt lives. It has the connection to the shim, and its pidfd.
    Alive(ShimParts),
    Ended(AttemptEnd),
    NeverRan,
    Lost(LostAttempt),
    NotLaunched(LaunchFailure),
    NotFound(FindFailure),
    Killed(KillResult),
    Done,
    /// The rules forbid it.
    Refused(String),
    /// It failed.
    Failed(String),
}
