//! The state in numbers, for metrics.

use miserly_api::model::Status;

use crate::{Now, Queue, Record, Snapshot};

/// The state of the daemon, and the jobs that its status does not count.
#[derive(Clone, Debug, PartialEq)]
pub struct StateMetrics {
    /// The state. A waiting job may run opportunistically.
    pub status: Status,
    /// The opportunistic jobs that run, by queue in the order of the status.
    pub opportunistic: Vec<u64>,
}

impl Snapshot {
    /// Returns the state in numbers.
    pub fn metrics(&self, now: Now) -> StateMetrics {
        let runs = |record: &&Record| record.run.as_ref().is_some_and(|run| !run.in_window && !run.stopped);
        let running: Vec<&Record> = self.jobs.iter().filter(runs).collect();
        let of_queue =
            |queue: &Queue| running.iter().filter(|record| *record.queue == *queue.name).count() as u64;
        StateMetrics {
            status: self.status(now),
            opportunistic: self.setup.queues.iter().map(of_queue).collect(),
        }
    }
}
