//! Batches by termination: a run is measured over so many of them, and then it is over (Feitelson 1996, §4.1).

use miserly_core::{Driver, Entry, JobId, Ledger, System, Time};

use super::batches::{Interval, interval};

/// Which terminations of a run are measured, in batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRule {
    /// Terminations in a batch.
    pub jobs: u64,
    /// Batches that are measured; with the last of them the run is over.
    pub count: u64,
    /// Batches before them that are not.
    pub discard: u64,
}

impl BatchRule {
    /// Terminations until the run is over.
    pub const fn ends(&self) -> u64 {
        self.jobs.saturating_mul(self.count.saturating_add(self.discard))
    }

    /// The place of a termination among those that are measured, from 0; `ended` have ended before it.
    pub(super) fn place(&self, ended: u64) -> Option<u64> {
        let place = ended.checked_sub(self.jobs.saturating_mul(self.discard))?;
        (place < self.jobs.saturating_mul(self.count)).then_some(place)
    }
}

/// The measured batches of a run, and how the system stood at their ends.
#[derive(Clone, Debug)]
pub struct Window {
    /// Which they are.
    pub rule: BatchRule,
    /// How all stood at the begin, and at the end of each batch: the instant of its last termination.
    pub marks: Vec<Mark>,
    /// The slots of the jobs of each batch: their sum, and how many jobs have any.
    slots: Vec<(u128, u64)>,
    unit: f64,
}

/// How all stood at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The instant.
    pub at: Time,
    /// Jobs in the system.
    pub jobs: usize,
    /// The work of all jobs that were submitted by then, processor-ticks.
    pub arrived: u128,
    /// The work that was done by then, processor-ticks; what was lost does not count.
    pub done: u128,
    /// Rows that were used by then, over time: rows x ticks.
    pub row_ticks: u128,
    /// How often rows were united at terminations by then.
    pub unifications: u64,
}

impl Window {
    /// Sums of slots are divided by `unit`.
    pub(super) fn new(rule: BatchRule, unit: f64) -> Window {
        Window { rule, marks: vec![], slots: vec![], unit }
    }

    /// Whether a batch has ended, now that so many jobs have.
    pub(super) fn is_due(&self, ended: u64) -> bool {
        ended >= self.next()
    }

    /// Terminations until the next mark.
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

    /// Whether all batches are full.
    pub fn is_full(&self) -> bool {
        self.marks.len() as u64 > self.rule.count
    }

    /// Adds the slots of the job at a place among those that are measured.
    pub(super) fn add(&mut self, place: u64, slots: Option<u128>) {
        let at = usize::try_from(place / self.rule.jobs).unwrap_or(usize::MAX);
        if self.slots.len() <= at {
            self.slots.resize(at + 1, (0, 0));
        }
        self.slots[at].0 += slots.unwrap_or(0);
        self.slots[at].1 += u64::from(slots.is_some());
    }

    /// How all stood at the begin and at the end of all batches, once they are full.
    pub fn ends(&self) -> Option<(&Mark, &Mark)> {
        self.is_full().then_some((self.marks.first()?, self.marks.last()?))
    }

    /// The mean slots per job of each batch, if its jobs have any.
    pub fn slots(&self) -> Vec<Option<f64>> {
        let mean = |(sum, count): &(u128, u64)| (*count > 0).then(|| *sum as f64 / self.unit / *count as f64);
        self.slots.iter().map(mean).collect()
    }

    /// The mean number of rows used in each batch; 0 of one that took no time.
    pub fn rows(&self) -> Vec<f64> {
        let mean = |from: &Mark, to: &Mark| {
            let ticks = (to.at - from.at).ticks();
            if ticks > 0 { (to.row_ticks - from.row_ticks) as f64 / ticks as f64 } else { 0.0 }
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

    /// What such figures, one of each batch, tell together.
    pub fn interval(&self, figures: &[f64]) -> Interval {
        interval(figures, self.rule.jobs)
    }
}

/// The work that the jobs in the system have done, processor-ticks, and how many these are.
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
