//! Processor affinity of threads.

use rustix::io;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Highest processor number in the kernel's processor sets.
pub(crate) const MAX: u32 = 1023;
const _: () = assert!(MAX as usize == CpuSet::MAX_CPU - 1);

/// Sets the affinity of a thread, or of the calling thread for `None`.
pub(crate) fn set_affinity(thread: Option<Pid>, cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus.iter().filter(|cpu| **cpu <= MAX) {
        set.set(*cpu as usize);
    }
    sched_setaffinity(thread, &set)
}

/// Returns the processors on which a thread may run, ascending. `None` is the calling thread.
pub(crate) fn affinity(thread: Option<Pid>) -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(thread)?;
    Ok((0..=MAX).filter(|cpu| set.is_set(*cpu as usize)).collect())
}
