//! Checkpoints of the journal: when they are written.

use miserly_core::{Span, Time};

use crate::{Checkpoint, CheckpointLine, Engine, Journal, JournalError, JournalLine, Launcher, Now};

/// The number of lines after which a checkpoint follows, unless more jobs are in the ledgers.
const LINES: usize = 10_000;

/// The time after which a checkpoint follows the next line.
const DAY: Span = Span::from_ticks(86_400_000_000);

/// The lines since the last checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SinceCheckpoint {
    lines: usize,
    at: Time,
}

impl SinceCheckpoint {
    /// Returns a journal whose last checkpoint is at this instant.
    pub(crate) const fn at(at: Time) -> SinceCheckpoint {
        SinceCheckpoint { lines: 0, at }
    }

    /// Returns the state after a commit of some lines, and of a checkpoint if there was one.
    pub(crate) fn after(self, lines: usize, checkpoint: Option<Time>) -> SinceCheckpoint {
        checkpoint.map_or(SinceCheckpoint { lines: self.lines + lines, ..self }, SinceCheckpoint::at)
    }

    /// Returns whether a checkpoint is due after more lines. A checkpoint of many jobs is written less often, so that the
    /// cost for each line stays the same.
    fn is_due(self, now: Time, lines: usize, jobs: usize) -> bool {
        let lines = self.lines + lines;
        lines >= LINES.max(jobs) || lines > 0 && now >= self.at + DAY
    }
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Returns the checkpoint after the pending batch, if one is due: for each setup, and after so many lines or a day.
    pub(crate) fn due_checkpoint(&self, now: Now) -> Result<Option<Checkpoint>, JournalError> {
        let ledgers = self.system.queues().iter().map(miserly_core::Driver::ledger);
        let jobs = ledgers.map(|of| of.waiting_count() + of.running_count() + of.suspended_count()).sum();
        let is_due = self.since_checkpoint.is_due(now.ticks, self.batch.line_count(), jobs);
        if !is_due && !self.batch.has_setup {
            return Ok(None);
        }
        let wall = now.wall;
        let line = JournalLine::Checkpoint(Box::new(CheckpointLine { wall, ..self.checkpoint() }));
        Ok(Some(Checkpoint { line: crate::journal::to_json(&line)?, wall }))
    }

    /// Returns the present state of the queues.
    fn checkpoint(&self) -> CheckpointLine {
        let mut line = CheckpointLine::new(&self.setup, self.system.queues(), &self.system.wake_ups());
        line.at = self.values.last_instant();
        for queue in &mut line.queues {
            queue.stopped = self.stopped.contains(&queue.queue.name);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_follows_after_as_many_lines_as_jobs_or_after_a_day_with_lines() {
        let since = SinceCheckpoint::at(Time::ZERO).after(LINES - 1, None);
        let soon = Time::from_ticks(1);
        assert!(!since.is_due(soon, 0, 0) && since.is_due(soon, 1, 0));
        assert!(!since.is_due(soon, 1, LINES + 1) && since.is_due(soon, 2, LINES + 1));
        let day = Time::ZERO + DAY;
        assert!(since.is_due(day, 0, usize::MAX));
        let next = since.after(1, Some(day));
        assert!(!next.is_due(day, 1, 0) && !next.is_due(day + DAY, 0, 0) && next.is_due(day + DAY, 1, 0));
    }
}
