//! Stopping a job, with proof.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::time::BootTime;

/// How long all processes of a job have to stop before the shim answers that they have not. One of the idle class has to be given
/// a processor to notice, which beside a busy job takes up to two seconds.
pub const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// The pause before the first look, which doubles from look to look. There is one before the first, too: a process has to run to stop, perhaps
/// on the processor on which the shim looks for it.
const FIRST: Duration = Duration::from_micros(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_millis(64);

/// A stop that is not proved yet.
///
/// The kernel tells nobody but the parent that a process has stopped, so the shim looks again, as long as this takes and no longer.
#[derive(Debug)]
pub(super) struct Stop {
    /// The message to be answered; `None` when nobody is there any more who sent it.
    pub(super) number: Option<u64>,
    /// When it is answered in any case.
    pub(super) until: BootTime,
    /// The next look.
    pub(super) look_at: BootTime,
    /// The processes that were sent a stop, by number and start.
    pub(super) sent: BTreeSet<(u32, u64)>,
    pause: Duration,
}

impl Stop {
    pub(super) fn new(number: u64, now: BootTime) -> Stop {
        let (until, look_at) = (now.after(STOP_PATIENCE), now.after(FIRST));
        Stop { number: Some(number), until, look_at, sent: BTreeSet::new(), pause: 2 * FIRST }
    }

    /// Puts the next look off.
    pub(super) fn wait(&mut self, now: BootTime) {
        self.look_at = now.after(self.pause).min(self.until);
        self.pause = (self.pause * 2).min(LONGEST);
    }
}
