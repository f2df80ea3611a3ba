//! The run over time, in a bounded number of buckets.

use std::io;

use miserly_core::{Procs, Request, Span, Time};

use crate::finished::{Finished, Observer, SystemSnapshot};

/// The largest number of buckets.
pub const BUCKETS_MOST: usize = 512;

/// The width of the first buckets.
const FINEST: i64 = 1_000_000;

/// Jobs below this are short (Zotkin et al., Figures 9 and 10).
const SHORT: Span = Span::from_ticks(60_000_000);

/// Busy processors, waiting jobs and ended jobs over time.
///
/// Buckets begin at the multiples of their width. The width doubles and neighbours are merged when
/// there would be more than [`BUCKETS_MOST`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    procs: Procs,
    width: i64,
    /// The number of the first bucket: its begin / width.
    first: i64,
    buckets: Vec<Bucket>,
    last: Option<(Time, Procs, usize)>,
}

/// The sums of one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Processor-ticks in use.
    pub busy: u128,
    /// Job-ticks of waiting.
    pub waiting: u128,
    /// Jobs that ended in it.
    pub ended: u64,
    /// Jobs among them that ran for less than a minute.
    pub short: u64,
}

impl Series {
    /// Returns an empty series for a machine of `procs` processors.
    pub fn new(procs: impl Into<Procs>) -> Series {
        Series { procs: procs.into(), width: FINEST, first: 0, buckets: Vec::new(), last: None }
    }

    /// Returns the beginning of the first bucket.
    pub fn from(&self) -> Time {
        Time::from_ticks(self.first * self.width)
    }

    /// Returns the width of a bucket.
    pub fn step(&self) -> Span {
        Span::from_ticks(self.width)
    }

    /// Returns the buckets in order.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Returns the index of the bucket of an instant. Inserts it if absent.
    fn reach(&mut self, ticks: i64) -> usize {
        if self.buckets.is_empty() {
            self.first = ticks.div_euclid(self.width);
        }
        loop {
            let at = ticks.div_euclid(self.width);
            let begin = self.first.min(at);
            let end = at.max(self.first + signed(self.buckets.len()) - 1);
            let Some(length) = usize::try_from(end - begin + 1).ok().filter(|&length| length <= BUCKETS_MOST)
            else {
                self.double();
                continue;
            };
            // Time usually advances, so a new first bucket is rare.
            let before = length.saturating_sub(usize::try_from(end - self.first + 1).unwrap_or(0));
            self.buckets.splice(0..0, std::iter::repeat_n(Bucket::default(), before));
            self.buckets.resize(length, Bucket::default());
            self.first = begin;
            return usize::try_from(at - begin).unwrap_or(0);
        }
    }

    /// Merges each two neighbouring buckets.
    fn double(&mut self) {
        let first = self.first.div_euclid(2);
        let mut merged: Vec<Bucket> = Vec::with_capacity(self.buckets.len() / 2 + 1);
        for (number, bucket) in (self.first..).zip(&self.buckets) {
            let at = usize::try_from(number.div_euclid(2) - first).unwrap_or(0);
            if merged.len() <= at {
                merged.push(Bucket::default());
            }
            merged[at].merge(bucket);
        }
        (self.buckets, self.first, self.width) = (merged, first, self.width * 2);
    }

    /// Distributes a state that lasted from `since` to `until` over the buckets.
    fn spread(&mut self, since: Time, until: Time, busy: Procs, waiting: usize) {
        self.reach(until.ticks() - 1);
        let mut from = since.ticks();
        while from < until.ticks() {
            let at = self.reach(from);
            let next = (from.div_euclid(self.width) + 1) * self.width;
            let length = u128::from((next.min(until.ticks()) - from).unsigned_abs());
            self.buckets[at].busy += length * u128::from(busy);
            self.buckets[at].waiting += length * waiting as u128;
            from = next;
        }
    }
}

impl Bucket {
    fn merge(&mut self, other: &Bucket) {
        self.busy += other.busy;
        self.waiting += other.waiting;
        self.ended += other.ended;
        self.short += other.short;
    }
}

impl Observer for Series {
    fn submitted(&mut self, now: Time, _request: &Request) {
        self.reach(now.ticks());
    }

    fn instant(&mut self, now: Time, standing: SystemSnapshot) {
        if let Some((since, busy, waiting)) = self.last.filter(|&(since, ..)| since < now) {
            self.spread(since, now, busy, waiting);
        }
        self.last = Some((now, self.procs - standing.free, standing.waiting));
    }

    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        let at = self.reach(job.end.ticks());
        self.buckets[at].ended += 1;
        self.buckets[at].short += u64::from(job.runtime < SHORT);
        Ok(())
    }
}

/// Converts a number of buckets, which is small.
fn signed(buckets: usize) -> i64 {
    i64::try_from(buckets).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns instants in order: (time, free, waiting).
    fn instants(count: i64) -> Vec<(Time, u64, usize)> {
        let at = |n: i64| Time::from_ticks(-5_000_000 + 700_000 * n + (n * n % 13) * 50_000);
        (0..count).map(|n| (at(n), (n % 5).unsigned_abs(), usize::try_from(n * n % 7).unwrap())).collect()
    }

    fn series(instants: &[(Time, u64, usize)]) -> Series {
        let mut series = Series::new(4);
        for &(now, free, waiting) in instants {
            series.instant(
                now,
                SystemSnapshot { free: Procs::new(free.min(4)), waiting, ..SystemSnapshot::default() },
            );
        }
        series
    }

    #[test]
    fn each_bucket_as_counted_tick_by_tick_in_pieces() {
        let instants = instants(3000);
        let series = series(&instants);
        assert!((256..=512).contains(&series.buckets().len()), "{}", series.buckets().len());
        let mut sum = (0, 0);
        for (number, bucket) in (0..).zip(series.buckets()) {
            let begin = series.from().ticks() + number * series.step().ticks();
            let end = begin + series.step().ticks();
            let within = |pair: &[(Time, u64, usize)]| {
                u128::from((pair[1].0.ticks().min(end) - pair[0].0.ticks().max(begin)).max(0).unsigned_abs())
            };
            let busy: u128 =
                instants.windows(2).map(|pair| within(pair) * u128::from(4 - pair[0].1.min(4))).sum();
            let waiting: u128 = instants.windows(2).map(|pair| within(pair) * pair[0].2 as u128).sum();
            assert_eq!((bucket.busy, bucket.waiting), (busy, waiting), "bucket {number}");
            sum = (sum.0 + busy, sum.1 + waiting);
        }
        assert!(sum.0 > 0 && sum.1 > 0);
    }
}
