//! Observed starts: how long jobs waited, and how much earlier than promised they started.

use std::sync::Arc;

use miserly_core::{Span, Time};

use crate::{Now, Record};

/// The start of a job, once it is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobStart {
    /// The queue.
    pub queue: Arc<str>,
    /// The user, by number.
    pub uid: u32,
    /// The time from the submission to the first run; `None` if the job ran before.
    pub wait: Option<Span>,
    /// The time from the start of the window to the latest start that was promised, 0 if it is late; `None` without a promise,
    /// and for an opportunistic run.
    pub slack: Option<Span>,
}

/// A function that gets each start, on the thread of the engine: it must not wait.
pub type StartObserver = Box<dyn Fn(JobStart) + Send>;

impl JobStart {
    /// Returns the start of a window. The record does not have this start yet.
    pub(crate) fn of_window(record: &Record, now: Now, at: Time) -> JobStart {
        let slack = record.promise.latest_start().map(|latest| (latest - at).max(Span::ZERO));
        JobStart { slack, ..JobStart::opportunistic(record, now, at) }
    }

    /// Returns an opportunistic run. The record does not have this start yet.
    pub(crate) fn opportunistic(record: &Record, now: Now, at: Time) -> JobStart {
        let queue = Arc::clone(&record.queue);
        JobStart { queue, uid: record.uid, wait: wait(record, now, at), slack: None }
    }
}

/// Returns the time from the submission of a job to its first run.
fn wait(record: &Record, now: Now, at: Time) -> Option<Span> {
    let is_first = record.runs() == 0 && record.started.is_none();
    let waited = now.wall_at(at).as_microsecond().saturating_sub(record.submitted.as_microsecond());
    is_first.then_some(Span::from_ticks(waited.max(0)))
}
