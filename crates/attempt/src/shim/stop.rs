//! A stop in progress, until it is proved.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::time::BootTime;

/// Time limit for a stop before the shim replies that processes still run.
///
/// A process in the idle class must be scheduled to stop. Beside a busy job that takes up to two
/// seconds.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause before the first scan; it doubles with each scan.
///
/// A process must run to stop, perhaps on the processor of the shim.
const FIRST: Duration = Duration::from_micros(100);
/// Longest pause.
const LONGEST: Duration = Duration::from_millis(64);

/// A stop that is not proved yet.
///
/// The kernel reports a stop only to the parent, so the shim scans until the stop is proved.
#[derive(Debug)]
pub(super) struct PendingStop {
    /// Number of the command to answer; `None` once its sender has disconnected.
    pub(super) number: Option<u64>,
    /// Instant at which the reply is sent in any case.
    pub(super) until: BootTime,
    /// Next scan.
    pub(super) scan_at: BootTime,
    /// Processes that were signalled, by number and start.
    pub(super) sent: BTreeSet<(u32, u64)>,
    pause: Duration,
}

impl PendingStop {
    pub(super) fn new(number: u64, now: BootTime) -> PendingStop {
        let (until, scan_at) = (now.after(STOP_TIMEOUT), now.after(FIRST));
        PendingStop { number: Some(number), until, scan_at, sent: BTreeSet::new(), pause: 2 * FIRST }
    }

    /// Schedules the next scan.
    pub(super) fn schedule_scan(&mut self, now: BootTime) {
        self.scan_at = now.after(self.pause).min(self.until);
        self.pause = (self.pause * 2).min(LONGEST);
    }
}
