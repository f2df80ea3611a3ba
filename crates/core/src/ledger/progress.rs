//! The work that a job has done, exactly.

use crate::{Procs, Span, Time};

/// The share of the time in which the processors of a running job work for it: its turns of all turns.
///
/// Whole where processors are not sliced. A fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    turns: u64,
    of: u64,
}

impl Pace {
    /// All of the time.
    pub const WHOLE: Pace = Pace { turns: 1, of: 1 };

    /// So many turns of so many; all of the time, where that is no proper fraction.
    pub fn new(turns: u64, of: u64) -> Pace {
        if turns == 0 || turns >= of {
            return Pace::WHOLE;
        }
        let common = gcd(turns, of);
        Pace { turns: turns / common, of: of / common }
    }

    /// The turns in which the job works, in lowest terms.
    pub const fn turns(self) -> u64 {
        self.turns
    }

    /// Of how many.
    pub const fn of(self) -> u64 {
        self.of
    }

    /// How long it takes at this pace to do what takes so long in all of the time; rounded up to the tick.
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

/// The work that a job has done, exactly: processors x ticks, of which a job that has `turns` of `of` rows does that share.
///
/// What is done of the next processor-tick is kept as a fraction, whose denominator becomes the least common multiple of the `of`s that
/// the job has lived through. So nothing is rounded, however often rows open and close, unless that multiple passes 2^64: then the fraction
/// is rounded down to the new `of`, by less than one part of it. If switching costs nothing, no numbers of rows up to 46 lead there. Else
/// the `of`s are the rows times the ticks of a turn, less what these have in common with the quantum: times 10 for a quantum of 9 s and a
/// switch of 1 s, where none up to 42 do; times 10 333 333 for 10 s and 0.333333 s, where none up to 28 do. An end is rounded up to the tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Processor-ticks done by `at`.
    pub done: u128,
    /// As of when.
    pub at: Time,
    /// The processors that work on since then.
    pub procs: Procs,
    /// In which share of the time.
    pub pace: Pace,
    /// So many parts of a processor-tick are done besides.
    pub rest: u64,
    /// Into how many parts a processor-tick is cut; a multiple of the pace's.
    pub parts: u64,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress { done: 0, at: Time::ZERO, procs: Procs::ZERO, pace: Pace::WHOLE, rest: 0, parts: 1 }
    }
}

impl Progress {
    /// Whole processor-ticks done by then.
    pub(super) fn by(&self, now: Time) -> u128 {
        self.exactly(now).0
    }

    /// What is done by then: processor-ticks, and parts of one.
    fn exactly(&self, now: Time) -> (u128, u64) {
        let since = (now - self.at).max(Span::ZERO);
        let full = work(since, self.procs);
        if self.pace.is_whole() {
            return (self.done + full, self.rest);
        }
        let (turns, of) = (u128::from(self.pace.turns), u128::from(self.pace.of));
        // Turns are fewer than `of`, which is below 2^64: no product overflows.
        let shared = full % of * turns;
        let parts = shared % of * u128::from(self.parts / self.pace.of) + u128::from(self.rest);
        let (carried, rest) = (parts / u128::from(self.parts), parts % u128::from(self.parts));
        let done = self.done + full / of * turns + shared / of + carried;
        // A remainder of a division by a u64.
        (done, u64::try_from(rest).unwrap_or(0))
    }

    /// How long it takes so many processors from `now` on, or from `at` if that is later, until so much is done in all: to the tick at
    /// which it is; for ever, if there are none.
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

    /// Goes on with so many processors, from then on if that is later than what was done.
    pub(super) fn go_on(&mut self, now: Time, procs: Procs) {
        (self.done, self.rest) = self.exactly(now);
        (self.at, self.procs) = (now, procs);
    }

    /// Goes on with the same processors at another pace.
    pub(super) fn go_on_at(&mut self, now: Time, pace: Pace) {
        // One that is still read back goes on when it would have.
        self.go_on(now.max(self.at), self.procs);
        let common = gcd(self.rest, self.parts);
        let (rest, parts) = (self.rest / common, self.parts / common);
        (self.pace, self.rest, self.parts) = match (parts / gcd(parts, pace.of)).checked_mul(pace.of) {
            Some(all) => (pace, rest * (all / parts), all),
            None => (pace, rounded(rest, parts, pace.of), pace.of),
        };
    }

    /// All that was done is lost; returns how much.
    pub(super) fn lose(&mut self) -> u128 {
        self.rest = 0;
        std::mem::take(&mut self.done)
    }
}

/// So much is done in this time, processor-ticks.
pub const fn work(span: Span, procs: Procs) -> u128 {
    span.ticks().unsigned_abs() as u128 * procs.get() as u128
}

/// In this time so many processors do the work, to the tick at which it is done; for ever, if there is none.
pub fn span(work: u128, procs: Procs) -> Span {
    ticks(work, u128::from(procs))
}

fn ticks(work: u128, each: u128) -> Span {
    let ticks = work.checked_div(each).map(|_| work.div_ceil(each));
    ticks.and_then(|ticks| i64::try_from(ticks).ok()).map_or(Span::MAX, Span::from_ticks)
}

/// The fraction with another denominator, rounded down.
fn rounded(rest: u64, parts: u64, of: u64) -> u64 {
    // Below `of`, since the fraction is below 1.
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
        // A whole tick first; then two thirds, 150 times, and one third, 149 times.
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
                assert!(progress.by(end) >= wanted, "{turns}/{of}");
                assert!(progress.by(end - Span::TICK) < wanted, "{turns}/{of}");
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
        // In one tick each: turns of `of`, but for the last; and the first tick was whole.
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
        // Ten whole ticks, and ten at each of the paces.
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
        let done = progress.by(at(6000));
        // A whole second of ticks, and five halves of one, less a little.
        assert_eq!(done, 1000 + 5 * 1000 / 2 - 1);
        assert!(progress.rest < progress.parts);
    }
}
