//! Values that outlive the daemon and belong to no job.

use jiff::Timestamp;
use miserly_core::{Span, Time};

use crate::promise::counts::PromiseBook;
use crate::{Journal, JournalError};

/// The engine's named values in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EngineValues {
    /// The number of the next job.
    next_number: i64,
    /// The instant of the last round.
    last_instant: Time,
    /// Whether new jobs are rejected.
    draining: bool,
    /// The judgements of promises since the state was created.
    pub(crate) promises: PromiseBook,
    /// The wall time before which finished jobs are pruned.
    pruned_before: Option<Timestamp>,
    /// The last sign of a shutdown.
    shutdown: Option<Time>,
}

impl Default for EngineValues {
    fn default() -> EngineValues {
        EngineValues {
            next_number: 1,
            last_instant: Time::from_ticks(0),
            draining: false,
            promises: PromiseBook::default(),
            pruned_before: None,
            shutdown: None,
        }
    }
}

impl EngineValues {
    /// Returns the stored values. Job numbers continue above `highest`.
    pub(crate) fn load(journal: &impl Journal, highest: i64) -> Result<EngineValues, JournalError> {
        let number = |key: &str| -> Result<Option<i64>, JournalError> {
            Ok(journal.value(key)?.and_then(|text| text.parse().ok()))
        };
        Ok(EngineValues {
            next_number: number("next_number")?.unwrap_or(1).max(highest + 1),
            last_instant: Time::from_ticks(number("last")?.unwrap_or(0)),
            draining: journal.value("draining")?.as_deref() == Some("true"),
            promises: PromiseBook::load(journal)?,
            pruned_before: number("pruned_before")?.and_then(|limit| Timestamp::from_microsecond(limit).ok()),
            shutdown: number("shutdown")?.map(Time::from_ticks),
        })
    }

    /// Takes the values as the journal stores them.
    pub(crate) fn take_entries(&mut self) -> Result<Vec<(String, String)>, JournalError> {
        let pruned_before = self.pruned_before.map(Timestamp::as_microsecond);
        let pruned_before = pruned_before.map(|limit| ("pruned_before".into(), limit.to_string()));
        let mut entries = vec![
            ("next_number".into(), self.next_number.to_string()),
            ("last".into(), self.last_instant.ticks().to_string()),
            ("draining".into(), self.draining.to_string()),
            ("shutdown".into(), self.shutdown.map_or_else(String::new, |at| at.ticks().to_string())),
        ];
        entries.extend(pruned_before);
        entries.extend(self.promises.take_changed()?);
        Ok(entries)
    }

    /// Returns the number of the next job.
    pub(crate) const fn next_number(&self) -> i64 {
        self.next_number
    }

    /// Reserves the numbers of `count` new jobs.
    pub(crate) fn reserve_numbers(&mut self, count: usize) {
        self.next_number += i64::try_from(count).unwrap_or(i64::MAX);
    }

    /// Takes back the number of the last job, which was not accepted.
    pub(crate) fn take_back_number(&mut self, job: i64) {
        self.next_number = job;
    }

    /// Returns the instant of the last round.
    pub(crate) const fn last_instant(&self) -> Time {
        self.last_instant
    }

    /// Returns the first instant from `at` on at which a round can be: no two rounds share an instant.
    pub(crate) fn next_instant(&self, at: Time) -> Time {
        at.max(self.last_instant + Span::TICK)
    }

    /// Notes the instant of a round.
    pub(crate) fn advance(&mut self, at: Time) {
        self.last_instant = at;
    }

    /// Returns whether new jobs are rejected.
    pub(crate) const fn is_draining(&self) -> bool {
        self.draining
    }

    /// Sets whether new jobs are rejected.
    pub(crate) fn drain(&mut self, on: bool) {
        self.draining = on;
    }

    /// Returns the wall time before which finished jobs are pruned.
    pub(crate) const fn pruned_before(&self) -> Option<Timestamp> {
        self.pruned_before
    }

    /// Sets the wall time before which finished jobs are pruned. Returns whether it was another one.
    pub(crate) fn prune_before(&mut self, limit: Timestamp) -> bool {
        self.pruned_before.replace(limit) != Some(limit)
    }

    /// Returns the last sign of a shutdown.
    pub(crate) const fn shutdown(&self) -> Option<Time> {
        self.shutdown
    }

    /// Notes a sign of a shutdown, or that there is none any more.
    pub(crate) fn set_shutdown(&mut self, at: Option<Time>) {
        self.shutdown = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_reserved_once() {
        let mut values = EngineValues::default();
        values.reserve_numbers(3);
        assert_eq!(values.next_number, 4);
    }
}
