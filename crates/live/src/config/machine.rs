//! The resources that the machine offers.

use std::fs;
use std::path::Path;

use miserly_engine::Topology;
use miserly_launch::usable_cpus;

use super::gpus::{self, Gpu};
use super::topology;

/// The resources for the daemon and its jobs: those of the hardware, within the affinity and the
/// limits of the control groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The processors that this process may run on, by number.
    pub cpus: Vec<u32>,
    /// The number of them that may be used at a time, if a limit makes it smaller.
    pub quota: Option<u64>,
    /// Memory, kilobytes.
    pub memory: u64,
    /// The online processors, also those that this process may not use.
    pub online: Vec<u32>,
    /// The memory of the hardware, kilobytes.
    pub total_memory: u64,
    /// The part of it that is huge pages, which jobs cannot get by their requests, kilobytes.
    pub huge_pages: u64,
    /// The cores and memory nodes, also those that this process may not use.
    pub topology: Topology,
    /// The GPUs that the kernel has.
    pub gpus: Vec<Gpu>,
}

impl Machine {
    /// Returns a machine without limits of a process: processors by number, and memory in kilobytes.
    pub fn new(cpus: Vec<u32>, memory: u64) -> Machine {
        let topology = Topology::default();
        let online = cpus.clone();
        Machine {
            cpus,
            quota: None,
            memory,
            online,
            total_memory: memory,
            huge_pages: 0,
            topology,
            gpus: vec![],
        }
    }

    /// Returns the resources of this machine for this process.
    ///
    /// # Errors
    /// If the system does not report them.
    pub fn here() -> std::io::Result<Machine> {
        let cpus = usable_cpus()?;
        let meminfo = fs::read_to_string("/proc/meminfo")?;
        let total = amount(&meminfo, "MemTotal:");
        let huge_pages = amount(&meminfo, "Hugetlb:").unwrap_or(0);
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let limits = Limits::from_groups(Path::new("/sys/fs/cgroup"), &groups);
        let memory = total.unwrap_or(0).min(limits.memory.unwrap_or(u64::MAX));
        let online = online_cpus().unwrap_or_else(|| cpus.clone());
        Ok(Machine {
            cpus,
            quota: limits.cpus,
            memory,
            online,
            total_memory: total.unwrap_or(memory),
            huge_pages,
            topology: topology::read(Path::new("/sys/devices/system")),
            gpus: gpus::detected(Path::new("/")),
        })
    }

    /// Returns the hardware, without the limits of this process: its jobs are in groups elsewhere.
    #[must_use]
    pub fn whole(&self) -> Machine {
        let (cpus, memory) = (self.online.clone(), self.total_memory);
        Machine { cpus, quota: None, memory, ..self.clone() }
    }

    /// Returns the number of processors that may be used at a time.
    pub fn count(&self) -> u64 {
        let all = self.cpus.len() as u64;
        self.quota.map_or(all, |quota| all.min(quota))
    }
}

/// Returns the online processors, by number. Returns `None` if they cannot be read now, because no
/// machine has none.
pub(crate) fn online_cpus() -> Option<Vec<u32>> {
    miserly_cgroup::online_cpus().ok().filter(|online| !online.is_empty())
}

/// Returns an amount of `/proc/meminfo`, kilobytes.
fn amount(meminfo: &str, key: &str) -> Option<u64> {
    meminfo.lines().find_map(|line| line.strip_prefix(key)?.trim().strip_suffix(" kB")?.trim().parse().ok())
}

/// The limits of control groups.
#[derive(Debug, Default, PartialEq, Eq)]
struct Limits {
    /// Whole processors, at least 1.
    cpus: Option<u64>,
    /// Kilobytes.
    memory: Option<u64>,
}

impl Limits {
    /// Returns the lowest limits of the group in `/proc/self/cgroup` and of all groups above it. It
    /// reads the version 2 files under `root`.
    fn from_groups(root: &Path, groups: &str) -> Limits {
        let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
        let folder = root.join(own);
        let mut limits = Limits::default();
        for folder in folder.ancestors().take_while(|folder| folder.starts_with(root)) {
            let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
            limits.cpus = limits.cpus.into_iter().chain(cpu_max(&read("cpu.max"))).min();
            let memory = read("memory.max").trim().parse::<u64>().ok().map(|bytes| bytes / 1024);
            limits.memory = limits.memory.into_iter().chain(memory).min();
        }
        limits
    }
}

/// Parses `QUOTA PERIOD` as whole processors, at least 1. `max` is no limit.
fn cpu_max(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period) = (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?);
    Some(quota.checked_div(period)?.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_a_group_and_those_above_it() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("user.slice/job.scope");
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("cpu.max"), "max 100000\n").unwrap();
        fs::write(group.join("memory.max"), "2147483648\n").unwrap();
        fs::write(root.path().join("user.slice/cpu.max"), "250000 100000\n").unwrap();
        fs::write(root.path().join("user.slice/memory.max"), "max\n").unwrap();
        let limits = Limits::from_groups(root.path(), "12:pids:/other\n0::/user.slice/job.scope\n");
        assert_eq!(limits, Limits { cpus: Some(2), memory: Some(2 << 20) });
        assert_eq!(Limits::from_groups(root.path(), ""), Limits::default());
    }

    #[test]
    fn less_than_one_processor_is_one() {
        assert_eq!([cpu_max("50000 100000"), cpu_max("max 100000"), cpu_max("")], [Some(1), None, None]);
    }

    #[test]
    fn this_machine_has_something() {
        let machine = Machine::here().unwrap();
        assert!(machine.count() >= 1 && machine.count() <= machine.cpus.len() as u64 && machine.memory > 0);
        assert_eq!(amount("MemFree: 1 kB\nMemTotal:       16 kB\n", "MemTotal:"), Some(16));
    }
}
