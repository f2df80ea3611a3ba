//! The limit of open files of the daemon, which needs some for each running job and each client.

use std::fs;
use std::sync::OnceLock;

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
    pub(super) fn are_short(self) -> bool {
        count().is_none_or(|count| count >= self.most)
    }
}

/// Returns the number of descriptors in use. Returns `None` if they cannot be counted.
///
/// Since version 6.2 of the kernel the size of the folder is their number. Older kernels say 0, and
/// the entries are counted.
fn count() -> Option<u64> {
    let folder = "/proc/self/fd";
    match fs::metadata(folder).ok()?.len() {
        0 => u64::try_from(fs::read_dir(folder).ok()?.count()).ok(),
        size => Some(size),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn descriptors_are_short_when_too_many_are_in_use() {
        assert!(!Descriptors::new().are_short());
        assert!(Descriptors { most: 3 }.are_short());
    }

    /// A free number below those in use hides no shortage.
    #[test]
    fn descriptors_are_counted_whatever_their_numbers_are() {
        let low = File::open("/proc/self/stat").expect("it opens");
        let high: Vec<File> = (0..40).map(|_| low.try_clone().expect("a descriptor")).collect();
        drop(low);
        assert!(Descriptors { most: 40 }.are_short());
        drop(high);
    }
}
