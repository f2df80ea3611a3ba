//! Batches by termination: a run is measured over a number of them, and then it ends (Feitelson
//! 1996, §4.1).

use miserly_core::{Driver, Entry, JobId, Ledger, System, Time};

use super::batches::{Interval, interval};

/// The rule of measured terminations, in batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRule {
    /// Terminations in a batch.
    pub jobs: u64,
    /// Measured batches. The run ends with the last of them.
    pub count: u64,
    /// Discarded batches before them.
    pub discard: u64,
}

impl BatchRule {
    /// Returns the number of terminations until the run ends.
    pub const fn ends(&self) -> u64 {
        self.jobs.saturating_mul(self.count.saturating_add(self.discard))
    }

    /// Returns the position of a termination among the measured ones, from 0. `ended` jobs have
    /// ended before it.
    pub(super) fn place(&self, ended: u64) -> Option<u64> {
        let place = ended.checked_sub(self.jobs.saturating_mul(self.discard))?;
        (place < self.jobs.saturating_mul(self.count)).then_some(place)
    }
}

/// The measured batches of a run, and the states of the system at their ends.
#[derive(Clone, Debug)]
pub struct Window {
    /// The rule of the batches.
    pub rule: BatchRule,
    /// The states at the beginning, and at the end of each batch: the instant of its last
    /// termination.
    pub marks: Vec<Mark>,
    /// The slots of the jobs of each batch: their sum, and the number of jobs that have any.
    slots: Vec<(u128, u64)>,
    unit: f64,
}

/// The state of the system at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The instant.
    pub at: Time,
    /// Jobs in the system.
    pub jobs: usize,
    /// The work of all jobs submitted so far, processor-ticks.
    pub submitted_work: u128,
    /// The work done so far, processor-ticks, without lost work.
    pub done: u128,
    /// The slots used so far, over time: slots x ticks.
    pub slot_ticks: u128,
    /// The number of slot unifications at terminations so far.
    pub unifications: u64,
}

impl Window {
    /// Returns an empty window. Sums of slots are divided by `unit`.
    pub(super) fn new(rule: BatchRule, unit: f64) -> Window {
        Window { rule, marks: vec![], slots: vec![], unit }
    }

    /// Returns whether a batch has ended after `ended` terminations.
    pub(super) fn is_due(&self, ended: u64) -> bool {
        ended >= self.next()
    }

    /// Returns the number of terminations until the next mark.
    fn next(&self) -> u64 {
        let done = self.marks.len() as u64;
        if done > self.rule.count {
            u64::MAX
        } else {
            self.rule.jobs.saturating_mul(self.rule.discard + done)
        }
    }

    pub(super) fn mark(&mut self, ended: u64, mark: Mark) {
        while self.is_due(ended) {
            self.marks.push(mark);
        }
    }

    /// Returns whether all batches are full.
    pub fn is_full(&self) -> bool {
        self.marks.len() as u64 > self.rule.count
    }

    /// Adds the slots of the job at a position among the measured ones.
    pub(super) fn add(&mut self, place: u64, slots: Option<u128>) {
        let at = usize::try_from(place / self.rule.jobs).unwrap_or(usize::MAX);
        if self.slots.len() <= at {
            self.slots.resize(at + 1, (0, 0));
        }
        self.slots[at].0 += slots.unwrap_or(0);
        self.slots[at].1 += u64::from(slots.is_some());
    }

    /// Returns the states at the beginning and at the end of all batches, once they are full.
    pub fn ends(&self) -> Option<(&Mark, &Mark)> {
        self.is_full().then_some((self.marks.first()?, self.marks.last()?))
    }

    /// Returns the mean slots per job of each batch, if its jobs have any.
    pub fn slots(&self) -> Vec<Option<f64>> {
        let mean = |(sum, count): &(u128, u64)| (*count > 0).then(|| *sum as f64 / self.unit / *count as f64);
        self.slots.iter().map(mean).collect()
    }

    /// Returns the mean number of used slots in each batch, or 0 for one without duration.
    pub fn used_slots(&self) -> Vec<f64> {
        let mean = |from: &Mark, to: &Mark| {
            let ticks = (to.at - from.at).ticks();
            if ticks > 0 { (to.slot_ticks - from.slot_ticks) as f64 / ticks as f64 } else { 0.0 }
        };
        self.pairs(mean)
    }

    /// Unifications per termination in each batch.
    pub fn unifications(&self) -> Vec<f64> {
        self.pairs(|from, to| (to.unifications - from.unifications) as f64 / self.rule.jobs as f64)
    }

    fn pairs<T>(&self, of: impl Fn(&Mark, &Mark) -> T) -> Vec<T> {
        self.marks.windows(2).map(|pair| of(&pair[0], &pair[1])).collect()
    }

    /// Returns the mean and the precision of figures, one of each batch.
    pub fn interval(&self, figures: &[f64]) -> Interval {
        interval(figures, self.rule.jobs)
    }
}

/// Returns the work that the jobs in the system have done, processor-ticks, and the number of these
/// jobs.
pub(super) fn in_system(now: Time, system: &System) -> (u128, usize) {
    let mut sum = (0, 0);
    for ledger in system.queues().iter().map(Driver::ledger) {
        let jobs = ledger.running().chain(ledger.waiting()).chain(ledger.suspended());
        let done = |job: JobId| work_of(ledger, job, now);
        let (work, count) = jobs.map(done).fold((0, 0), |(work, count), done| (work + done, count + 1));
        sum = (sum.0 + work, sum.1 + count);
    }
    sum
}

fn work_of(ledger: &Ledger, job: JobId, now: Time) -> u128 {
    let entry: &Entry = ledger.entry(job);
    entry.done(now) + entry.opportunistic_work(now)
}
