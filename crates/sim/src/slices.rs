//! The numbers of slots in which jobs run, if time is sliced.

use miserly_core::{Ledger, Matrix, Span, Time};

/// A job's slots over its time on the machine (Feitelson 1996, Figure 11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slices {
    /// The time from its start to its end.
    pub span: Span,
    /// The slots in which it ran, summed over that time: slots x ticks.
    pub ran_in: u128,
    /// The slots in use, likewise.
    pub used: u128,
}

impl Slices {
    /// Returns the mean number of slots in which it ran, or `None` if it was on the machine for no
    /// time.
    pub fn slots(&self) -> Option<f64> {
        self.mean(self.ran_in)
    }

    /// Returns the mean number of slots in use meanwhile, likewise.
    pub fn used_slots(&self) -> Option<f64> {
        self.mean(self.used)
    }

    /// Returns the share of its time on the machine in which it ran, given its runtime on a
    /// dedicated machine (§2, note 1).
    pub fn run_fraction(&self, runtime: Span) -> Option<f64> {
        let ticks = u128::from(runtime.ticks().unsigned_abs());
        self.mean(ticks)
    }

    fn mean(&self, ticks: u128) -> Option<f64> {
        (self.span > Span::ZERO).then(|| ticks as f64 / self.span.ticks() as f64)
    }
}

/// The slots that a queue uses, over time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsedSlots {
    count: Count,
}

/// The slots in which a job runs, over time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    from: Time,
    used_before: u128,
    count: Count,
}

/// A number that changes, and its sum over time.
#[derive(Clone, Copy, Debug)]
struct Count {
    now: usize,
    since: Time,
    sum: u128,
}

impl Count {
    const fn from(since: Time) -> Count {
        Count { now: 0, since, sum: 0 }
    }

    fn sum_by(&self, now: Time) -> u128 {
        self.sum + u128::from((now - self.since).ticks().unsigned_abs()) * self.now as u128
    }

    /// Sets the number. Returns whether it was different before.
    fn set(&mut self, now: Time, number: usize) -> bool {
        let (sum, before) = (self.sum_by(now), self.now);
        *self = Count { now: number, since: now, sum };
        before != number
    }
}

impl UsedSlots {
    pub(crate) const fn none() -> UsedSlots {
        UsedSlots { count: Count::from(Time::ZERO) }
    }

    /// Records the present number of slots. Returns whether it has changed.
    pub(crate) fn see(&mut self, now: Time, ledger: &Ledger) -> bool {
        ledger.matrix().is_some_and(|matrix| self.count.set(now, Matrix::used(matrix)))
    }
}

impl Turns {
    /// Returns the record of a job that starts now.
    pub(crate) fn start(now: Time, slots: &UsedSlots) -> Turns {
        Turns { from: now, used_before: slots.count.sum_by(now), count: Count::from(now) }
    }

    /// Records the number of slots in which it runs now.
    pub(crate) fn see(&mut self, now: Time, turns: usize) {
        self.count.set(now, turns);
    }

    /// Returns the sums at its end.
    pub(crate) fn over(&self, end: Time, slots: &UsedSlots) -> Slices {
        let used = slots.count.sum_by(end) - self.used_before;
        Slices { span: end - self.from, ran_in: self.count.sum_by(end), used }
    }
}
