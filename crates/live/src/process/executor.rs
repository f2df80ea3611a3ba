//! What has the rights to work on attempts: this process, or the executor.
//!
//! The rest of the daemon connects to shims and reads records, and needs no rights.

use std::io;
use std::path::Path;

use miserly_engine::Attempt;
use miserly_executor::{Attempts, Client};
use miserly_launcher::id;

/// What works on attempts with the rights of their users.
#[derive(Clone, Debug)]
pub enum Executor {
    /// This process, whose user is that of all jobs.
    Own(Attempts),
    /// A process of root. Each user has jobs.
    Separate(Client),
}

impl Executor {
    /// Returns the folder of the attempts.
    pub(super) fn folder(&self) -> &Path {
        match self {
            Executor::Own(attempts) => &attempts.folder,
            Executor::Separate(client) => client.attempts(),
        }
    }

    /// Returns the folder of an attempt.
    pub(crate) fn attempt_folder(&self, attempt: Attempt) -> std::path::PathBuf {
        id(attempt).folder(self.folder())
    }

    /// Keeps this memory for jobs, in bytes. What is not possible is logged.
    pub(crate) fn keep_memory(&self, bytes: u64) {
        let kept = match self {
            Executor::Own(attempts) => attempts.groups.keep_memory(bytes),
            Executor::Separate(client) => client.keep_memory(bytes),
        };
        if let Err(error) = kept {
            tracing::warn!("memory is not guaranteed to jobs: {error}; restart the daemon");
        }
    }

    /// Keeps other programs off these processors, and off no others.
    pub(super) fn confine(&self, busy: &[u32]) -> io::Result<()> {
        match self {
            Executor::Own(attempts) => attempts.groups.confine(busy),
            Executor::Separate(client) => client.confine(busy.to_vec()),
        }
    }

    /// Returns the executor, if it is a process of its own.
    pub(crate) fn client(&self) -> Option<&Client> {
        match self {
            Executor::Own(_) => None,
            Executor::Separate(client) => Some(client),
        }
    }
}
