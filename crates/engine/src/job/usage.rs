//! The resources that the attempts of a job used.
//!
//! A shim writes them into `end.json`, and the launcher reports them before the end.

use miserly_api::model;
use serde::{Deserialize, Serialize};

/// The number of attempts whose usage is stored one by one.
const KEPT: usize = 16;

/// The resources that an attempt used, or several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Usage {
    /// Time on processors in user mode, in microseconds.
    pub user: u64,
    /// Time on processors in the kernel, in microseconds.
    pub system: u64,
    /// The highest use of memory, in bytes, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_peak: Option<u64>,
    /// Bytes read from block devices, if they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_read: Option<u64>,
    /// Bytes written to block devices, if they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_written: Option<u64>,
    /// How often the job was stopped while it ran.
    #[serde(default)]
    pub stops: u32,
    /// Whether only processes that were waited for are counted, since there was no control group. Memory is then that of the
    /// largest process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_processes: bool,
}

/// The resources that the ended attempts of a job used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct UsageLog {
    /// Attempts that are not in the list any more, together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    earlier: Option<Usage>,
    /// The latest attempts, by number.
    #[serde(default)]
    latest: Vec<(u32, Usage)>,
}

impl Usage {
    /// Returns both together: sums, and the higher memory.
    #[must_use]
    pub fn and(self, other: Usage) -> Usage {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        Usage {
            user: self.user.saturating_add(other.user),
            system: self.system.saturating_add(other.system),
            memory_peak: self.memory_peak.max(other.memory_peak),
            io_read: sum(self.io_read, other.io_read),
            io_written: sum(self.io_written, other.io_written),
            stops: self.stops.saturating_add(other.stops),
            of_processes: self.of_processes || other.of_processes,
        }
    }

    fn view(self) -> model::Usage {
        let seconds = |micros: u64| micros as f64 / 1e6;
        model::Usage {
            user: seconds(self.user),
            system: seconds(self.system),
            memory_peak: self.memory_peak,
            io_read: self.io_read,
            io_written: self.io_written,
            stops: self.stops,
            source: if self.of_processes {
                model::UsageSource::Processes
            } else {
                model::UsageSource::ControlGroup
            },
        }
    }
}

impl UsageLog {
    /// Adds what an attempt used. An attempt that is reported again counts once.
    pub fn add(&mut self, attempt: u32, usage: Usage) {
        match self.latest.binary_search_by_key(&attempt, |(attempt, _)| *attempt) {
            Ok(at) => self.latest[at].1 = usage,
            Err(at) => self.latest.insert(at, (attempt, usage)),
        }
        while self.latest.len() > KEPT {
            let (_, oldest) = self.latest.remove(0);
            self.earlier = Some(self.earlier.map_or(oldest, |earlier| earlier.and(oldest)));
        }
    }

    /// Returns whether no attempt has ended.
    pub fn is_empty(&self) -> bool {
        self.latest.is_empty()
    }

    /// Returns what all attempts used together; `None` if none has ended.
    pub fn total(&self) -> Option<Usage> {
        self.earlier.into_iter().chain(self.latest.iter().map(|(_, usage)| *usage)).reduce(Usage::and)
    }

    pub(crate) fn view(&self) -> Option<model::JobUsage> {
        let attempt =
            |(attempt, usage): &(u32, Usage)| model::AttemptUsage { attempt: *attempt, usage: usage.view() };
        Some(model::JobUsage {
            total: self.total()?.view(),
            attempts: self.latest.iter().map(attempt).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(user: u64) -> Usage {
        Usage { user, memory_peak: Some(user), ..Usage::default() }
    }

    #[test]
    fn attempts_add_up_and_one_that_is_reported_again_counts_once() {
        let mut log = UsageLog::default();
        assert_eq!(log.total(), None);
        for attempt in [1, 2, 2] {
            log.add(attempt, Usage { io_read: Some(5), stops: 1, ..used(10) });
        }
        let sum = Usage { user: 20, memory_peak: Some(10), io_read: Some(10), stops: 2, ..Usage::default() };
        assert_eq!(log.total(), Some(sum));
        log.add(3, Usage { of_processes: true, ..used(1) });
        assert!(log.total().unwrap().of_processes);
    }

    #[test]
    fn a_job_with_many_attempts_has_a_small_record() {
        let mut log = UsageLog::default();
        for attempt in 1..=1000 {
            log.add(attempt, used(attempt.into()));
        }
        assert_eq!(log.total(), Some(Usage { memory_peak: Some(1000), ..used(500_500) }));
        let view = log.view().unwrap();
        assert_eq!((view.attempts.len(), view.attempts[0].attempt), (KEPT, 985));
    }
}
