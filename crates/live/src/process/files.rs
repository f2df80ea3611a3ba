//! How many files the daemon may have open: some for each job that runs and each client.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the limit was before it was raised.
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

/// The limit that jobs have: some programs cannot cope with more.
pub(super) fn before() -> Option<u64> {
    BEFORE.get().copied().flatten()
}
