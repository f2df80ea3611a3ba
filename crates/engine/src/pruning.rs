//! Pruning: jobs that finished long ago are removed from the journal.

use miserly_core::{Span, Time};

use crate::{
    Action, Attempt, Engine, EngineError, JobState, Journal, JournalError, Launcher, Now, Record, startup,
};

/// The maximum number of jobs that one batch examines, so that requests do not wait for long.
const LIMIT: u32 = 500;

/// The interval between passes over all finished jobs.
const DAY: Span = Span::from_ticks(86_400_000_000);

/// The position of the pass over the finished jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pruning {
    /// The instant at which the pass continues.
    next: Time,
    /// The number of the job with which it continues.
    from: i64,
}

impl Pruning {
    /// Returns a pass that begins with the first job at `next`.
    pub(crate) const fn at(next: Time) -> Pruning {
        Pruning { next, from: i64::MIN }
    }
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Returns the instant at which pruning continues, if the history is limited.
    pub(crate) fn next_pruning(&self) -> Option<Time> {
        self.setup.keep_history.map(|_| self.pruning.next)
    }

    /// Removes old jobs and the files of their attempts, if that is due.
    ///
    /// The journal's lines stay: a replay needs them from the beginning.
    ///
    /// # Errors
    /// If the outcome of a commit is unknown. If there is no space, pruning is tried again a day later.
    pub(crate) fn prune(&mut self, now: Now) -> Result<(), EngineError> {
        let Some(keep) = self.setup.keep_history.filter(|_| self.pruning.next <= now.ticks) else {
            return Ok(());
        };
        let from = std::mem::replace(&mut self.pruning, Pruning::at(now.ticks + DAY)).from;
        match self.prune_from(now, from, keep) {
            Ok(Some(last)) => self.pruning = Pruning { next: now.ticks, from: last + 1 },
            Ok(None) => {}
            Err(error @ (JournalError::Full(_) | JournalError::Damaged(_))) => {
                tracing::error!("old jobs are not pruned: {error}");
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Prunes one batch of jobs. Returns the last job that it examined, if there may be more.
    fn prune_from(&mut self, now: Now, from: i64, keep: Span) -> Result<Option<i64>, JournalError> {
        let rows = self.journal.ended_from(from, LIMIT)?;
        let before = now.wall.as_microsecond().saturating_sub(keep.ticks());
        // Records that this version cannot read are kept.
        let records = rows.iter().filter_map(|row| startup::record(row).ok());
        let old: Vec<Record> = records.filter(|record| record.ended_before(before)).collect();
        self.journal.forget(&old.iter().map(|record| record.number).collect::<Vec<_>>())?;
        for record in &old {
            for nth in 1..=record.attempts {
                self.launcher.act(Attempt { job: record.number, nth }, Action::Forget);
            }
        }
        let full = rows.len() >= usize::try_from(LIMIT).unwrap_or(usize::MAX);
        Ok(rows.last().filter(|_| full).map(|row| row.number))
    }
}

impl Record {
    /// Returns whether the job finished before a wall time, in microseconds since 1970.
    fn ended_before(&self, before: i64) -> bool {
        match &self.state {
            JobState::Finished(phase) => phase.ended().is_some_and(|ended| ended.as_microsecond() < before),
            JobState::Held | JobState::Deferred | JobState::Queued => false,
        }
    }
}
