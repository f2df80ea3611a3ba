//! The confinement of all other programs to the processors that no job has for itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::call::{self, Property};
use super::{JOBS_SLICE, ROOT, SystemdError, is_of_machine};
use crate::{Group, cpu_list, parse_cpus};

/// The units at the top of the hierarchy that hold all other programs.
const UNITS: [&str; 4] = ["system.slice", "user.slice", "machine.slice", "init.scope"];

/// The pause between looks at what systemd has written.
const PAUSE: Duration = Duration::from_millis(20);
/// The looks at what systemd has written: five seconds in all.
const LOOKS: u32 = 250;

/// The confinement of all other programs. It is a property of the machine, so the value has no state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confinement;

impl Confinement {
    /// Keeps other programs off these processors, and off no others. An empty list lets them run everywhere.
    ///
    /// systemd always gets a list. It may never write one that is unset while it still applies an earlier list.
    ///
    /// # Errors
    /// [`SystemdError::NoneLeft`] if no online processor would be left: nothing is changed then. Or systemd refuses it.
    pub fn set(self, busy: &[u32]) -> Result<(), SystemdError> {
        if cpus_in(cpu_list::ONLINE)?.iter().all(|cpu| busy.contains(cpu)) {
            return Err(SystemdError::NoneLeft);
        }
        let possible = cpus_in(cpu_list::POSSIBLE)?;
        allow(&possible.into_iter().filter(|cpu| !busy.contains(cpu)).collect::<Vec<_>>())
    }

    /// Lets other programs run everywhere, and unsets the property. A user confines no program, and has nothing to undo.
    ///
    /// # Errors
    /// systemd refuses it.
    pub fn release(self) -> Result<(), SystemdError> {
        if !is_of_machine() {
            return Ok(());
        }
        self.set(&[])?;
        let all = cpus_in(cpu_list::ONLINE)?;
        let runs_everywhere = |unit: &String| {
            let cpus = Group::at(&Path::new(ROOT).join(unit)).read("cpuset.cpus.effective");
            // A unit that does not run, or without limits of processors, has no such file.
            cpus.is_err() || cpus.ok().and_then(|cpus| parse_cpus(&cpus).ok()).is_some_and(|cpus| cpus == all)
        };
        for _ in 0..LOOKS {
            if units().iter().all(runs_everywhere) {
                break;
            }
            thread::sleep(PAUSE);
        }
        allow(&[])
    }

    /// Returns the groups of programs that systemd does not manage, such as `docker`. They cannot be confined.
    pub fn unconfined(self) -> Vec<String> {
        let known = units();
        let is_known = |name: &str| name == JOBS_SLICE || known.iter().any(|unit| unit == name);
        let has_processes = |path: &Path| {
            Group::at(path).value("cgroup.events", "populated ").is_ok_and(|populated| populated != 0)
        };
        let names = top_level().into_iter().filter(|name| !is_known(name));
        names.filter(|name| has_processes(&Path::new(ROOT).join(name))).collect()
    }
}

/// Sets the processors of all other programs. systemd takes an empty list for an unset one.
fn allow(cpus: &[u32]) -> Result<(), SystemdError> {
    let units = units();
    let units: Vec<_> =
        units.iter().map(|unit| (unit.as_str(), vec![Property::allowed_cpus(cpus)])).collect();
    call::set_properties(&units)
}

/// Returns the processors in a file of the kernel, by number.
fn cpus_in(path: &str) -> Result<Vec<u32>, SystemdError> {
    cpu_list::read(path).map_err(|error| SystemdError::Processors { path: PathBuf::from(path), error })
}

/// Returns the units to confine: the usual ones, and the other slices at the top of the hierarchy.
fn units() -> BTreeSet<String> {
    let is_slice = |name: &String| Path::new(name).extension().is_some_and(|kind| kind == "slice");
    let slices = top_level().into_iter().filter(|name| is_slice(name) && name != JOBS_SLICE);
    UNITS.iter().map(|unit| (*unit).to_owned()).chain(slices).collect()
}

/// Returns the names of the groups at the top of the hierarchy.
fn top_level() -> Vec<String> {
    let groups = Group::at(Path::new(ROOT)).children().unwrap_or_default();
    let name = |group: &Group| Some(group.path().file_name()?.to_str()?.to_owned());
    groups.iter().filter_map(name).collect()
}
