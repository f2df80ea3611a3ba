//! Sets of processors.

use rustix::io;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The highest processor that the kernel's sets hold as they are used here.
pub(crate) const MAX: u32 = 1023;
const _: () = assert!(MAX as usize == CpuSet::MAX_CPU - 1);

/// Confines a thread; the calling one for `None`.
pub(crate) fn confine(thread: Option<Pid>, cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus.iter().filter(|cpu| **cpu <= MAX) {
        set.set(*cpu as usize);
    }
    sched_setaffinity(thread, &set)
}

/// The processors on which a thread may run, in order; those of the calling one for `None`.
pub(crate) fn of(thread: Option<Pid>) -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(thread)?;
    Ok((0..=MAX).filter(|cpu| set.is_set(*cpu as usize)).collect())
}
