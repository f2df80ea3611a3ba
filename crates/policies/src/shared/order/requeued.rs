//! The instants from which a job counts that was returned to the queue.

use miserly_core::{Persistent, Time};

/// The instants from which an order counts a job that was returned to the queue, in place of its submission. Only an order
/// [with requeues](super::Order::with_requeues) uses them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requeued(pub Option<RequeuedAt>);

/// The instants of a requeue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequeuedAt {
    /// The submission, which decides ties.
    pub submit: Time,
    /// The begin of its wait.
    pub eligible: Time,
}

impl Persistent for Requeued {
    const NAME: &'static str = "order/requeued";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        let times = self.0.iter().flat_map(|at| [at.submit, at.eligible]);
        words.extend(times.map(|time| time.ticks().cast_unsigned()));
    }

    fn decode(_version: u32, words: &[u64]) -> Option<Requeued> {
        let time = |ticks: u64| Time::from_ticks(ticks.cast_signed());
        match *words {
            [] => Some(Requeued(None)),
            [submit, eligible] => {
                Some(Requeued(Some(RequeuedAt { submit: time(submit), eligible: time(eligible) })))
            }
            _ => None,
        }
    }
}
