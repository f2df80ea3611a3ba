//! The configuration of a daemon: from a file, or from the resources of the machine.
//!
//! A [`Configuration`] is complete and checked:
//! - At every instant, the queues fit the pool and the pool fits the machine.
//! - Each policy runs on the pool of its queue, and a launcher of processes can carry out its
//!   decisions.

mod checked;

mod error;

mod file;

pub mod fields;

mod machine;

mod paths;

mod accounts;

mod pools;

mod queue;

mod summary;

mod user_limits;

use std::path::PathBuf;

use miserly_core::Span;
use miserly_engine::UserLimits;
use miserly_machine_file::Week;

use crate::server::Access;
pub use error::ConfigError;
pub use machine::Machine;
pub use queue::{Queue, unmet_need};
pub use summary::{QueueSummary, Summary};

use crate::store::BackupPlan;

/// The checked configuration of a daemon.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The state folder.
    pub state: PathBuf,
    /// The socket.
    pub socket: PathBuf,
    /// The users that may connect.
    pub access: Access,
    /// The processors for jobs, by number: as many as the pool ever has.
    pub cpus: Vec<u32>,
    /// The resources of all queues together, over time.
    pub pool: Week,
    /// The queues, in order; at least one.
    pub queues: Vec<Queue>,
    /// The time before the end of its window at which a job is asked to end.
    pub grace: Span,
    /// The time after the end of its window for which a job's resources are still reserved.
    pub cleanup_time: Span,
    /// The time after which a stopped job resumes if there is no daemon.
    pub orphan_resume_delay: Span,
    /// The time before a start at which opportunistic jobs on its processors are stopped.
    pub preempt_lead_time: Span,
    /// Whether opportunistic jobs run on idle resources.
    pub opportunistic: bool,
    /// The time for which ended jobs are kept; `None` for ever.
    pub keep_history: Option<Span>,
    /// The limits for the unfinished jobs of each user.
    pub user_limits: UserLimits,
    /// The requests of each user in a minute; `None` without a limit.
    pub requests_per_minute: Option<u32>,
    /// The interval and number of the backups of the state.
    pub backups: BackupPlan,
}

impl Configuration {
    /// Returns the configuration without a file: half of the machine for jobs, and one queue that
    /// promises every job a start.
    ///
    /// # Errors
    /// If the paths of state and socket cannot be determined.
    pub fn of_machine(machine: &Machine) -> Result<Configuration, ConfigError> {
        Configuration::parse("", "", machine)
    }

    /// Returns the warnings: users and groups that the system does not know now.
    pub fn warnings(&self) -> Vec<String> {
        let unknown = |queue: &Queue| {
            queue.users.as_ref().map_or_else(Vec::new, |users| accounts::unknown(&queue.name, users))
        };
        self.queues.iter().flat_map(unknown).collect()
    }

    /// Reads a configuration file, for this machine.
    ///
    /// # Errors
    /// The first problem: the file, the line, the field, and the remedy.
    pub fn read(path: &str, machine: &Machine) -> Result<Configuration, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unread { path: path.to_owned(), source })?;
        Configuration::parse(path, &text, machine)
    }
}

/// Returns the default state folder: `/var/lib/miserly` for root, else a folder in the user's own
/// state folder.
///
/// # Errors
/// If there is no such folder, because neither `XDG_STATE_HOME` nor `HOME` is set.
pub fn default_state() -> Result<PathBuf, ConfigError> {
    paths::state().map_err(ConfigError::Here)
}

#[cfg(test)]
mod tests;
