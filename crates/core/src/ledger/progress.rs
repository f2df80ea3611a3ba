//! The exact work of a job.

use crate::{Procs, Span, Time};

/// The share of the time in which the processors of a running job work for it: a number of time
/// slices out of all.
///
/// It is a fraction in lowest terms. It is 1 where processors are not sliced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    turns: u64,
    of: u64,
}

impl Pace {
    /// All of the time.
    pub const WHOLE: Pace = Pace { turns: 1, of: 1 };

    /// Returns the pace of `turns` time slices out of `of`. It is the whole time unless the
    /// fraction is proper.
    pub fn new(turns: u64, of: u64) -> Pace {
        if turns == 0 || turns >= of {
            return Pace::WHOLE;
        }
        let common = gcd(turns, of);
        Pace { turns: turns / common, of: of / common }
    }

    /// Returns the numerator: the time slices in which the job works, in lowest terms.
    pub const fn turns(self) -> u64 {
        self.turns
    }

    /// Returns the denominator: the number of all time slices, in lowest terms.
    pub const fn denominator(self) -> u64 {
        self.of
    }

    /// Returns the time at this pace for work that takes `span` at full pace, rounded up to the
    /// tick.
    pub fn time_for(self, span: Span) -> Span {
        ticks(
            u128::from(span.max(Span::ZERO).ticks().unsigned_abs()) * u128::from(self.of),
            u128::from(self.turns),
        )
    }

    const fn is_whole(self) -> bool {
        self.of == 1
    }
}

/// The exact work of a job in processor-ticks. A job with a pace of `turns` out of `of` time slices
/// does that share of full work.
///
/// A started processor-tick is kept as a fraction. Its denominator becomes the least common
/// multiple of the values of `of` so far. Nothing is rounded, however often slots open and close,
/// unless that multiple exceeds 2^64. Then the fraction is rounded down to the new `of`, by less
/// than one part of it.
///
/// If context switches are free, any numbers of slots up to 46 stay exact. Otherwise each `of` is
/// the number of slots times the ticks of a time slice with its switch. Factors in common with the
/// quantum are removed. For a quantum of 9 s and a switch of 1 s the factor is 10, and up to 42
/// slots stay exact. For 10 s and 0.333333 s the factor is 10 333 333, and up to 28 slots stay
/// exact. An end is rounded up to the tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Processor-ticks done by `at`.
    pub done: u128,
    /// The instant of `done`.
    pub at: Time,
    /// The processors that work since then.
    pub procs: Procs,
    /// The share of the time since then.
    pub pace: Pace,
    /// The parts of a started processor-tick that are done.
    pub rest: u64,
    /// The number of parts in a processor-tick, a multiple of the denominator of the pace.
    pub parts: u64,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress { done: 0, at: Time::ZERO, procs: Procs::ZERO, pace: Pace::WHOLE, rest: 0, parts: 1 }
    }
}

impl Progress {
    /// Returns the whole processor-ticks done by `now`.
    pub(super) fn done_by(&self, now: Time) -> u128 {
        self.exactly(now).0
    }

    /// Returns the work done by `now`: processor-ticks, and parts of the next one.
    fn exactly(&self, now: Time) -> (u128, u64) {
        let since = (now - self.at).max(Span::ZERO);
        let full = work(since, self.procs);
        if self.pace.is_whole() {
            return (self.done + full, self.rest);
        }
        let (turns, of) = (u128::from(self.pace.turns), u128::from(self.pace.of));
        // `turns` is less than `of`, which is below 2^64: no product overflows.
        let shared = full % of * turns;
        let parts = shared % of * u128::from(self.parts / self.pace.of) + u128::from(self.rest);
        let (carried, rest) = (parts / u128::from(self.parts), parts % u128::from(self.parts));
        let done = self.done + full / of * turns + shared / of + carried;
        // A remainder of a division by a u64 fits.
        (done, u64::try_from(rest).unwrap_or(0))
    }

    /// Returns the span that `procs` processors need to reach `wanted` processor-ticks in total. It
    /// starts at `now`, or at `at` if that is later.
    ///
    /// The span is rounded up to the tick. Without processors it is [`Span::MAX`].
    pub(super) fn left(&self, now: Time, wanted: u128, procs: Procs) -> Span {
        let (done, rest) = self.exactly(now);
        let missing = wanted.saturating_sub(done);
        if self.pace.is_whole() && rest == 0 {
            return span(missing, procs);
        }
        let each = u128::from(procs) * u128::from(self.pace.turns);
        let each = each.checked_mul(u128::from(self.parts / self.pace.of));
        let parts = missing.checked_mul(u128::from(self.parts));
        let parts = parts.map(|parts| parts.saturating_sub(u128::from(rest)));
        parts.zip(each).map_or(Span::MAX, |(parts, each)| ticks(parts, each))
    }

    /// Continues with `procs` processors from `now` on.
    pub(super) fn go_on(&mut self, now: Time, procs: Procs) {
        (self.done, self.rest) = self.exactly(now);
        (self.at, self.procs) = (now, procs);
    }

    /// Continues with the same processors at another pace.
    pub(super) fn go_on_at(&mut self, now: Time, pace: Pace) {
        // A job that is being swapped in keeps the end of its swap-in.
        self.go_on(now.max(self.at), self.procs);
        if pace.is_whole() && self.parts == 1 {
            self.pace = pace;
            return;
        }
        let common = gcd(self.rest, self.parts);
        let (rest, parts) = (self.rest / common, self.parts / common);
        (self.pace, self.rest, self.parts) = match (parts / gcd(parts, pace.of)).checked_mul(pace.of) {
            Some(all) => (pace, rest * (all / parts), all),
            None => (pace, rounded(rest, parts, pace.of), pace.of),
        };
    }

    /// Drops all work and returns its amount.
    pub(super) fn lose(&mut self) -> u128 {
        self.rest = 0;
        std::mem::take(&mut self.done)
    }
}

/// Returns the work of `procs` processors in this span, in processor-ticks.
pub const fn work(span: Span, procs: Procs) -> u128 {
    span.ticks().unsigned_abs() as u128 * procs.get() as u128
}

/// Returns the span that `procs` processors need for the work, rounded up to the tick. Without
/// processors it is [`Span::MAX`].
pub fn span(work: u128, procs: Procs) -> Span {
    ticks(work, u128::from(procs))
}

fn ticks(work: u128, each: u128) -> Span {
    if let (Ok(work), Ok(each @ 1..)) = (u64::try_from(work), u64::try_from(each)) {
        // A division of 64 bits is many times as fast.
        return i64::try_from(work.div_ceil(each)).map_or(Span::MAX, Span::from_ticks);
    }
    let ticks = work.checked_div(each).map(|_| work.div_ceil(each));
    ticks.and_then(|ticks| i64::try_from(ticks).ok()).map_or(Span::MAX, Span::from_ticks)
}

/// Returns the numerator of the fraction with the denominator `of`, rounded down.
fn rounded(rest: u64, parts: u64, of: u64) -> u64 {
    // Below `of`, because the fraction is below 1.
    u64::try_from(u128::from(rest) * u128::from(of) / u128::from(parts)).unwrap_or(0)
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ticks: i64) -> Time {
        Time::from_ticks(ticks)
    }

    #[test]
    fn a_third_of_the_time_three_times_is_all_of_it() {
        let mut progress = Progress { procs: Procs::ONE, ..Progress::default() };
        for now in 1..=300 {
            progress.go_on_at(at(now), Pace::new(1 + now.unsigned_abs() % 2, 3));
        }
        // One whole tick first, then two thirds 150 times, and one third 149 times.
        assert_eq!((progress.done, progress.rest, progress.parts), (150, 2, 3));
    }

    #[test]
    fn an_end_is_the_first_tick_by_which_the_work_is_done() {
        for (turns, of) in [(1, 3), (2, 7), (5, 6), (1, 1), (3, 1_000_003)] {
            let mut progress = Progress { procs: Procs::new(5), ..Progress::default() };
            progress.go_on_at(at(4), Pace::new(turns, of));
            progress.go_on_at(at(9), Pace::new(1, 2));
            progress.go_on_at(at(10), Pace::new(turns, of));
            for wanted in [progress.done + 1, 1000, 1001, 99_999] {
                let end = at(10) + progress.left(at(10), wanted, Procs::new(5));
                assert_eq!(
                    progress.left(at(11), wanted, Procs::new(5)),
                    (end - at(11)).max(Span::ZERO),
                    "{turns}/{of}"
                );
                assert!(progress.done_by(end) >= wanted, "{turns}/{of}");
                assert!(progress.done_by(end - Span::TICK) < wanted, "{turns}/{of}");
            }
        }
    }

    #[test]
    fn no_number_of_rows_up_to_46_loses_anything() {
        let mut progress = Progress { procs: Procs::ONE, ..Progress::default() };
        let mut now = 0;
        for of in 2..=46 {
            for turns in 1..of {
                now += 1;
                progress.go_on_at(at(now), Pace::new(turns, of));
            }
        }
        // The first tick is whole. Each further tick has the share of its pace, except the last
        // one.
        progress.go_on_at(at(now + 1), Pace::WHOLE);
        let halves: u64 = (2..=46).map(|of| of - 1).sum();
        assert_eq!(
            progress.done * 2 + u128::from(progress.rest * 2 / progress.parts),
            u128::from(halves + 2)
        );
    }

    #[test]
    fn with_a_costly_switch_no_number_of_rows_up_to_28_loses_anything() {
        let turn = 10_333_333;
        let mut progress = Progress { procs: Procs::ONE, ..Progress::default() };
        for (now, rows) in (1..).zip(2..=28) {
            progress.go_on_at(at(now * 10), Pace::new(10_000_000, turn * rows));
        }
        progress.go_on_at(at(280), Pace::WHOLE);
        // Ten whole ticks, and ten at each pace.
        let all = u128::from((2..=28).fold(1, |all: u64, rows| all / gcd(all, rows) * rows));
        let parts = u128::from(turn) * all;
        let done: u128 = (2..=28).map(|rows| 100_000_000 * (all / rows)).sum();
        assert_eq!(progress.done, 10 + done / parts);
        assert_eq!(u128::from(progress.rest) * parts, done % parts * u128::from(progress.parts));
    }

    #[test]
    fn beyond_that_it_is_rounded_down_and_no_further() {
        let mut progress = Progress { procs: Procs::ONE, ..Progress::default() };
        let primes = [1_000_003, 1_000_033, 1_000_037, 1_000_039, 1_000_081, 1_000_099];
        for (now, of) in (1..).zip(primes) {
            progress.go_on_at(at(now * 1000), Pace::new(of / 2, of));
        }
        let done = progress.done_by(at(6000));
        // 1000 whole ticks, and five times half of 1000, less a small rest.
        assert_eq!(done, 1000 + 5 * 1000 / 2 - 1);
        assert!(progress.rest < progress.parts);
    }
}
