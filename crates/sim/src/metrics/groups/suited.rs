//! Ranges of processors, of runtimes and of time limits that suit a log.

use miserly_core::{Procs, Span};

use super::grouping::Grouping;
use super::own::OwnRanges;

/// The most ranges of processors.
const MOST_WIDTHS: usize = 5;

/// The most ranges of runtimes.
const MOST_LENGTHS: usize = 4;

/// The most ranges of time limits.
const MOST_LIMITS: usize = 6;

/// A range with fewer than one job in so many is joined with a neighbour.
const LEAST: u64 = 50;

/// The bounds of durations that people read easily, in seconds.
const READABLE: [i64; 18] = [
    10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400, 172_800, 345_600,
    604_800, 1_209_600, 2_592_000,
];

/// Counts the jobs of a log, and derives ranges that have a like part of the jobs and of their work.
///
/// The bounds of processors are powers of two. Those of runtimes and time limits are readable durations. They depend on the
/// jobs alone.
#[derive(Clone, Debug)]
pub struct SuitedRanges {
    /// The jobs up to 2^n processors, behind those up to 2^(n-1).
    widths: [Part; u32::BITS as usize],
    /// The jobs up to each readable duration; the last ones are longer than all.
    lengths: [Part; READABLE.len() + 1],
    /// The same by time limits.
    limits: [Part; READABLE.len() + 1],
}

/// A part of the jobs, and its work in processor-seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    jobs: u64,
    work: u128,
}

impl Part {
    fn add(&mut self, other: Part) {
        self.jobs += other.jobs;
        self.work += other.work;
    }

    /// Returns the part of the jobs plus the part of the work, in a unit that depends on all.
    fn weight(self, all: Part) -> u128 {
        u128::from(self.jobs) * all.work.max(1) + self.work * u128::from(all.jobs)
    }
}

impl Default for SuitedRanges {
    fn default() -> SuitedRanges {
        let durations = [Part::default(); READABLE.len() + 1];
        let widths = [Part::default(); u32::BITS as usize];
        SuitedRanges { widths, lengths: durations, limits: durations }
    }
}

impl SuitedRanges {
    /// Counts a job with its requested processors, its actual runtime and its time limit.
    pub fn add(&mut self, procs: Procs, runtime: Span, limit: Span) {
        let work = u128::from(procs.get()) * u128::from(runtime.secs().unsigned_abs());
        let part = Part { jobs: 1, work };
        let power = procs.get().checked_next_power_of_two().map_or(u32::MAX, u64::trailing_zeros);
        self.widths[(power as usize).min(self.widths.len() - 1)].add(part);
        self.lengths[place(runtime)].add(part);
        self.limits[place(limit)].add(part);
    }

    /// Returns the grouping by time limits.
    pub fn time_limits(&self) -> Grouping {
        Grouping::Own(OwnRanges::of_time_limits(&joined(durations(&self.limits), MOST_LIMITS)))
    }

    /// Returns the grouping by runtimes, then by processors.
    pub fn grouping(&self) -> Grouping {
        let widths = (0..).zip(self.widths).map(|(power, part)| (1 << power, part));
        let lengths = joined(durations(&self.lengths), MOST_LENGTHS);
        Grouping::Own(OwnRanges::of_runtimes_and_procs(&lengths, &joined(widths.collect(), MOST_WIDTHS)))
    }
}

/// Returns the place of a duration among the readable ones: the first that is not shorter.
fn place(span: Span) -> usize {
    readable().take_while(|bound| *bound < span).count()
}

/// Returns the parts with their upper bounds in ticks.
fn durations(parts: &[Part; READABLE.len() + 1]) -> Vec<(u64, Part)> {
    let ticks = || readable().map(|bound| bound.ticks().unsigned_abs());
    ticks().chain(ticks().last()).zip(parts.iter().copied()).collect()
}

fn readable() -> impl Iterator<Item = Span> {
    READABLE.into_iter().filter_map(Span::from_secs)
}

/// Joins light ranges, and those with few jobs, until at most `most` are left, and returns the bounds between those.
///
/// A range is its upper bound and its part. A single range that is left keeps its first bound.
fn joined(mut ranges: Vec<(u64, Part)>, most: usize) -> Vec<u64> {
    let first = ranges.first().map(|range| range.0);
    ranges.retain(|(_, part)| part.jobs > 0);
    let only = ranges.first().map(|range| range.0).or(first);
    let mut all = Part::default();
    for (_, part) in &ranges {
        all.add(*part);
    }
    let weight = |ranges: &[(u64, Part)], at: usize| ranges.get(at).map(|(_, part)| part.weight(all));
    while ranges.len() > 1 {
        let places = 0..ranges.len();
        let few = places.clone().find(|at| ranges[*at].1.jobs < all.jobs.div_ceil(LEAST));
        let light = places.min_by_key(|at| weight(&ranges, *at)).filter(|_| ranges.len() > most);
        let Some(at) = few.or(light) else { break };
        let before = at.checked_sub(1).filter(|before| {
            let after = weight(&ranges, at + 1);
            after.is_none() || weight(&ranges, *before) <= after
        });
        let first = before.unwrap_or(at);
        let (_, part) = ranges.remove(first);
        ranges[first].1.add(part);
    }
    ranges.pop();
    if ranges.is_empty() {
        only.into_iter().collect()
    } else {
        ranges.into_iter().map(|range| range.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn suited(jobs: impl IntoIterator<Item = (u64, i64)>) -> String {
        let mut ranges = SuitedRanges::default();
        for (procs, seconds) in jobs {
            ranges.add(Procs::new(procs), Span::from_secs(seconds).unwrap(), Span::ZERO);
        }
        ranges.grouping().to_string()
    }

    /// Returns the ranges of jobs of one processor and a second each, with these time limits in seconds.
    fn limits(limits: impl IntoIterator<Item = i64>) -> String {
        let mut ranges = SuitedRanges::default();
        for limit in limits {
            ranges.add(Procs::new(1), Span::from_secs(1).unwrap(), Span::from_secs(limit).unwrap());
        }
        ranges.time_limits().to_string()
    }

    #[test]
    fn time_limits_of_users_are_ranges() {
        let hours = |hours: i64| std::iter::repeat_n(3600 * hours, 20);
        assert_eq!(limits(hours(1).chain(hours(4)).chain(hours(24))), "time-limit:1h,4h");
        // One job of a week is no range of its own.
        assert_eq!(limits(hours(1).chain(hours(4)).chain(hours(24)).chain([604_800])), "time-limit:1h,4h");
        assert_eq!(limits([]), "time-limit:10s");
    }

    #[test]
    fn ranges_follow_the_jobs() {
        // Eight jobs of each power of two up to 1 024, each as long as it is wide, in minutes. Most work is in the longest.
        let wide = (0..88).map(|job| 1 << (job % 11)).map(|procs: u64| (procs, 60 * procs.cast_signed()));
        assert_eq!(suited(wide), "runtime:10m,8h,12h+procs:8,32,256,512");
        // Most jobs are serial, and the few wide ones are told apart from them.
        let serial = (0..90).map(|job| (1, 5 + job)).chain((0..10).map(|job| (100 + job, 100_000)));
        assert_eq!(suited(serial), "runtime:30s,1m,2m+procs:1");
    }

    #[test]
    fn few_jobs_have_no_range_of_their_own() {
        let jobs = |wide| (0..1_000).map(|_| (1, 60)).chain((0..wide).map(|_| (2_000, 60)));
        assert_eq!(suited(jobs(10)), "runtime:1m+procs:1");
        assert_eq!(suited(jobs(30)), "runtime:1m+procs:1");
        assert_eq!(suited([(3, 86_400 * 400)]), "runtime:30d+procs:4");
    }

    proptest! {
        #[test]
        fn the_ranges_hold_for_every_log(jobs in prop::collection::vec((1..5_000_000_000_u64, 0..90_000_000_i64), 0..200)) {
            let text = suited(jobs.iter().copied());
            prop_assert_eq!(text.parse::<Grouping>().map(|grouping| grouping.to_string()), Ok(text.clone()));
            prop_assert!(text.matches(',').count() <= MOST_WIDTHS + MOST_LENGTHS - 4, "{}", text);
        }
    }
}
