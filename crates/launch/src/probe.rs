//! What the launcher can do on this machine.

use std::fs;
use std::io;
use std::sync::OnceLock;
use std::thread;

use miserly_attempt::CriticalPriority;
use miserly_attempt::shim::CRITICAL_NICE;
use miserly_cgroup::Capability;
use rustix::process::setpriority_process;
use serde::{Deserialize, Serialize};

use crate::cpus;
use crate::sys;

miserly_core::listed_enum! {
    /// A limit that the launcher cannot enforce. `Display` prints a sentence for users.
    #[derive(thiserror::Error)]
    pub enum Unenforced {
        /// Memory is not reserved.
        #[error("memory is not guaranteed: other programs may take what a job was promised")]
        Memory "memory",
        /// Memory limits apply to single processes.
        #[error(
            "a job's memory limit holds for each of its processes, not for their sum, and not for shared memory"
        )]
        MemorySum "memory-of-all-processes",
        /// No job has a limit of processes of its own.
        #[error(
            "a job has no limit of processes of its own; where jobs run as their users, there is one for all processes of a user"
        )]
        Processes "number-of-processes",
        /// Other programs may run on a job's processors.
        #[error("other programs may run on a job's cpus")]
        OtherPrograms "other-programs-on-cpus",
        /// A job may change its own processor affinity.
        #[error("a job can move itself to other cpus")]
        Moves "moves-to-other-cpus",
        /// A process may leave the session.
        #[error(
            "a process that leaves its job's session and clears its environment is out of reach if the job's shim is killed"
        )]
        LeavesSession "processes-that-leave",
        /// Without a shim no process supervises the job.
        #[error(
            "if a job's shim is killed, the remaining processes of the job run until a daemon looks for them"
        )]
        ShimKilled "shim-killed",
        /// A job may stop its shim.
        #[error(
            "a job can stop its shim; the daemon then ends the job itself, after its window, and no daemon does so if none runs"
        )]
        ShimStopped "shim-stopped",
        /// A program may run with the privileges of another user.
        #[error("a program with the rights of another user (sudo) cannot be stopped or killed")]
        OtherRights "programs-of-other-users",
        /// The idle class cannot be left.
        #[error(
            "an opportunistic job stays in the idle class in its window: leaving the class needs CAP_SYS_NICE or a nice limit of 20"
        )]
        StaysIdle "stays-in-idle-class",
        /// The kernel weights sessions before scheduling classes.
        #[error(
            "the kernel weights sessions (sched_autogroup): an opportunistic job gets some 1.5 % of a busy cpu, or half of it in a session that it creates"
        )]
        SessionWeights "sessions-weighted-first",
        /// The group of all jobs competes with other programs by its own weight.
        #[error(
            "all jobs together compete with other programs as one control group: an opportunistic job yields to jobs in their windows, and not to programs outside the group"
        )]
        GroupWeight "groups-weighted-first",
        /// Opportunistic jobs are not parked for lack of memory.
        #[error("an opportunistic job is not stopped when memory gets short")]
        OpportunisticMemory "opportunistic-memory",
        /// Input and output are shared by all.
        #[error(
            "input and output are not promised: any program may use the disks and the network, whatever its share"
        )]
        Io "io",
        /// Jobs see the device nodes of all GPUs.
        #[error("a job can use the GPUs of other jobs")]
        Gpus "gpus",
        /// Huge pages are outside the pools.
        #[error("huge pages are not promised: any program with the right to use them may take them")]
        HugePages "huge-pages",
        /// The resources of RDMA devices are outside the pools.
        #[error("RDMA devices are not promised: any program with the right to use them may take their resources")]
        Rdma "rdma",
    }
}

/// Returns the limits that cannot be enforced on this machine for this user, in control groups that can do `can`.
///
/// That of [GPUs](Unenforced::Gpus) depends on the GPUs of the daemon, so it is among them.
pub fn unenforced(can: &[Capability]) -> Vec<Unenforced> {
    let leaves_idle = leaves_idle();
    let has_autogroups =
        fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").is_ok_and(|on| on.trim() != "0");
    let can = |one| can.contains(&one);
    let unenforced = Unenforced::ALL.into_iter().filter(|what| match what {
        Unenforced::StaysIdle => !(leaves_idle || can(Capability::Idle)),
        Unenforced::SessionWeights => has_autogroups && !can(Capability::Idle),
        Unenforced::GroupWeight => can(Capability::Idle),
        Unenforced::MemorySum => !can(Capability::MemoryMax),
        Unenforced::Processes => !can(Capability::Pids),
        Unenforced::Moves => !can(Capability::Cpus),
        Unenforced::LeavesSession => !can(Capability::Kill),
        Unenforced::OtherRights => !(can(Capability::Kill) && can(Capability::Freeze)),
        Unenforced::Memory => !(can(Capability::MemoryMin) && can(Capability::Swap)),
        Unenforced::OpportunisticMemory => {
            !(can(Capability::Freeze) && can(Capability::Idle) && can(Capability::MemoryMax))
        }
        Unenforced::HugePages => has_huge_pages(),
        Unenforced::Rdma => has_rdma(),
        Unenforced::OtherPrograms
        | Unenforced::ShimKilled
        | Unenforced::ShimStopped
        | Unenforced::Io
        | Unenforced::Gpus => true,
    });
    unenforced.collect()
}

/// Returns whether the machine has huge pages, of any size.
fn has_huge_pages() -> bool {
    let Ok(sizes) = fs::read_dir("/sys/kernel/mm/hugepages") else { return false };
    let pages = sizes.flatten().filter_map(|size| fs::read_to_string(size.path().join("nr_hugepages")).ok());
    pages.into_iter().any(|pages| pages.trim() != "0")
}

/// Returns whether the machine has RDMA devices.
fn has_rdma() -> bool {
    fs::read_dir("/sys/class/infiniband").is_ok_and(|mut devices| devices.next().is_some())
}

/// Returns the processors on which this process may run, by number.
///
/// # Errors
/// The kernel does not return the affinity.
pub fn usable_cpus() -> io::Result<Vec<u32>> {
    Ok(cpus::affinity(None)?)
}

/// What shims may do with the priorities of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorityRights {
    /// Whether a job can leave the idle class. This requires root, `CAP_SYS_NICE`, or a nice limit of 20.
    pub leaves_idle: bool,
    /// Whether a job can have the nice value -20. This requires root, `CAP_SYS_NICE`, or a nice limit of 40.
    pub nice: bool,
    /// Whether a job can be in a class of real time. This requires root or `CAP_SYS_NICE`, and a control group with time for
    /// it.
    pub real_time: bool,
}

/// The rights, once they are known.
static RIGHTS: OnceLock<PriorityRights> = OnceLock::new();

/// Takes the answer of another process, whose shims these are, for [`priority_rights`]. An answer that is known stays.
pub fn assume_priority_rights(rights: PriorityRights) {
    let _ = RIGHTS.set(rights);
}

/// Returns what shims may do with the priorities of jobs, tried in a short-lived thread at the first call.
///
/// The answer stays that of the first call: a daemon may give up rights that its shims have.
pub fn priority_rights() -> PriorityRights {
    *RIGHTS.get_or_init(|| thread::scope(|scope| scope.spawn(try_priorities).join().unwrap_or_default()))
}

/// Returns whether a job can leave the idle class.
pub fn leaves_idle() -> bool {
    priority_rights().leaves_idle
}

/// Tries all of them on the calling thread, which then ends.
fn try_priorities() -> PriorityRights {
    PriorityRights {
        leaves_idle: sys::set_idle(None, true).and_then(|()| sys::set_idle(None, false)).is_ok(),
        nice: setpriority_process(None, CRITICAL_NICE).is_ok(),
        real_time: sys::set_real_time(None).is_ok(),
    }
}

miserly_core::listed_enum! {
    /// The means that give a job in its window a priority over other programs. `Display` prints a sentence for users.
    #[derive(thiserror::Error)]
    pub enum CriticalMeans {
        /// Other programs are kept off its processors.
        #[error("other programs are kept off the cpus of jobs in their windows")]
        Confinement "confinement",
        /// The weights of control groups.
        #[error("the control group of a job in its window has cpu.weight 10000, and so have the groups of the tree above it")]
        Weight "cpu-weight",
        /// Nice values.
        #[error("the processes of a job in its window have the nice value -20, and so have their sessions")]
        Nice "nice",
        /// A class of real time.
        #[error("the processes of a job in its window are in the class SCHED_RR; the kernel keeps some 5 % of each cpu for others")]
        RealTime "real-time",
        /// The configuration has switched it off.
        #[error("none: critical-priority = \"none\"")]
        Off "none",
        /// The right is missing.
        #[error("none: a nice value of -20 needs root, CAP_SYS_NICE or a nice limit of 40")]
        NoRight "no-right",
        /// The weights of the control groups belong to another program.
        #[error("none: the weight of the tree of control groups belongs to another program, such as systemd")]
        ForeignGroups "foreign-groups",
    }
}

impl CriticalMeans {
    /// Returns the means on this machine, in control groups that can do `can`. `raises` is whether the weight of their tree can be
    /// raised, `confines` whether other programs are kept off.
    pub fn of(priority: CriticalPriority, can: &[Capability], raises: bool, confines: bool) -> CriticalMeans {
        let PriorityRights { nice, real_time, .. } = priority_rights();
        match priority {
            CriticalPriority::RealTime if real_time => CriticalMeans::RealTime,
            _ if confines => CriticalMeans::Confinement,
            CriticalPriority::Off => CriticalMeans::Off,
            _ if can.contains(&Capability::Idle) && raises => CriticalMeans::Weight,
            _ if can.contains(&Capability::Idle) => CriticalMeans::ForeignGroups,
            _ if nice => CriticalMeans::Nice,
            _ => CriticalMeans::NoRight,
        }
    }
}
