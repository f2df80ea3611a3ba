//! The limit of open files of the daemon, which needs some for each running job and each client.

use std::fs;
use std::sync::OnceLock;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::AsRawFd;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit before it was raised.
static BEFORE: OnceLock<Option<u64>> = OnceLock::new();

/// The descriptors that launches leave free, for the launches under way, for clients and for files.
const RESERVE: u64 = 96;

/// Raises the daemon's own limit as far as it may.
pub(super) fn raise() {
    BEFORE.get_or_init(|| {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
            tracing::warn!("the limit of open files stays at {current:?}: {error}");
        }
        current
    });
}

/// Returns the limit for jobs, since some programs fail with a higher one.
pub(super) fn before() -> Option<u64> {
    BEFORE.get().copied().flatten()
}

/// The descriptors of this process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptors {
    /// The number in use at which a further launch would leave too few.
    most: u64,
}

impl Descriptors {
    /// Returns the descriptors under the present limit.
    pub(super) fn new() -> Descriptors {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Descriptors { most: limit - RESERVE.min(limit / 2) }
    }

    /// Returns whether a further launch would leave too few descriptors.
    ///
    /// The kernel assigns the lowest free number. They are counted only if that number is not small,
    /// since a count takes time for each of them.
    pub(super) fn are_short(self) -> bool {
        let Ok(lowest) = eventfd(0, EventfdFlags::CLOEXEC) else { return true };
        let is_small = u64::try_from(lowest.as_raw_fd()).is_ok_and(|number| number < self.most / 2);
        !is_small && count().is_none_or(|count| count >= self.most)
    }
}

/// Returns the number of descriptors in use, with two of this function and its caller. Returns `None`
/// if there is none for the count.
fn count() -> Option<u64> {
    u64::try_from(fs::read_dir("/proc/self/fd").ok()?.count()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_short_when_too_many_are_in_use() {
        assert!(!Descriptors::new().are_short());
        assert!(Descriptors { most: 3 }.are_short());
    }
}
