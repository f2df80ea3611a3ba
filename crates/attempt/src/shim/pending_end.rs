//! The end of an attempt and its record.

use std::time::Duration;

use miserly_marks::mark;

use super::host::Host;
use super::supervisor::Supervisor;
use crate::boot::StoredInstant;
use crate::end::{AttemptEnd, EndCause, Exit};
use crate::files::Files;
use crate::queue_program::ProgramKind;
use crate::time::BootTime;

/// Pause after the first failed write. It doubles with each retry.
const FIRST: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(32);
/// Time in which the shim's own signal may follow that of its job at a shutdown.
const SHUTDOWN_DELAY: Duration = Duration::from_millis(200);

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
        let write_at = if end.may_be_shutdown() { now.after(SHUTDOWN_DELAY) } else { now };
        PendingEnd { end, write_at, pause: FIRST }
    }

    fn delay(&mut self, now: BootTime) {
        self.write_at = now.after(self.pause);
        self.pause = (self.pause * 2).min(LONGEST);
    }
}

impl<H: Host> Supervisor<H> {
    /// Ends the job because the machine or the session shuts down.
    ///
    /// A job that has just died of the same shutdown gets the same cause.
    pub(super) fn shut_down(&mut self, now: BootTime) {
        if self.main.exit.as_ref().is_none_or(Exit::may_be_shutdown) {
            self.timeline.shut_down(now);
        }
        if let Some(pending) = self.pending_end.as_mut().filter(|pending| pending.end.may_be_shutdown()) {
            (pending.end.cause, pending.write_at) = (Some(EndCause::Shutdown), now);
        }
    }

    /// Returns the end of the attempt. No process of the job is left.
    pub(super) fn end(&self, now: BootTime) -> AttemptEnd {
        let ending = self.timeline.ending();
        let usage = self.host.usage();
        let out_of_memory = || usage.is_some_and(|usage| usage.memory_kills > 0).then_some(EndCause::Memory);
        let cause = ending.and_then(|ending| ending.cause).or_else(out_of_memory);
        let gone_at = self.programs.gone_at.unwrap_or(now);
        let report = |kind| self.programs.report(kind).cloned().map(Box::new);
        AttemptEnd {
            exit: self.exit(cause),
            cause,
            usage,
            processes: usage.is_none().then_some(self.main.usage),
            stops: self.timeline.stops(),
            at: StoredInstant::new(now, self.attempt.boot.clone()),
            late: ending.filter(|ending| ending.killed).map(|ending| gone_at.since(ending.kill_at)),
            prolog: report(ProgramKind::Prolog),
            epilog: report(ProgramKind::Epilog),
            checkpoint: report(ProgramKind::Checkpoint),
        }
    }

    /// Writes the end if it is due. The shim is then over.
    ///
    /// A failed write is retried, and a daemon can query the end from the shim meanwhile. If the
    /// folder was deleted, no daemon will look for the record. An attempt that lacked a resource before
    /// its command was permitted has no end: it never ran.
    pub(super) fn record_end(&mut self, now: BootTime) {
        let Some(pending_end) = self.pending_end.as_mut().filter(|pending_end| pending_end.write_at <= now)
        else {
            return;
        };
        let files = &self.attempt.files;
        let recorded = if self.main.is_short {
            mark!("void for lack of a resource");
            files.void_start(&self.attempt.lock)
        } else {
            files.write_end(&pending_end.end, self.daemon.is_connected())
        };
        self.is_over = recorded.is_ok();
        if let Err(error) = recorded {
            self.host.log(&error);
            mark!("the end cannot be written");
            pending_end.delay(now);
            self.is_over = files.is_removed();
        }
        if self.is_over {
            if self.raises_group() {
                self.host.set_weight(false);
            }
            self.close_session();
        }
    }

    fn close_session(&mut self) {
        let has_begun = self.main.is_permitted || self.programs.has_begun(ProgramKind::Prolog);
        if let Some(user) = self.attempt.spec.user.as_ref().filter(|_| has_begun)
            && let Err(error) = self.host.close_session(user)
        {
            self.host.log(&format_args!("the session of PAM is not closed: {error}"));
        }
    }
}
