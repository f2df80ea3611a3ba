//! The end of an attempt and its record.

use std::time::Duration;

use super::supervisor::Supervisor;
use crate::end::{AttemptEnd, Exit, StartFailure};
use crate::time::BootTime;

/// Pause after the first failed write. It doubles with each retry.
const FIRST: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(32);

/// An end that is not recorded yet.
#[derive(Debug)]
pub(super) struct PendingEnd {
    pub(super) end: AttemptEnd,
    /// Next attempt to write.
    pub(super) write_at: BootTime,
    pause: Duration,
}

impl PendingEnd {
    pub(super) fn new(end: AttemptEnd, now: BootTime) -> PendingEnd {
        PendingEnd { end, write_at: now, pause: FIRST }
    }

    fn delay(&mut self, now: BootTime) {
        self.write_at = now.after(self.pause);
        self.pause = (self.pause * 2).min(LONGEST);
    }
}

impl Supervisor {
    /// Returns the end of the attempt. No process of the job is left.
    pub(super) fn end(&self, now: BootTime) -> AttemptEnd {
        let ending = self.timeline.ending();
        AttemptEnd {
            exit: self.main.exit.clone().unwrap_or(Exit::Failed(StartFailure::Ended)),
            cause: ending.and_then(|ending| ending.cause),
            at: now,
            late: ending.filter(|ending| ending.killed).map(|ending| now.since(ending.kill_at)),
        }
    }

    /// Writes the end if it is due; `true` if the shim may exit.
    ///
    /// A failed write is retried, and a daemon can query the end from the shim meanwhile. If the
    /// folder was deleted, no daemon will look for the record.
    pub(super) fn record_end(&mut self, now: BootTime) -> bool {
        let Some(pending_end) = self.pending_end.as_mut().filter(|pending_end| pending_end.write_at <= now)
        else {
            return false;
        };
        match self.attempt.folder.write_end(&pending_end.end) {
            Ok(()) => true,
            Err(error) => {
                pending_end.delay(now);
                super::log(&error);
                self.attempt.folder.is_removed()
            }
        }
    }
}
