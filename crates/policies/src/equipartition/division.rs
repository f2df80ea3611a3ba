//! The division of a host's processors among its jobs.

use miserly_core::{Procs, Sizes};

/// Returns the share of each job, as equal as the requests allow (Chiang and Vernon §2.5).
///
/// No job gets more than its request, or less than its least number. A job with less than its request
/// has at most one processor less than any other job, unless that has its least number. The indivisible
/// rest goes to the first jobs that want more, one processor each. O(n log n), and O(n log m) for least
/// numbers up to m.
///
/// The least numbers together are at most `procs`.
pub(super) fn equally(procs: Procs, requested: &[Sizes]) -> Vec<Procs> {
    let level = if requested.iter().all(|sizes| sizes.least <= Procs::ONE) {
        level(procs, requested)
    } else {
        level_above_least(procs, requested)
    };
    let mut shares: Vec<Procs> = requested.iter().map(|sizes| at_level(*sizes, level)).collect();
    let mut left = procs.saturating_sub(shares.iter().sum());
    for (share, sizes) in shares.iter_mut().zip(requested) {
        if !left.is_zero() && *share < sizes.most && sizes.least <= level {
            *share += Procs::ONE;
            left -= Procs::ONE;
        }
    }
    shares
}

fn at_level(sizes: Sizes, level: Procs) -> Procs {
    sizes.most.min(sizes.least.max(level))
}

/// Returns the highest level at which the jobs together have at most `procs`, by halving the range.
fn level_above_least(procs: Procs, requested: &[Sizes]) -> Procs {
    let fits = |level: u64| {
        let sum = |sum: u64, sizes: &Sizes| sum.saturating_add(at_level(*sizes, level.into()).get());
        requested.iter().fold(0, sum) <= procs.get()
    };
    let most = requested.iter().map(|sizes| sizes.most).max().unwrap_or(Procs::ZERO);
    let (mut low, mut high) = (0, most.min(procs).get() + 1);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    low.into()
}

/// Returns the highest level up to which the requests of all jobs can be filled.
///
/// The level rises until no request that is above the last level is below the next one. O(n) for each time, of which
/// there are few.
fn level(procs: Procs, requested: &[Sizes]) -> Procs {
    let mut level = Procs::ZERO;
    loop {
        let (mut left, mut jobs, mut most) = (procs, 0, Procs::ZERO);
        for Sizes { most: want, .. } in requested {
            most = most.max(*want);
            if *want <= level {
                left -= *want;
            } else {
                jobs += 1;
            }
        }
        if jobs == 0 {
            return most;
        }
        if left / jobs == level {
            return level;
        }
        level = left / jobs;
    }
}

/// The request of a job, and whether it has priority over the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want {
    pub(super) requested: Sizes,
    pub(super) all: bool,
}

/// Returns the share of each job if some have priority, while each other job has its least number.
///
/// Jobs with and without priority divide their processors equally. There must be the least number for
/// each job. All processors up to the total request are used. O(n log n).
pub(super) fn divide(procs: Procs, wants: &[Want]) -> Vec<Procs> {
    let of = |all: bool| wants.iter().filter(move |want| want.all == all).map(|want| want.requested);
    let (first, rest): (Vec<Sizes>, Vec<Sizes>) = (of(true).collect(), of(false).collect());
    let least = rest.iter().map(|sizes| sizes.least).sum();
    let first = equally(procs.saturating_sub(least), &first);
    let rest = equally(procs.saturating_sub(first.iter().sum()), &rest);
    let (mut first, mut rest) = (first.into_iter(), rest.into_iter());
    let shares = wants.iter().map(|want| if want.all { first.next() } else { rest.next() });
    shares.map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up_to(most: u64) -> Sizes {
        between(1, most)
    }

    fn between(least: u64, most: u64) -> Sizes {
        Sizes { least: least.into(), most: most.into() }
    }

    #[track_caller]
    fn check_equally(procs: u64, requested: &[u64], expected: &[u64]) {
        let requested: Vec<Sizes> = requested.iter().copied().map(up_to).collect();
        let shares: Vec<u64> = equally(procs.into(), &requested).into_iter().map(Procs::get).collect();
        assert_eq!(shares, expected);
    }

    #[test]
    fn as_equal_as_the_requests_allow() {
        check_equally(8, &[8, 8], &[4, 4]);
        check_equally(8, &[1, 8, 8], &[1, 4, 3]);
        check_equally(8, &[8, 2, 8, 1], &[3, 2, 2, 1]);
        check_equally(8, &[2, 3], &[2, 3]);
        check_equally(3, &[5, 5, 5], &[1, 1, 1]);
        check_equally(3, &[], &[]);
    }

    /// Returns the level from the requests in rising order.
    fn level_by_order(procs: Procs, requested: &[Procs]) -> Procs {
        let mut rising = requested.to_vec();
        rising.sort_unstable();
        let mut left = procs;
        for (want, jobs) in rising.iter().zip((1..=rising.len() as u64).rev()) {
            if *want > left / jobs {
                return left / jobs;
            }
            left -= *want;
        }
        rising.last().copied().unwrap_or(Procs::ZERO)
    }

    proptest::proptest! {
        #[test]
        fn the_level_is_that_of_the_order(
            procs in 0u64..200,
            requested in proptest::collection::vec(1u64..60, 0..30),
        ) {
            let sizes: Vec<Sizes> = requested.iter().copied().map(up_to).collect();
            let requested: Vec<Procs> = requested.into_iter().map(Procs::new).collect();
            assert_eq!(level(procs.into(), &sizes), level_by_order(procs.into(), &requested));
        }

        /// One processor after the other goes to the job with the fewest beyond its least number.
        #[test]
        fn shares_above_least_numbers_are_those_that_are_handed_out(
            more in 0u64..60,
            sizes in proptest::collection::vec((1u64..9, 0u64..20), 0..12),
        ) {
            let sizes: Vec<Sizes> = sizes.into_iter().map(|(least, more)| between(least, least + more)).collect();
            let mut shares: Vec<Procs> = sizes.iter().map(|sizes| sizes.least).collect();
            let procs = shares.iter().sum::<Procs>() + more.into();
            for _ in 0..more {
                let open = shares.iter_mut().zip(&sizes).filter(|(share, sizes)| **share < sizes.most);
                if let Some((share, _)) = open.min_by_key(|(share, _)| **share) {
                    *share += Procs::ONE;
                }
            }
            assert_eq!(equally(procs, &sizes), shares);
        }
    }

    #[test]
    fn no_job_gets_less_than_its_least_number() {
        let shares = |procs: u64, sizes: &[(u64, u64)]| -> Vec<u64> {
            let sizes: Vec<Sizes> = sizes.iter().map(|&(least, most)| between(least, most)).collect();
            equally(procs.into(), &sizes).into_iter().map(Procs::get).collect()
        };
        assert_eq!(shares(8, &[(1, 8), (5, 8)]), [3, 5]);
        assert_eq!(shares(9, &[(1, 8), (5, 8), (2, 2)]), [2, 5, 2]);
        assert_eq!(shares(12, &[(4, 4), (1, 8), (1, 8)]), [4, 4, 4]);
        assert_eq!(shares(13, &[(4, 4), (1, 8), (1, 8)]), [4, 5, 4]);
        assert_eq!(shares(6, &[(3, 8), (3, 8)]), [3, 3]);
    }

    #[test]
    fn some_are_to_have_all() {
        let shares = |procs: u64, wants: &[(u64, bool)]| -> Vec<u64> {
            let want = |&(requested, all): &(u64, bool)| Want { requested: up_to(requested), all };
            let wants: Vec<Want> = wants.iter().map(want).collect();
            divide(procs.into(), &wants).into_iter().map(Procs::get).collect()
        };
        assert_eq!(shares(8, &[(8, false), (6, true), (8, false)]), [1, 6, 1]);
        // There is one processor for each other job.
        assert_eq!(shares(8, &[(8, false), (8, true), (8, false)]), [1, 6, 1]);
        assert_eq!(shares(8, &[(2, true), (8, false), (8, false)]), [2, 3, 3]);
        // Processors that the jobs with priority have not taken are divided equally too.
        assert_eq!(shares(8, &[(8, true), (5, true), (8, false)]), [4, 3, 1]);
        assert_eq!(shares(8, &[(8, true)]), [8]);
    }
}
