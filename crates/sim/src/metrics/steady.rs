//! The work that was done up to the last submission.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use miserly_core::Time;

use crate::finished::Finished;

/// The processor-ticks of jobs up to the last submission. The end of a schedule is left out, when jobs leave the machine and
/// none come.
#[derive(Clone, Debug, Default)]
pub(super) struct Steady {
    /// Those of jobs that ended by the last submission.
    done: u128,
    /// The jobs that end later: their ends, their starts, and their processor-ticks.
    later: BinaryHeap<Reverse<(Time, Time, u128)>>,
    first: Option<Time>,
    last: Option<Time>,
}

impl Steady {
    /// Notes a submission. Submissions are in the order of time.
    pub(super) fn submitted(&mut self, now: Time) {
        self.first.get_or_insert(now);
        self.last = Some(now);
        while let Some(Reverse((end, _, work))) = self.later.peek().copied()
            && end <= now
        {
            self.later.pop();
            self.done += work;
        }
    }

    /// Adds a job with its processor-ticks.
    pub(super) fn ended(&mut self, job: &Finished, work: u128) {
        self.later.push(Reverse((job.end, job.start, work)));
    }

    /// Returns the processor-ticks up to the last submission, and the ticks from the first one on; `None` if that is one
    /// instant. The work of a job that runs then is spread evenly over its time.
    pub(super) fn work_and_time(&self) -> Option<(u128, u64)> {
        let (first, last) = (self.first?, self.last?);
        let ticks = |from: Time, to: Time| (to - from).ticks().unsigned_abs();
        let part = |Reverse((end, start, work)): &Reverse<(Time, Time, u128)>| match *start < last {
            true if *end > last => work * u128::from(ticks(*start, last)) / u128::from(ticks(*start, *end)),
            true => *work,
            false => 0,
        };
        let work = self.done + self.later.iter().map(part).sum::<u128>();
        Some((work, ticks(first, last))).filter(|(_, time)| *time > 0)
    }
}
