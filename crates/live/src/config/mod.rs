//! How a daemon is set up: by a file, or by what the machine has where there is none.
//!
//! A [`Configuration`] is whole and checked: at every instant the queues have no more than the pool, and the pool no more than the
//! machine; each policy is one that runs on its queue's pool, with decisions that a launcher of processes can carry out.

mod checked;

mod error;

mod file;

mod machine;

mod paths;

mod people;

mod pools;

mod queue;

mod summary;

use std::path::PathBuf;

use miserly_core::Span;
use miserly_machine_file::Week;

use crate::server::Access;
pub use error::ConfigError;
pub use machine::Machine;
pub use queue::{Queue, unmet_need};
pub use summary::{QueueSummary, Summary};

use crate::store::BackupPlan;

/// A daemon's configuration, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The folder of its state.
    pub state: PathBuf,
    /// Its socket.
    pub socket: PathBuf,
    /// Who may talk to it.
    pub access: Access,
    /// The processors for jobs, by number: as many as the pool ever has.
    pub cpus: Vec<u32>,
    /// What all queues have together at most, over time.
    pub pool: Week,
    /// The queues, in order; at least one.
    pub queues: Vec<Queue>,
    /// So long before the end of its window a job is told to end.
    pub grace: Span,
    /// So long after the end of its window a job's resources are still kept for it.
    pub cleanup_time: Span,
    /// So long a stopped job stays stopped when there is no daemon.
    pub orphan_resume_delay: Span,
    /// So long before a start what runs on its processors ahead of time is stopped.
    pub preempt_lead_time: Span,
    /// Whether jobs run ahead of their start on what is idle.
    pub opportunistic: bool,
    /// So long jobs that have ended are remembered; none, for ever.
    pub keep_history: Option<Span>,
    /// The interval and number of the backups of the state.
    pub backups: BackupPlan,
}

impl Configuration {
    /// What a daemon does without a file: half the machine for jobs, one queue that promises every job a start.
    ///
    /// # Errors
    /// If the paths of state and socket cannot be known.
    pub fn of_machine(machine: &Machine) -> Result<Configuration, ConfigError> {
        Configuration::parse("", "", machine)
    }

    /// What the file of that name says, on this machine.
    ///
    /// # Errors
    /// The first thing that is wrong: the file, the line, the field, and what to do.
    pub fn read(path: &str, machine: &Machine) -> Result<Configuration, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unread { path: path.to_owned(), source })?;
        Configuration::parse(path, &text, machine)
    }
}

/// The folder of the state where nothing else is said: `/var/lib/miserly` for root, else in the user's own state folder.
///
/// # Errors
/// If there is no such folder, because neither `XDG_STATE_HOME` nor `HOME` is set.
pub fn default_state() -> Result<PathBuf, ConfigError> {
    paths::state().map_err(ConfigError::Here)
}

#[cfg(test)]
mod tests;
