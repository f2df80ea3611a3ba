//! The configuration of a daemon: from a file, or from the resources of the machine.
//!
//! A [`Configuration`] is complete and checked:
//! - At every instant, the queues fit the pool and the pool fits the machine.
//! - Each policy runs on the pool of its queue, and a launcher of processes can carry out its
//!   decisions.

mod checked;

mod error;

mod group_place;

mod file;

mod gpus;

mod initial;

mod machine;

mod paths;

mod topology;

mod cores;

mod charge;

mod accounts;

mod pools;

mod programs;

mod queue;

mod slurm_tables;

mod startable;

mod summary;

mod user_limits;

mod values;

use std::collections::BTreeMap;
use std::path::PathBuf;

use miserly_api::model::SlurmTables;
use miserly_core::{Kind, Span};
use miserly_engine::{ChargeTerms, LimitTable, QueueUsers, Topology, UserLimits, WaitingShimLimits};
use miserly_executor::Rules;
use miserly_machine_file::Week;
use miserly_policies::PolicySpec;

use crate::server::Access;
pub use error::ConfigError;
pub use gpus::Gpu;
pub use group_place::GroupPlace;
pub use initial::{InitialFacts, initial};
pub use machine::Machine;
pub(crate) use machine::online_cpus;
pub use queue::{Queue, unfit};
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
    /// The user of a daemon that runs jobs as their users; `None` for a daemon that runs all jobs as its own user.
    pub user: Option<String>,
    /// Whether root may submit jobs to a daemon that runs jobs as their users.
    pub allow_root: bool,
    /// The rules for jobs of other users, and the programs of queues.
    pub rules: Rules,
    /// The place of the control groups of jobs; `None` for jobs without groups.
    pub cgroup: Option<GroupPlace>,
    /// The processors for opportunistic jobs, by number.
    pub opportunistic_cpus: Vec<u32>,
    /// The processors for jobs, by number: as many as the pool ever has.
    pub cpus: Vec<u32>,
    /// The GPUs of the machine, by index, as far as they are known: at least those of the pool, or none.
    pub gpus: Vec<Gpu>,
    /// The cores and memory nodes of the machine.
    pub topology: Topology,
    /// Whether jobs get whole cores.
    pub whole_cores: bool,
    /// The resources of all queues together, over time.
    pub pool: Week,
    /// The queues, in order; at least one.
    pub queues: Vec<Queue>,
    /// What jobs cost in the usage; `None` if as much as they have processors.
    pub charge: Option<ChargeTerms>,
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
    /// How many shims wait for the windows of promised jobs.
    pub waiting_shims: WaitingShimLimits,
    /// The time for which ended jobs are kept; `None` for ever.
    pub keep_history: Option<Span>,
    /// The operators other than root and the daemon's user.
    pub operators: QueueUsers,
    /// The queues for names of Slurm.
    pub slurm: SlurmTables,
    /// The limits for the unfinished jobs of each user.
    pub user_limits: UserLimits,
    /// The requests of each user in a minute; `None` without a limit.
    pub requests_per_minute: Option<u32>,
    /// The interval and number of the backups of the state.
    pub backups: BackupPlan,
    /// The memory of the machine that is not for jobs, kilobytes.
    pub memory_reserve: u64,
}

/// The memory of the machine that jobs have, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct MemoryPlan {
    /// The memory of all pools, kept for jobs in their windows.
    pub pool: u64,
    /// The memory that stays free for the system.
    pub reserve: u64,
}

impl Configuration {
    /// Returns the second policies of the queues that have one.
    pub(crate) fn shadows(&self) -> BTreeMap<String, PolicySpec> {
        let shadow = |queue: &Queue| Some((queue.name.clone(), queue.shadow.clone()?));
        self.queues.iter().filter_map(shadow).collect()
    }

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
        let admits = "it admits nobody";
        let of_queue = |queue: &Queue| {
            let unknown = |users| accounts::unknown(&format!("queue {}", queue.name), users, admits);
            queue.terms.users.as_ref().map_or_else(Vec::new, unknown)
        };
        let operators = accounts::unknown("operators", &self.operators, admits);
        let of_limit = |table: &LimitTable| {
            accounts::unknown(&format!("limit {}", table.name), &table.users, "it limits no user")
        };
        let limits = self.user_limits.tables.iter().flat_map(of_limit);
        self.queues.iter().flat_map(of_queue).chain(operators).chain(limits).collect()
    }

    /// Returns the memory of the pool and the reserve.
    pub(crate) fn memory_plan(&self) -> MemoryPlan {
        let bytes = |kilobytes: u64| kilobytes.saturating_mul(1024);
        MemoryPlan { pool: bytes(self.pool.most().get(Kind::Memory)), reserve: bytes(self.memory_reserve) }
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
    paths::state(rustix::process::getuid().is_root()).map_err(ConfigError::Here)
}

#[cfg(test)]
mod tests;
