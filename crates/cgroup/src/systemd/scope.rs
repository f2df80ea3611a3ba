//! The scopes of jobs and of shims, which outlive the daemon.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::call::{self, Property};
use super::{SystemdError, is_of_machine, is_running};
use crate::tree::folder_of;
use crate::{Group, Tree};

/// The slice of all jobs.
pub const JOBS_SLICE: &str = "miserly.slice";
/// The scope of all jobs.
const JOBS: &str = "miserly-jobs.scope";
/// The scope of all shims. It is beside services, so that shims never wait for jobs and never run on their processors.
const SHIMS: &str = "miserly-shims.scope";
const SHIMS_SLICE: &str = "system.slice";
/// The same for the service manager of a user.
const SHIMS_SLICE_OF_USER: &str = "app.slice";
/// The controllers that jobs use.
const CONTROLLERS: [&str; 5] = ["cpu", "cpuset", "memory", "pids", "io"];
/// The leaf of the process that keeps the scope of jobs.
const KEEPER: &str = "keeper";

/// The looks for a new scope, and the pause between two.
const LOOKS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(10);

/// The scopes of a daemon. Each has a process that does nothing, so that it exists without jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes;

impl Scopes {
    /// Returns the tree for jobs in the scopes. Starts those that do not run.
    ///
    /// # Errors
    /// systemd does not manage this machine, refuses the scopes, or does not answer.
    pub fn open() -> Result<Tree, SystemdError> {
        if !is_running() {
            return Err(SystemdError::NotRunning);
        }
        let jobs = scope(JOBS, JOBS_SLICE, "Jobs of miserly", &[controllers()])?;
        let slice = if is_of_machine() { SHIMS_SLICE } else { SHIMS_SLICE_OF_USER };
        let shims = scope(SHIMS, slice, "Supervisors of miserly's jobs", &[ended_first()])?;
        // A group with processes cannot give controllers to its children.
        let keeper = jobs.create(KEEPER)?;
        for process in jobs.processes()? {
            keeper.add(process)?;
        }
        Ok(Tree::open_with_shims(jobs.path(), shims.path())?)
    }

    /// Keeps this much memory for jobs, in bytes, in the groups that systemd manages.
    ///
    /// # Errors
    /// systemd refuses it or does not answer.
    pub fn keep_memory(bytes: u64) -> Result<(), SystemdError> {
        let keep = || vec![Property::new("MemoryMin", "t", &bytes.to_string())];
        call::set_properties(&[(JOBS_SLICE, keep()), (JOBS, keep())])
    }

    /// Ends the scopes if no job is left in them. Returns whether none is.
    ///
    /// # Errors
    /// systemd refuses it or does not answer.
    pub fn release() -> Result<bool, SystemdError> {
        call::set_properties(&[(JOBS_SLICE, vec![Property::new("MemoryMin", "t", "0")])])?;
        for name in [JOBS, SHIMS] {
            let Some(group) = running(name)? else { continue };
            let tree = Tree::opened(group.path(), None);
            let is_used = match name {
                JOBS => tree
                    .jobs()
                    .unwrap_or_default()
                    .iter()
                    .any(|(.., job)| job.events().is_ok_and(|events| events.populated)),
                _ => group.processes()?.len() > 1,
            };
            if is_used {
                return Ok(false);
            }
        }
        for name in [JOBS, SHIMS] {
            if running(name)?.is_some() {
                call::manager("StopUnit", &[name, "replace"])?;
            }
        }
        // Its folder goes with it, and so does what the kernel wanted in it for partitions. Without a daemon there was none.
        let _ = call::manager("StopUnit", &[JOBS_SLICE, "replace"]);
        Ok(true)
    }
}

/// Returns the group of a scope that runs.
fn running(name: &str) -> Result<Option<Group>, SystemdError> {
    let path = call::control_group(name)?;
    let folder = folder_of(&path).filter(|_| !path.is_empty());
    let group = folder.and_then(|folder| Group::open(&folder).ok());
    Ok(group.filter(|group| group.value("cgroup.events", "populated ").is_ok_and(|populated| populated != 0)))
}

/// Returns the group of a scope. Starts it if it does not run.
fn scope(name: &str, slice: &str, description: &str, further: &[Property]) -> Result<Group, SystemdError> {
    if let Some(group) = running(name)? {
        return Ok(group);
    }
    // A scope that has failed is in the way of another one.
    let _ = call::manager("ResetFailedUnit", &[name]);
    let mut keeper = keeper().map_err(SystemdError::NoClient)?;
    let mut properties = vec![
        Property::new("Description", "s", description),
        Property::new("Slice", "s", slice),
        Property::new("Delegate", "b", "true"),
        Property::new("CollectMode", "s", "inactive-or-failed"),
        Property::new("TasksMax", "t", &u64::MAX.to_string()),
        // Jobs keep within their own limits; others have to give way first.
        Property::new("ManagedOOMPreference", "s", "omit"),
    ];
    properties.extend_from_slice(further);
    let started = call::start_scope(name, &[keeper.id()], &properties).and_then(|()| wait_for(name, &keeper));
    if started.is_err() {
        let _ = keeper.kill();
        let _ = keeper.wait();
    }
    started
}

/// Returns the property of the scope of jobs that gives it the controllers.
fn controllers() -> Property {
    Property::texts("DelegateControllers", &CONTROLLERS)
}

/// Returns the property of the scope of shims that has it end before the scope of jobs at a shutdown.
///
/// Each shim then ends its own job, with the grace period, and records the shutdown as the cause. Otherwise systemd ends the
/// two scopes in either order, and a job may be over long before its shim learns of the shutdown.
fn ended_first() -> Property {
    Property::texts("After", &[JOBS])
}

/// Waits until the process that keeps a scope is in it.
fn wait_for(name: &str, keeper: &Child) -> Result<Group, SystemdError> {
    for _ in 0..LOOKS {
        let own = std::fs::read_to_string(format!("/proc/{}/cgroup", keeper.id())).unwrap_or_default();
        let path = own.lines().find_map(|line| line.strip_prefix("0::"));
        if let Some(folder) = path.filter(|path| path.ends_with(name)).and_then(folder_of) {
            return Ok(Group::open(&folder)?);
        }
        thread::sleep(PAUSE);
    }
    Err(SystemdError::NoScope(name.to_owned()))
}

/// Starts a process that does nothing, out of reach of signals to this one's terminal.
fn keeper() -> std::io::Result<Child> {
    let mut command = Command::new("sleep");
    command.arg("infinity").env_clear().env("PATH", "/usr/bin:/bin").current_dir("/").process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}
