//! The confinement of all other programs to the processors that no job has for itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::call::{self, Property};
use super::{JOBS_SLICE, ROOT, SystemdError};
use crate::cpu_list::ONLINE;
use crate::{Group, online_cpus};

/// The units at the top of the hierarchy that hold all other programs.
const UNITS: [&str; 4] = ["system.slice", "user.slice", "machine.slice", "init.scope"];

/// The confinement of all other programs. It is a property of the machine, so the value has no state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confinement;

impl Confinement {
    /// Keeps other programs off these processors, and on all others that are online. An empty list lets them run everywhere.
    ///
    /// # Errors
    /// [`SystemdError::NoneLeft`] if no processor would be left: nothing is changed then. Or systemd refuses it.
    pub fn set(self, busy: &[u32]) -> Result<(), SystemdError> {
        let allowed = if busy.is_empty() { vec![] } else { others(&online()?, busy)? };
        let units = units();
        let units: Vec<_> =
            units.iter().map(|unit| (unit.as_str(), vec![Property::allowed_cpus(&allowed)])).collect();
        call::set_properties(&units)
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

/// Returns the online processors, by number.
fn online() -> Result<Vec<u32>, SystemdError> {
    online_cpus().map_err(|error| SystemdError::Online { path: PathBuf::from(ONLINE), error })
}

/// Returns the online processors that are not busy; at least one. systemd would take an empty list for all processors.
fn others(online: &[u32], busy: &[u32]) -> Result<Vec<u32>, SystemdError> {
    let others: Vec<u32> = online.iter().copied().filter(|cpu| !busy.contains(cpu)).collect();
    if others.is_empty() { Err(SystemdError::NoneLeft) } else { Ok(others) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_processor_is_left_to_others() {
        assert_eq!(others(&[0, 1, 2, 3], &[1, 3]).unwrap(), [0, 2]);
        assert!(matches!(others(&[0, 1], &[0, 1, 2]), Err(SystemdError::NoneLeft)));
    }
}
