//! In how many rows jobs run, where processors are sliced in time.

use miserly_core::{Ledger, Matrix, Span, Time};

/// A job's rows over its time on the machine (Feitelson 1996, Figure 11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slices {
    /// From its start to its end.
    pub span: Span,
    /// The rows in which it ran, summed over that time: rows x ticks.
    pub ran_in: u128,
    /// The rows that were used, likewise.
    pub used: u128,
}

impl Slices {
    /// In how many rows it ran, as a mean over its time on the machine; `None` if that is nothing.
    pub fn slots(&self) -> Option<f64> {
        self.mean(self.ran_in)
    }

    /// How many rows were used meanwhile, likewise.
    pub fn rows(&self) -> Option<f64> {
        self.mean(self.used)
    }

    /// The share of its time on the machine in which it ran, if it runs for so long on a machine of its own (§2, note 1).
    pub fn run_fraction(&self, runtime: Span) -> Option<f64> {
        let ticks = u128::from(runtime.ticks().unsigned_abs());
        self.mean(ticks)
    }

    fn mean(&self, ticks: u128) -> Option<f64> {
        (self.span > Span::ZERO).then(|| ticks as f64 / self.span.ticks() as f64)
    }
}

/// The rows that a queue uses, over time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    count: Count,
}

/// The rows in which a job runs, over time.
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

    fn by(&self, now: Time) -> u128 {
        self.sum + u128::from((now - self.since).ticks().unsigned_abs()) * self.now as u128
    }

    /// Says whether it was another number before.
    fn set(&mut self, now: Time, number: usize) -> bool {
        let (sum, before) = (self.by(now), self.now);
        *self = Count { now: number, since: now, sum };
        before != number
    }
}

impl Rows {
    pub(crate) const fn none() -> Rows {
        Rows { count: Count::from(Time::ZERO) }
    }

    /// Notes how many there are now; says whether that is another number.
    pub(crate) fn see(&mut self, now: Time, ledger: &Ledger) -> bool {
        ledger.matrix().is_some_and(|matrix| self.count.set(now, Matrix::used(matrix)))
    }
}

impl Turns {
    /// A job starts.
    pub(crate) fn start(now: Time, rows: &Rows) -> Turns {
        Turns { from: now, used_before: rows.count.by(now), count: Count::from(now) }
    }

    /// Notes in how many rows it runs now.
    pub(crate) fn see(&mut self, now: Time, turns: usize) {
        self.count.set(now, turns);
    }

    /// All of it, by its end.
    pub(crate) fn over(&self, end: Time, rows: &Rows) -> Slices {
        let used = rows.count.by(end) - self.used_before;
        Slices { span: end - self.from, ran_in: self.count.by(end), used }
    }
}
