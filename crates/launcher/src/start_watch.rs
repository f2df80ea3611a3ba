//! The start of a command, after the launch of its shim.

use std::time::Duration;

use miserly_launch::{BootTime, StoredInstant};

use crate::backoff::Backoff;
use crate::site::ShimHandle;

/// The first pause between looks for the start record. It is there a few milliseconds after the launch.
const FIRST: Duration = Duration::from_millis(5);
/// The time after which the shim is examined: it may be stopped.
const SLOW: Duration = Duration::from_secs(1);

/// Waits for the start record of an attempt.
///
/// The kernel reports no start, so the record is looked for, at growing intervals until it is there. The shim may correct it,
/// so it is read again when the shim has exited.
#[derive(Debug)]
pub(crate) struct StartWatch {
    found: Option<StoredInstant>,
    /// The time limit of the epilog.
    epilog: Duration,
    look_at: BootTime,
    examine_at: BootTime,
    backoff: Backoff,
}

impl StartWatch {
    /// Returns the watch of an attempt whose command begins now.
    pub(crate) fn new(now: BootTime) -> StartWatch {
        StartWatch {
            found: None,
            epilog: Duration::ZERO,
            look_at: now,
            examine_at: now.after(SLOW),
            backoff: Backoff::new(FIRST),
        }
    }

    /// Returns the instant of the next look, if the record is not there yet.
    pub(crate) fn next(&self) -> Option<BootTime> {
        self.found.is_none().then_some(self.look_at)
    }

    /// Returns the instant at which the command was permitted to run, if it is due to look and that is news.
    pub(crate) fn look(
        &mut self,
        shim: &impl ShimHandle,
        now: BootTime,
        has_exited: bool,
    ) -> Option<StoredInstant> {
        if !has_exited && self.next().is_none_or(|at| at > now) {
            return None;
        }
        self.look_at = now.after(self.backoff.pause());
        // An unreadable record is reported with the end of the attempt.
        let record = shim.start();
        self.epilog = record.as_ref().and_then(|started| started.epilog).unwrap_or(self.epilog);
        let found = record.map(|started| started.at);
        let is_news = found != self.found;
        self.found = found.clone().or(self.found.take());
        found.filter(|_| is_news)
    }

    /// Returns the time limit of the epilog, as far as it is known.
    pub(crate) const fn epilog(&self) -> Duration {
        self.epilog
    }

    /// Returns whether it is time to examine the shim, since there is no record.
    pub(crate) fn is_slow(&mut self, now: BootTime) -> bool {
        let is_slow = self.found.is_none() && self.examine_at <= now;
        if is_slow {
            self.examine_at = now.after(SLOW);
        }
        is_slow
    }
}
