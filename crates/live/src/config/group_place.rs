//! The place of the control groups of jobs.

use std::path::{Path, PathBuf};

use miserly_core::Kind;
use miserly_machine_file::Week;
use rustix::process::getuid;
use toml::{Spanned, Value};

use super::Machine;
use super::error::{Problem, of_field};
use super::file::File;
use super::values::folder;

/// The value of `cgroup` for scopes of systemd.
const SYSTEMD: &str = "systemd";

/// The part of the machine's memory that jobs cannot have for themselves: a tenth. The system would have to kill programs of its
/// own otherwise.
const RESERVE: u64 = 10;

/// The place of the control groups of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupPlace {
    /// A folder of cgroup v2.
    Folder(PathBuf),
    /// Scopes of systemd.
    Systemd {
        /// Whether other programs are kept off the processors of jobs in their windows.
        confine: bool,
    },
}

impl GroupPlace {
    /// Returns whether systemd manages this machine.
    pub fn has_systemd() -> bool {
        Path::new("/run/systemd/system").is_dir()
    }

    /// Returns the place that a file names, if it names one.
    pub(super) fn checked(file: &File) -> Result<Option<GroupPlace>, Problem> {
        let in_systemd = file.cgroup.as_ref().is_some_and(|written| written.get_ref() == SYSTEMD);
        let of_root = file.user.is_some() || getuid().is_root();
        let problem = match (in_systemd, of_root) {
            (false, _) => Some("it needs cgroup = \"systemd\""),
            (true, false) => Some("only a daemon that root starts can do it"),
            (true, true) => None,
        };
        if let Some(problem) = problem {
            if let Some(written) = file.confine.as_ref().filter(|written| *written.get_ref()) {
                return Err(of_field(written, "confine", &problem));
            }
            if let Some(written) = strict(file) {
                return Err(of_field(written, "strict", &problem));
            }
        }
        if in_systemd {
            let confine = file.confine.as_ref().map(Spanned::get_ref).copied();
            return Ok(Some(GroupPlace::Systemd { confine: confine.unwrap_or(of_root) }));
        }
        Ok(folder(file.cgroup.as_ref(), "cgroup")?.map(GroupPlace::Folder))
    }

    /// Checks that the pool leaves enough to the system.
    pub(super) fn fits(&self, file: &File, pool: &Week, machine: &Machine) -> Result<(), Problem> {
        let GroupPlace::Systemd { confine } = self else { return Ok(()) };
        let written = file.pool.as_ref();
        let at = written.map_or(0..0, Spanned::span);
        let (cpus, online) = (pool.most().cpus_count().get(), machine.cpus.len() as u64);
        if (*confine || strict(file).is_some()) && cpus >= online {
            let at = written.and_then(|pool| Some(pool.get_ref().cpus.as_ref()?.span())).unwrap_or(at);
            let problem = format!(
                "pool.cpus: all {online} online processors are in the pool, and none is left for other programs, which are kept \
                 off the processors of jobs: leave one out, or write confine = false and have no strict queue"
            );
            return Err(Problem::new(at, problem));
        }
        let (memory, most) = (pool.most().get(Kind::Memory), machine.memory - machine.memory / RESERVE);
        if memory > most {
            let problem = format!(
                "pool.memory: jobs would have {} for themselves, of {}; a tenth is left to the system: at most {}",
                shown(memory),
                shown(machine.memory),
                shown(most)
            );
            return Err(Problem::new(at, problem));
        }
        Ok(())
    }
}

/// Returns an amount of kilobytes as text.
fn shown(kilobytes: u64) -> String {
    miserly_units::memory(kilobytes.saturating_mul(1024))
}

/// Returns the field of the first strict queue.
fn strict(file: &File) -> Option<&Spanned<Value>> {
    let written = file.queues.iter().filter_map(|queue| queue.get_ref().strict.as_ref());
    written.into_iter().find(|written| written.get_ref().as_bool() == Some(true))
}
