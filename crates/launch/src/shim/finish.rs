//! The end of an attempt, and its record.

use std::time::Duration;

use super::owner::Owner;
use crate::end::{End, Exit, Failure};
use crate::sys;
use crate::time::BootTime;

/// The pause after the first failure to record an end, which doubles from try to try.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(32);

/// An end that is to be recorded.
#[derive(Debug)]
pub(super) struct Finish {
    pub(super) end: End,
    /// The next try.
    pub(super) try_at: BootTime,
    pause: Duration,
}

impl Finish {
    pub(super) fn new(end: End, now: BootTime) -> Finish {
        Finish { end, try_at: now, pause: FIRST }
    }

    fn wait(&mut self, now: BootTime) {
        self.try_at = now.after(self.pause);
        self.pause = (self.pause * 2).min(LONGEST);
    }
}

impl Owner {
    /// The end, now that nothing of the job is left.
    pub(super) fn end(&self, now: BootTime) -> End {
        let usage = sys::used_by_children();
        let ending = self.course.ending();
        End {
            exit: self.main.exit.clone().unwrap_or(Exit::Failed(Failure::Ended)),
            cause: ending.and_then(|ending| ending.cause),
            at: now,
            user: usage.user,
            system: usage.system,
            max_rss: usage.max_rss,
            late: ending.filter(|ending| ending.killed).map(|ending| now.since(ending.kill_at)),
        }
    }

    /// Whether the end is on disk. A failure is tried again: as long as the shim is there, it can be asked for the end. Where the
    /// folder has been removed, nobody will ask.
    pub(super) fn is_finished(&mut self, now: BootTime) -> bool {
        let Some(finish) = self.finish.as_mut().filter(|finish| finish.try_at <= now) else { return false };
        match self.begun.folder.write_end(&finish.end) {
            Ok(()) => true,
            Err(error) => {
                finish.wait(now);
                super::complain(&error);
                self.begun.folder.is_removed()
            }
        }
    }
}
