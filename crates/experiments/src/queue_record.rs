//! The waiting jobs over a window of time.

use std::collections::BTreeMap;

use miserly_core::Time;
use miserly_report::chart::QueueStep;
use serde::{Deserialize, Serialize};

use crate::run_result::secs;

/// The waiting jobs from an instant until that of the next row. Times in the log's seconds.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct QueueRow {
    pub(crate) at: f64,
    pub(crate) jobs: u64,
    /// The processors that these jobs request.
    pub(crate) procs: u64,
}

impl From<QueueRow> for QueueStep {
    fn from(row: QueueRow) -> QueueStep {
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        #[expect(clippy::cast_possible_truncation, reason = "the seconds of a log fit by far")]
        let at = (row.at * 1000.0).round() as i64;
        QueueStep { at, jobs: whole(row.jobs), procs: whole(row.procs) }
    }
}

/// The changes of the number of waiting jobs and of the processors that they request.
#[derive(Default)]
pub(crate) struct QueueRecord(BTreeMap<Time, (i64, i64)>);

impl QueueRecord {
    /// Adds a job that requests `procs` processors and waits in this period.
    pub(crate) fn add(&mut self, [from, to]: [Time; 2], procs: u64) {
        let procs = i64::try_from(procs).unwrap_or(i64::MAX);
        for (at, jobs, procs) in [(from, 1, procs), (to, -1, -procs)] {
            let change = self.0.entry(at).or_default();
            *change = (change.0 + jobs, change.1.saturating_add(procs));
        }
    }

    /// Returns the sums, the first one at the begin of the window.
    pub(crate) fn rows(mut self, from: Time) -> Vec<QueueRow> {
        self.0.entry(from).or_default();
        let (mut jobs, mut procs) = (0_i64, 0_i64);
        let row = |(at, change): (Time, (i64, i64))| {
            (jobs, procs) = (jobs + change.0, procs.saturating_add(change.1));
            QueueRow { at: secs(at), jobs: jobs.unsigned_abs(), procs: procs.unsigned_abs() }
        };
        self.0.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_wait_from_their_submission_to_their_start() {
        let at = |secs| Time::from_secs(secs).unwrap();
        let mut queue = QueueRecord::default();
        queue.add([at(10), at(30)], 4);
        queue.add([at(20), at(30)], 3);
        queue.add([at(25), at(40)], 1);
        let rows: Vec<_> = queue.rows(at(10)).iter().map(|row| (row.at, row.jobs, row.procs)).collect();
        assert_eq!(rows, [(10.0, 1, 4), (20.0, 2, 7), (25.0, 3, 8), (30.0, 1, 1), (40.0, 0, 0)]);
        assert_eq!(QueueRecord::default().rows(at(10)).len(), 1);
    }
}
