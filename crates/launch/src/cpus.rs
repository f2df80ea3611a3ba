//! Processor affinity of threads, for any number of processors.

use libc::c_ulong;
use miserly_attempt::MAX_CPU as MAX;
use rustix::io::{Errno, Result};
use rustix::process::Pid;

use crate::sys;

const BITS: usize = c_ulong::BITS as usize;

/// Sets the affinity of a thread, or of the calling thread for `None`.
pub(crate) fn set_affinity(thread: Option<Pid>, cpus: &[u32]) -> Result<()> {
    sys::set_affinity(thread, &set_of(cpus)).map_err(|error| errno(&error))
}

/// Returns the processors on which a thread may run, ascending. `None` is the calling thread.
pub(crate) fn affinity(thread: Option<Pid>) -> Result<Vec<u32>> {
    let mut words = 1024 / BITS;
    loop {
        match sys::affinity(thread, words).map_err(|error| errno(&error)) {
            // The kernel's sets are larger.
            Err(Errno::INVAL) if words * BITS <= MAX as usize => words *= 2,
            other => return Ok(numbers(&other?)),
        }
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Returns a set as the kernel has it: bits in words.
fn set_of(cpus: &[u32]) -> Vec<c_ulong> {
    let cpus = || cpus.iter().filter(|cpu| **cpu <= MAX).map(|cpu| *cpu as usize);
    let mut set = vec![0; cpus().max().map_or(1, |highest| highest / BITS + 1)];
    for cpu in cpus() {
        set[cpu / BITS] |= 1 << (cpu % BITS);
    }
    set
}

fn numbers(set: &[c_ulong]) -> Vec<u32> {
    let has =
        |cpu: &u32| set.get(*cpu as usize / BITS).is_some_and(|word| word >> (*cpu as usize % BITS) & 1 == 1);
    (0..=MAX).take(set.len() * BITS).filter(has).collect()
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_set;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sets_are_as_large_as_needed() {
        for cpus in [&[0][..], &[3, 63, 64], &[0, 1791], &[8191, MAX]] {
            assert_eq!(numbers(&set_of(cpus)), cpus);
        }
    }

    /// Four times as many processors as the sets of the C library have.
    const MANY: u32 = 4096;

    proptest! {
        #[test]
        fn sets_of_thousands_of_processors_are_those_of_the_kernel(cpus in btree_set(0..MANY, 1..300)) {
            let cpus: Vec<u32> = cpus.into_iter().collect();
            let set = set_of(&cpus);
            prop_assert_eq!(numbers(&set), cpus.clone());
            // The kernel reads a set as bytes on the little-endian machines that it has.
            let bytes: Vec<u8> = set.iter().flat_map(|word| word.to_le_bytes()).collect();
            for cpu in 0..MANY {
                let bit = bytes.get(cpu as usize / 8).is_some_and(|byte| byte >> (cpu % 8) & 1 == 1);
                prop_assert_eq!(bit, cpus.binary_search(&cpu).is_ok(), "processor {}", cpu);
            }
            // Larger than needed, as the kernel returns them.
            let larger: Vec<c_ulong> = set.into_iter().chain([0; 100]).collect();
            prop_assert_eq!(numbers(&larger), cpus);
        }
    }

    #[test]
    fn a_processor_that_does_not_exist_is_refused_by_the_kernel() {
        assert_eq!(set_affinity(None, &[MAX]), Err(Errno::INVAL));
        assert_eq!(set_affinity(None, &[]), Err(Errno::INVAL));
    }

    #[test]
    fn the_present_processors_can_be_set() {
        let cpus = affinity(None).unwrap();
        assert!(!cpus.is_empty());
        set_affinity(None, &cpus).unwrap();
        assert_eq!(affinity(None).unwrap(), cpus);
    }
}
