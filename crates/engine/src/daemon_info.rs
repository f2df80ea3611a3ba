//! Facts about the daemon that the engine displays and cannot find out itself.

use miserly_api::model::{CriticalPriority, SlurmTables, Unenforced};

use crate::{ClockMark, QueueUsers};

/// A lookup of the names of users, or of groups, by number.
#[derive(Clone, Copy, Debug)]
pub struct AccountNames(pub fn(u32) -> String);

impl Default for AccountNames {
    /// Returns a lookup that names them by their numbers.
    fn default() -> AccountNames {
        AccountNames(|number| number.to_string())
    }
}

/// Facts about the daemon that come from outside the engine.
#[derive(Clone, Debug, Default)]
pub struct DaemonInfo {
    /// The folder of the state.
    pub state: String,
    /// The configuration file.
    pub configuration: Option<String>,
    /// The process of the daemon.
    pub pid: i32,
    /// The user that runs the daemon, by number. This user may change every job.
    pub owner: u32,
    /// The operators other than root and the daemon's user. They may change every job, too.
    pub operators: QueueUsers,
    /// The queues for names of Slurm.
    pub slurm: SlurmTables,
    /// Whether the launcher runs jobs as their users. If not, all run as the daemon's user.
    pub runs_as_users: bool,
    /// The user that stands for all users without a number in this user namespace.
    pub overflow_uid: Option<u32>,
    /// The names of users.
    pub users: AccountNames,
    /// The names of groups.
    pub groups: AccountNames,
    /// The guarantees that cannot be enforced.
    pub unenforced: Vec<Unenforced>,
    /// The priority of jobs in their windows over other programs.
    pub critical_priority: Option<CriticalPriority>,
    /// The highest known job number, from [`highest`](crate::highest) and the folders of attempts.
    ///
    /// After damage the stored next number may be lost or old.
    pub highest: i64,
    /// The mark of the machine's clock; `None` under any other clock.
    pub mark: Option<ClockMark>,
}
