//! Checkpoints: what a replay needs to begin after a round.

use jiff::Timestamp;
use jiff::fmt::serde::timestamp::microsecond;
use miserly_core::devices::DeviceTable;
use miserly_core::{Driver, JobId, Ledger, Time, WakeUps};
use miserly_saved::ticks;
use serde::{Deserialize, Serialize};

use super::{OpportunisticLine, QueueLine};
use crate::{Amounts, Queue, SavedEntry, SavedLedgerState, Setup, amounts};

/// The state of the queues after a round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct CheckpointLine {
    /// The instant of the last round before.
    #[serde(with = "ticks")]
    pub at: Time,
    /// The wall time.
    #[serde(with = "microsecond::required")]
    pub wall: Timestamp,
    /// The queues.
    pub queues: Vec<QueueCheckpoint>,
    /// The resources for opportunistic jobs, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opportunistic: Option<OpportunisticLine>,
    /// The next wake-up of the layer of opportunistic jobs.
    #[serde(skip_serializing_if = "Option::is_none", with = "ticks::optional")]
    pub opportunistic_wake: Option<Time>,
}

/// The state of a queue after a round.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct QueueCheckpoint {
    /// The queue.
    pub queue: QueueLine,
    /// Whether the queue is stopped, because its policy made a mistake. A replay cannot begin here then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// The present capacity of its pool, if some of it is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Amounts>,
    /// The lost devices of its cells: positions, one bit each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<(u32, u64)>,
    /// The state that its policy keeps besides that of jobs.
    pub state: SavedLedgerState,
    /// The next wake-up that its policy requested.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "ticks::optional")]
    pub wake: Option<Time>,
    /// The jobs in its ledger.
    pub jobs: Vec<SavedEntry>,
}

impl CheckpointLine {
    /// Returns the checkpoint of the queues of a setup, without its instants.
    pub(crate) fn new(setup: &Setup, queues: &[Driver], wake_ups: &WakeUps) -> CheckpointLine {
        let wakes = wake_ups.queues.iter().copied().chain(std::iter::repeat(None));
        let queues = setup.queues.iter().zip(queues).zip(wakes);
        CheckpointLine {
            queues: queues
                .map(|((queue, driver), wake)| QueueCheckpoint::new(queue, driver.ledger(), wake))
                .collect(),
            opportunistic: setup.opportunistic.map(OpportunisticLine::new),
            opportunistic_wake: wake_ups.opportunistic,
            ..CheckpointLine::default()
        }
    }

    /// Returns whether a replay can begin here: no queue is stopped.
    pub fn can_begin(&self) -> bool {
        !self.queues.iter().any(|queue| queue.stopped)
    }

    /// Returns the wake-ups of the queues and of the layer of opportunistic jobs.
    pub fn wake_ups(&self) -> WakeUps {
        WakeUps {
            queues: self.queues.iter().map(|queue| queue.wake).collect(),
            opportunistic: self.opportunistic_wake,
        }
    }
}

impl QueueCheckpoint {
    fn new(queue: &Queue, ledger: &Ledger, wake: Option<Time>) -> QueueCheckpoint {
        let capacity = ledger.machine().capacity();
        let lost = ledger.machine().devices().map(DeviceTable::lost).unwrap_or_default();
        let jobs = ledger.running().chain(ledger.suspended()).chain(ledger.waiting());
        let saved = |job: JobId| SavedEntry::new(ledger.entry(job));
        QueueCheckpoint {
            queue: QueueLine::new(queue),
            stopped: false,
            capacity: (capacity != queue.pool.most()).then(|| amounts(&capacity)),
            lost: lost.into_iter().map(|(cell, names)| (cell.0, names)).collect(),
            state: SavedLedgerState::new(&ledger.state()),
            wake,
            jobs: jobs.map(saved).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{Entry, Request, Resources, Span};

    use super::*;
    use crate::JournalLine;

    #[test]
    fn work_is_read_as_it_was_written_within_a_line_of_the_journal() {
        for done in [7, u128::from(u64::MAX), u128::MAX] {
            let request = Request::new(7, Time::ZERO, Span::from_ticks(60), Resources::cpus(3));
            let mut entry = Entry::waiting(request, 2);
            entry.progress.done = done;
            let queue = QueueCheckpoint {
                queue: QueueLine {
                    name: "q".into(),
                    policy: "easy".into(),
                    pool: vec![],
                    again: None,
                    once: vec![],
                    classes: None,
                    charge: None,
                    gpus: None,
                },
                stopped: false,
                capacity: None,
                lost: vec![],
                state: SavedLedgerState::default(),
                wake: None,
                jobs: vec![SavedEntry::new(&entry)],
            };
            let line = CheckpointLine { queues: vec![queue], ..CheckpointLine::default() };
            let line = JournalLine::Checkpoint(Box::new(line));
            let text = serde_json::to_string(&line).unwrap();
            assert_eq!(serde_json::from_str::<JournalLine>(&text).unwrap(), line);
        }
    }
}
