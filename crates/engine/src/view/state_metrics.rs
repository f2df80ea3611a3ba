//! The state in numbers, for metrics.

use miserly_api::model::Status;

use crate::{JobState, Now, Queue, Record, Snapshot};

/// The state of the daemon, and the jobs that its status does not count.
#[derive(Clone, Debug, PartialEq)]
pub struct StateMetrics {
    /// The state. A waiting job may be held or run opportunistically.
    pub status: Status,
    /// The opportunistic jobs that run, by queue in the order of the status.
    pub opportunistic: Vec<u64>,
    /// The held jobs, by queue in the order of the status.
    pub held: Vec<u64>,
}

impl Snapshot {
    /// Returns the state in numbers.
    pub fn metrics(&self, now: Now) -> StateMetrics {
        let is_ahead =
            |record: &Record| record.run.as_ref().is_some_and(|run| !run.in_window && !run.stopped);
        StateMetrics {
            status: self.status(now),
            opportunistic: self.by_queue(is_ahead),
            held: self.by_queue(|record| record.state == JobState::Held),
        }
    }

    /// Returns the number of some jobs in each queue.
    fn by_queue(&self, counts: impl Fn(&Record) -> bool) -> Vec<u64> {
        let counted: Vec<&Record> = self.jobs.iter().filter(|record| counts(record)).collect();
        let of_queue =
            |queue: &Queue| counted.iter().filter(|record| *record.queue == *queue.name).count() as u64;
        self.setup.queues.iter().map(of_queue).collect()
    }
}
