//! What a launcher can do here, and what it cannot.

use std::fs;
use std::io;
use std::thread;

use crate::cpus;
use crate::sys;

/// The launcher of processes: it needs no rights.
#[derive(Clone, Copy, Debug)]
pub struct Launcher;

/// What a launcher can do on this machine, as this user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// The processors on which it may run things, by number.
    pub cpus: Vec<u32>,
    /// Whether a job that ran early in the idle class can be brought back from it (root, `CAP_SYS_NICE`, or a limit for nice of 20).
    pub leaves_idle: bool,
    /// What it cannot enforce, for the user to know.
    pub unenforced: Vec<Unenforced>,
}

/// What a launcher of processes cannot enforce; its `Display` is a sentence for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Unenforced {
    /// Memory is not kept free.
    #[error("memory is not guaranteed: other programs may take what a job was promised")]
    Memory,
    /// Limits of memory are limits of processes.
    #[error(
        "a job's memory limit holds for each of its processes, not for their sum, and not for shared memory"
    )]
    MemorySum,
    /// Others may run on a job's processors.
    #[error("strangers may run on a job's cpus: no other program is kept off them")]
    Strangers,
    /// A job may undo what it was given.
    #[error("a job can move itself to other cpus")]
    Moves,
    /// A process that leaves the session.
    #[error("a process that leaves its job's session is out of reach if the job's shim is killed")]
    LeavesSession,
    /// Nobody watches when the shim is dead.
    #[error("if a job's shim is killed, what is left of the job runs on until a daemon looks for it")]
    ShimKilled,
    /// A program with the rights of another.
    #[error("a program with the rights of another user (sudo) cannot be stopped or killed")]
    OtherRights,
    /// The idle class cannot be left.
    #[error(
        "a job that began early stays in the idle class in its window: leaving it needs CAP_SYS_NICE or a nice limit of 20"
    )]
    StaysIdle,
    /// Sessions are weighed before classes.
    #[error(
        "the kernel weighs sessions (sched_autogroup): an early job gets some 1.5 % of a busy cpu, and half of it in a session of its own making"
    )]
    Sessions,
}

impl Unenforced {
    /// All there are.
    pub const ALL: [Unenforced; 9] = [
        Unenforced::Memory,
        Unenforced::MemorySum,
        Unenforced::Strangers,
        Unenforced::Moves,
        Unenforced::LeavesSession,
        Unenforced::ShimKilled,
        Unenforced::OtherRights,
        Unenforced::StaysIdle,
        Unenforced::Sessions,
    ];

    /// What it is about, in a few words that do not change.
    pub const fn as_str(self) -> &'static str {
        match self {
            Unenforced::Memory => "memory",
            Unenforced::MemorySum => "memory-of-all-processes",
            Unenforced::Strangers => "strangers-on-cpus",
            Unenforced::Moves => "moves-to-other-cpus",
            Unenforced::LeavesSession => "processes-that-leave",
            Unenforced::ShimKilled => "shim-killed",
            Unenforced::OtherRights => "programs-of-other-users",
            Unenforced::StaysIdle => "stays-in-idle-class",
            Unenforced::Sessions => "sessions-weighed-first",
        }
    }
}

impl Launcher {
    /// The processors on which it may run things, by number.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn cpus() -> io::Result<Vec<u32>> {
        Ok(cpus::of(None)?)
    }

    /// Finds out by trying.
    ///
    /// # Errors
    /// If the kernel does not tell on which processors this program may run.
    pub fn probe() -> io::Result<Abilities> {
        let cpus = Launcher::cpus()?;
        let leaves_idle = leaves_idle();
        let weighs =
            fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").is_ok_and(|on| on.trim() != "0");
        let unenforced = Unenforced::ALL.into_iter().filter(|what| match what {
            Unenforced::StaysIdle => !leaves_idle,
            Unenforced::Sessions => weighs,
            _ => true,
        });
        Ok(Abilities { cpus, leaves_idle, unenforced: unenforced.collect() })
    }
}

/// Whether a thread comes back from the idle class: one that ends then tries.
fn leaves_idle() -> bool {
    let try_it = || sys::set_idle(None, true).and_then(|()| sys::set_idle(None, false)).is_ok();
    thread::scope(|scope| scope.spawn(try_it).join().unwrap_or(false))
}
