//! The division of a host's processors among its jobs.

use miserly_core::Procs;

/// Returns the share of each job, as equal as the requests allow (Chiang and Vernon §2.5).
///
/// No job gets more than its request. A job with less than its request has at most one processor
/// less than any other job. The indivisible rest goes to the first jobs that want more, one
/// processor each. O(n log n).
pub(super) fn equally(procs: Procs, requested: &[Procs]) -> Vec<Procs> {
    let level = level(procs, requested);
    let mut shares: Vec<Procs> = requested.iter().map(|&requested| requested.min(level)).collect();
    let mut left = procs.saturating_sub(shares.iter().sum());
    for (share, requested) in shares.iter_mut().zip(requested) {
        if !left.is_zero() && *share < *requested {
            *share += Procs::ONE;
            left -= Procs::ONE;
        }
    }
    shares
}

/// Returns the highest level up to which the requests of all jobs can be filled.
///
/// The level rises until no request that is above the last level is below the next one. O(n) for each time, of which
/// there are few.
fn level(procs: Procs, requested: &[Procs]) -> Procs {
    let mut level = Procs::ZERO;
    loop {
        let (mut left, mut jobs, mut most) = (procs, 0, Procs::ZERO);
        for want in requested {
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
    pub(super) requested: Procs,
    pub(super) all: bool,
}

/// Returns the share of each job if some have priority, while each other job has a processor.
///
/// Jobs with and without priority divide their processors equally. There must be a processor for
/// each job. All processors up to the total request are used. O(n log n).
pub(super) fn divide(procs: Procs, wants: &[Want]) -> Vec<Procs> {
    let of = |all: bool| wants.iter().filter(move |want| want.all == all).map(|want| want.requested);
    let (first, rest): (Vec<Procs>, Vec<Procs>) = (of(true).collect(), of(false).collect());
    let first = equally(procs.saturating_sub(Procs::new(rest.len() as u64)), &first);
    let rest = equally(procs.saturating_sub(first.iter().sum()), &rest);
    let (mut first, mut rest) = (first.into_iter(), rest.into_iter());
    let shares = wants.iter().map(|want| if want.all { first.next() } else { rest.next() });
    shares.map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_equally(procs: u64, requested: &[u64], expected: &[u64]) {
        let requested: Vec<Procs> = requested.iter().copied().map(Procs::new).collect();
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
            let requested: Vec<Procs> = requested.into_iter().map(Procs::new).collect();
            assert_eq!(level(procs.into(), &requested), level_by_order(procs.into(), &requested));
        }
    }

    #[test]
    fn some_are_to_have_all() {
        let shares = |procs: u64, wants: &[(u64, bool)]| -> Vec<u64> {
            let want = |&(requested, all): &(u64, bool)| Want { requested: requested.into(), all };
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
