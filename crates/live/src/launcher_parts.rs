//! What the launcher of a daemon consists of, with and without an executor.

use miserly_executor::{self as executor, Attempts, Client, DeviceHider, Program};
use miserly_launch::shim;

use crate::config::Configuration;
use crate::daemon::{DaemonError, Options, system};
use crate::process::{Executor, JobGroups, LauncherNotes};
use crate::separation::Separated;
use crate::store::private_folder;

/// What a launcher consists of.
pub(crate) struct LauncherParts {
    pub(crate) executor: Executor,
    pub(crate) groups: JobGroups,
    pub(crate) notes: LauncherNotes,
}

impl LauncherParts {
    /// Takes over the executor of a `separated` daemon, or prepares for jobs of the daemon's user.
    pub(crate) fn new(
        options: &Options,
        separated: Option<Separated>,
        notes: LauncherNotes,
    ) -> Result<LauncherParts, DaemonError> {
        let Configuration { state, socket, .. } = &options.configuration;
        let folder = state.join("attempts");
        if let Some(Separated { socket, groups, no_shim_program }) = separated {
            if let Some(reason) = &no_shim_program {
                notes.set_no_shim_program(reason);
            }
            let client = Client::new(socket, folder, end_without_executor);
            let executor =
                Executor::Separate(client.map_err(system("cannot start a thread for the executor"))?);
            let groups = JobGroups::new(&options.configuration, groups);
            return Ok(LauncherParts { executor, groups, notes });
        }
        private_folder(&folder).map_err(system("cannot make the folder of the attempts"))?;
        let shim =
            Program::beside(&options.exe, "miserly-shim", &shim::identity()).unwrap_or_else(|reason| {
                notes.set_no_shim_program(&reason);
                Program::own(&options.exe)
            });
        let groups = job_groups(&options.configuration);
        let facts = groups.facts().cloned();
        let rules = options.configuration.rules.clone();
        let attempts = Attempts { folder, shim, socket: socket.clone(), groups, rules };
        attempts.sweep_groups().map_err(system("cannot list the control groups"))?;
        let groups = JobGroups::new(&options.configuration, facts);
        Ok(LauncherParts { executor: Executor::Own(attempts), groups, notes })
    }
}

/// Ends the daemon: without its executor it can launch no job. The service manager starts both again. Whatever was answered
/// is on disk.
fn end_without_executor() {
    tracing::error!("the executor has ended; the daemon ends, and jobs run on");
    std::process::exit(1);
}

/// Returns the control groups of jobs, as far as the configuration has any. Logs what the kernel does not do.
fn job_groups(configuration: &Configuration) -> executor::JobGroups {
    let Some(settings) = JobGroups::settings(configuration) else { return executor::JobGroups::none() };
    let (groups, warnings) = executor::JobGroups::open(&settings, |tree| Ok(DeviceHider::Own(tree.clone())));
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    groups
}
