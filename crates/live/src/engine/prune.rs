//! Jobs that ended long ago are forgotten.

use miserly_core::{Span, Time};

use super::{Action, Attempt, Engine, EngineError, Hands, Record, Stands, start};
use crate::clock::Now;
use crate::store::StoreError;

/// So many jobs at most are looked at in one turn, so that nobody waits long for that.
const MOST: u32 = 500;

/// From one time through all of them to the next.
const DAY: Span = Span::from_ticks(86_400_000_000);

/// How far the jobs that have ended have been looked through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pruning {
    /// When to go on.
    next: Time,
    /// With which job.
    from: i64,
}

impl Pruning {
    /// From the first job on, then.
    pub(super) const fn at(next: Time) -> Pruning {
        Pruning { next, from: i64::MIN }
    }
}

impl<H: Hands> Engine<H> {
    /// When to look for jobs that ended long ago; never, where they are remembered for ever.
    pub(super) fn next_pruning(&self) -> Option<Time> {
        self.setup.keep_history.map(|_| self.pruning.next)
    }

    /// Looks for such jobs, if that is due, and forgets them: their rows, and whatever was left for their attempts. The journal has no
    /// part in this: it could not be played again without its beginning.
    ///
    /// # Errors
    /// If nobody knows whether that is on disk. Where there is no room to write it is tried again a day later.
    pub(super) fn prune(&mut self, now: Now) -> Result<(), EngineError> {
        let Some(keep) = self.setup.keep_history.filter(|_| self.pruning.next <= now.ticks) else {
            return Ok(());
        };
        let from = std::mem::replace(&mut self.pruning, Pruning::at(now.ticks + DAY)).from;
        match self.prune_from(now, from, keep) {
            Ok(Some(last)) => self.pruning = Pruning { next: now.ticks, from: last + 1 },
            Ok(None) => {}
            Err(error @ (StoreError::Full | StoreError::Damaged(_))) => {
                tracing::error!("jobs that ended long ago are still remembered: {error}");
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// The last job that was looked at, if there may be more behind it.
    fn prune_from(&mut self, now: Now, from: i64, keep: Span) -> Result<Option<i64>, StoreError> {
        let rows = self.store.ended_from(from, MOST)?;
        let before = now.wall.as_microsecond().saturating_sub(keep.ticks());
        // What makes no sense to this version is kept.
        let records = rows.iter().filter_map(|row| start::record(row).ok());
        let old: Vec<Record> = records.filter(|record| record.ended_before(before)).collect();
        self.store.forget(&old.iter().map(|record| record.number).collect::<Vec<_>>())?;
        for record in &old {
            for nth in 1..=record.attempts {
                self.hands.act(Attempt { job: record.number, nth }, Action::Forget);
            }
        }
        let full = rows.len() >= usize::try_from(MOST).unwrap_or(usize::MAX);
        Ok(rows.last().filter(|_| full).map(|row| row.number))
    }
}

impl Record {
    /// Whether it was over before that, wall time in microseconds since 1970.
    fn ended_before(&self, before: i64) -> bool {
        match &self.stands {
            Stands::Over(phase) => phase.ended().is_some_and(|ended| ended.as_microsecond() < before),
            Stands::Back { .. } | Stands::In => false,
        }
    }
}
