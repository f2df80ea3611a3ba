//! Somewhere for a daemon to live and die: a folder of its own, jobs that it is given, and what became of them.

mod crowd;
mod daemon;
mod jobs;
mod journal;
pub(crate) mod processes;
mod stepping;
pub(crate) mod wire;

use std::thread;
use std::time::{Duration, Instant};

pub(crate) use crowd::Crowd;
pub(crate) use daemon::{Daemon, cpus, has_two_cpus, miserly, queue};
pub(crate) use jobs::{is_over, sh};
pub(crate) use journal::Promises;
pub(crate) use miserly_test_support::Draws;
pub(crate) use stepping::Stepping;

/// Long enough for anything that takes any time at all, on a machine that is busy with other tests.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// What `look` finds, as soon as it finds something; it is the world outside that is watched, so it is looked at again and again.
#[track_caller]
pub(crate) fn until<T>(what: &str, within: Duration, look: impl FnMut() -> Option<T>) -> T {
    until_or_tell(within, look, || what.to_owned())
}

/// As [`until`], with words for what did not come that are found only then.
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
        // Looking costs the daemon something, too.
        pause = (pause * 3 / 2).min(Duration::from_millis(250));
    }
}

#[allow(clippy::disallowed_methods)] // How long the outside world takes is measured, not driven.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// How many rounds the tests take that kill things at random.
pub(crate) fn rounds() -> u64 {
    let set = std::env::var("MISERLY_ROUNDS").ok();
    set.map_or(20, |text| text.parse().expect("MISERLY_ROUNDS is a number of rounds"))
}
