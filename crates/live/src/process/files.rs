//! The limit of open files of the daemon, which needs some for each running job and each client.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit before it was raised.
static BEFORE: OnceLock<Option<u64>> = OnceLock::new();

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
