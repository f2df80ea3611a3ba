//! Pruning: jobs that finished long ago are removed from the journal, and the lines of that time.
//!
//! The wall clock alone removes nothing, since it may be wrong. Jobs are removed that finished
//! before the *limit*, and segments of lines that were sealed before it. The limit follows the wall time minus `keep-history`, but it advances at most
//! twice as far as daemons ran. So a clock that is years ahead for a moment costs that moment.

use jiff::Timestamp;
use miserly_api::model::Phase;
use miserly_core::{Span, Time};

use crate::{
    Action, Attempt, Engine, EngineError, JobState, Journal, JournalError, Launcher, Now, Record, wall_after,
    wall_span,
};

/// The maximum number of jobs that one batch examines, so that requests do not wait for long.
const LIMIT: u32 = 500;

/// The interval between passes over all finished jobs.
const DAY: Span = Span::from_ticks(86_400_000_000);

/// The place of the segments of lines in a pass: after all jobs.
const SEGMENTS: i64 = i64::MAX;

/// The position of the pass over the finished jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pruning {
    /// The instant at which the pass continues.
    next: Time,
    /// The number of the job with which it continues; [`SEGMENTS`] after the last one.
    from: i64,
    /// The instant up to which the running time of this daemon has advanced the limit.
    counted: Time,
}

impl Pruning {
    /// Returns a pass that begins with the first job at `next`, by a daemon that runs since then.
    pub(crate) const fn at(next: Time) -> Pruning {
        Pruning { next, from: i64::MIN, counted: next }
    }
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Returns the instant at which pruning continues, if the history is limited.
    pub(crate) fn next_pruning(&self) -> Option<Time> {
        self.setup.keep_history.map(|_| self.pruning.next)
    }

    /// Removes old jobs and the files of their attempts, and then old segments of lines, if that is due.
    ///
    /// # Errors
    /// If the outcome of a commit is unknown. If there is no space, pruning is tried again a day later.
    pub(crate) fn prune(&mut self, now: Now) -> Result<(), EngineError> {
        let Some(keep) = self.setup.keep_history.filter(|_| self.pruning.next <= now.ticks) else {
            return Ok(());
        };
        let from = self.pruning.from;
        if from == i64::MIN {
            self.advance_limit(now, keep);
        }
        self.pruning = Pruning { next: now.ticks + DAY, from: i64::MIN, counted: now.ticks };
        match self.prune_from(now, from) {
            Ok(Some(next)) => self.pruning = Pruning { next: now.ticks, from: next, ..self.pruning },
            Ok(None) => {}
            Err(error @ (JournalError::Full(_) | JournalError::Damaged(_))) => {
                tracing::error!("old jobs are not pruned: {error}");
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Advances the limit towards the wall time minus `keep`, by twice the time that this daemon ran since it last did so.
    fn advance_limit(&mut self, now: Now, keep: Span) {
        let target = wall_after(now.wall, Span::ZERO - keep);
        let lived = (now.ticks - self.pruning.counted).max(Span::ZERO);
        let before = self.values.pruned_before().or_else(|| self.first_end()).unwrap_or(target);
        let limit = target.min(wall_after(before, lived + lived));
        if self.values.prune_before(limit) {
            self.batch.touch_values();
        }
    }

    /// Returns the end of the stored job with the lowest number.
    fn first_end(&self) -> Option<Timestamp> {
        let first = self.journal.ended_from(i64::MIN, 1).ok()?.pop()?;
        Record::read(&first).ok()?.end()
    }

    /// Prunes one batch of jobs, and after the last job one segment. Returns where to continue, if there may be more.
    fn prune_from(&mut self, now: Now, from: i64) -> Result<Option<i64>, JournalError> {
        let before = self.values.pruned_before().unwrap_or(Timestamp::MIN);
        let rows = self.journal.ended_from(from, LIMIT)?;
        // Records that this version cannot read are kept.
        let records = rows.iter().filter_map(|row| Record::read(row).ok());
        let mut last = Timestamp::MIN;
        let old: Vec<Record> = records.filter(|record| record.end_now(now, &mut last) < before).collect();
        self.journal.forget(&old.iter().map(|record| record.number).collect::<Vec<_>>())?;
        for record in &old {
            for nth in 1..=record.attempts {
                self.launcher.act(Attempt { job: record.number, nth }, Action::Forget);
            }
        }
        let full = rows.len() >= usize::try_from(LIMIT).unwrap_or(usize::MAX);
        if let Some(last) = rows.last().filter(|_| full) {
            return Ok(Some(last.number + 1));
        }
        Ok(self.journal.forget_segment(before)?.then_some(SEGMENTS))
    }
}

impl Record {
    /// Returns the end of a finished job by the present offset of the clocks.
    ///
    /// The time of day may have been wrong at the end, and the ticks were not. A job that never started has no ticks: it
    /// counts as no older than `last`, the end of the job before it, which is replaced.
    fn end_now(&self, now: Now, last: &mut Timestamp) -> Timestamp {
        let wall = self.end().unwrap_or(Timestamp::MAX);
        let start_now = self.started.map(|at| now.wall_at(at));
        let start = match &self.state {
            JobState::Finished(phase) => match &**phase {
                Phase::Done { start, .. } | Phase::Killed { start: Some(start), .. } => Some(*start),
                _ => None,
            },
            _ => None,
        };
        *last = match (start_now, start) {
            (Some(now), Some(start)) => wall_after(now, wall_span(start, wall)),
            (Some(now), None) => wall.max(now),
            (None, _) => wall.max(*last),
        };
        *last
    }

    /// Returns the end of a finished job by the clock of its end.
    fn end(&self) -> Option<Timestamp> {
        match &self.state {
            JobState::Finished(phase) => phase.ended(),
            JobState::Held | JobState::Deferred | JobState::Queued => None,
        }
    }
}
