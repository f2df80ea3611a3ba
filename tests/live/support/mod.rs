//! Support for tests of the daemon: its folder, its jobs and their outcomes.

pub(crate) mod accounts;
mod crowd;
mod daemon;
pub(crate) mod flood;
mod jobs;
mod journal;
pub(crate) mod processes;
pub(crate) mod terminal;
pub(crate) mod wire;

use std::thread;
use std::time::{Duration, Instant};

pub(crate) use crowd::Crowd;
pub(crate) use daemon::{Daemon, cpus, exact_queue, has_two_cpus, miserly, queue};
pub(crate) use jobs::{is_over, kept_but_for_stalls, sh};
pub(crate) use journal::Promises;
pub(crate) use miserly_test_support::Draws;

/// A timeout for any operation, on a machine that is busy with other tests.
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// Calls `look` until it returns a value, because processes outside are polled.
#[track_caller]
pub(crate) fn until<T>(what: &str, within: Duration, look: impl FnMut() -> Option<T>) -> T {
    until_or_tell(within, look, || what.to_owned())
}

/// As [`until`], with a message that is made only at a timeout.
#[track_caller]
pub(crate) fn until_or_tell<T>(
    within: Duration,
    mut look: impl FnMut() -> Option<T>,
    what: impl Fn() -> String,
) -> T {
    let began = now();
    let mut pause = Duration::from_millis(5);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < within, "{}: not within {} s", what(), within.as_secs());
        thread::sleep(pause);
        // A request also costs the daemon time.
        pause = (pause * 3 / 2).min(Duration::from_millis(250));
    }
}

#[allow(clippy::disallowed_methods)] // How long the outside world takes is measured, not driven.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns the number of rounds of the tests with random kills.
pub(crate) fn rounds() -> u64 {
    let set = std::env::var("MISERLY_ROUNDS").ok();
    set.map_or(4, |text| text.parse().expect("MISERLY_ROUNDS is a number of rounds"))
}
