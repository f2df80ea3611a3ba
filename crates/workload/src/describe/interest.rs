//! "Interesting" sizes: whether jobs have them more often than their neighbours (Feitelson 1996, §3.1 and Table 2).

use super::by_size::OfSize;
use super::spread::Share;

/// How many sizes of no kind count as the neighbours of a size, on either side.
const NEIGHBOURS: usize = 2;

/// Larger sizes are of no kind, so that a log that says something absurd costs no more than others.
const SIZE_MAX: u64 = 1 << 20;

/// Why a size is interesting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// A power of two, from 2.
    PowerOfTwo,
    /// A square, from 4.
    Square,
    /// A multiple of ten.
    MultipleOfTen,
    /// The machine's size.
    FullMachine,
    /// One more than a power of two, a square or a multiple of ten, from 5: a master and its workers.
    PlusOne,
}

impl Interest {
    /// Every one, in the order of Table 2.
    pub const ALL: [Interest; 5] = [
        Interest::PowerOfTwo,
        Interest::Square,
        Interest::MultipleOfTen,
        Interest::FullMachine,
        Interest::PlusOne,
    ];

    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Interest::PowerOfTwo => "powers_of_two",
            Interest::Square => "squares",
            Interest::MultipleOfTen => "multiples_of_ten",
            Interest::FullMachine => "full_machine",
            Interest::PlusOne => "plus_one",
        }
    }

    /// Whether a size has it, on a machine of so many processors, if that is known.
    pub fn has(self, size: u64, machine: Option<u64>) -> bool {
        let round = |kind: Interest| kind.has(size - 1, machine);
        match self {
            Interest::PowerOfTwo => size >= 2 && size.is_power_of_two(),
            Interest::Square => size >= 4 && size.isqrt().pow(2) == size,
            Interest::MultipleOfTen => size > 0 && size.is_multiple_of(10),
            Interest::FullMachine => size >= 2 && machine == Some(size),
            Interest::PlusOne => size >= 5 && Interest::ALL[..3].iter().any(|&kind| round(kind)),
        }
    }
}

/// How popular the sizes of one kind are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interesting {
    /// Their kind.
    pub interest: Interest,
    /// All sizes of the kind.
    pub all: Popularity,
    /// The sizes that are of this kind and no other: what is seen of it that no other kind explains.
    pub alone: Popularity,
}

/// How popular some sizes are among the parallel jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Popularity {
    /// Jobs of these sizes, out of all parallel jobs.
    pub jobs: Share,
    /// How many there would be, were each of these sizes as common as its neighbours: the nearest two sizes on either
    /// side that are of no kind at all, on the machine. The mean of these, for each of the sizes; their sum.
    pub expected: f64,
    /// The share of the parallel jobs' processor-seconds that these have; `None` where there are none.
    pub work: Option<f64>,
}

/// Whether sizes are popular, as Table 2 tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Less than twice as common as their neighbours.
    No,
    /// At least [`SOME`] times as common.
    Some,
    /// At least [`YES`] times as common.
    Yes,
}

/// How many times as common as their neighbours sizes are for "some". The paper judges by eye; the limit is decided here.
pub const SOME: f64 = 2.0;

/// How many times as common as their neighbours sizes are for "yes". Decided here.
pub const YES: f64 = 4.0;

impl Popularity {
    /// How many times as many jobs there are as would be expected; `None` if none would be.
    pub fn ratio(&self) -> Option<f64> {
        (self.expected > 0.0).then(|| self.jobs.count as f64 / self.expected)
    }

    /// Sizes that have jobs where no neighbour has any are popular.
    pub fn verdict(&self) -> Verdict {
        match self.ratio() {
            Some(ratio) if ratio >= YES => Verdict::Yes,
            Some(ratio) if ratio >= SOME => Verdict::Some,
            None if self.jobs.count > 0 => Verdict::Yes,
            _ => Verdict::No,
        }
    }
}

impl Interesting {
    /// How popular sizes of the kind are.
    pub fn verdict(&self) -> Verdict {
        self.all.verdict()
    }

    /// Whether that is also what the sizes show that are of this kind alone. Where they do not, the kind may be popular
    /// for what it shares with another: the squares 4, 16 and 64 of a machine that gives powers of two. Table 2 has such
    /// verdicts in brackets.
    pub fn stands_alone(&self) -> bool {
        self.alone.verdict() >= self.verdict()
    }
}

/// The kinds, judged by the jobs of each size.
pub(super) fn interesting(sizes: &[OfSize], machine: Option<u32>) -> Vec<Interesting> {
    let counts = Counts::new(sizes, machine.map(u64::from));
    let judged = |interest| Interesting {
        interest,
        all: counts.popularity(sizes, |size| counts.has(interest, size)),
        alone: counts.popularity(sizes, |size| counts.kinds(size) == 1 && counts.has(interest, size)),
    };
    let known = |interest: &Interest| *interest != Interest::FullMachine || machine.is_some();
    Interest::ALL.into_iter().filter(known).map(judged).collect()
}

/// The jobs of each size up to the machine's.
struct Counts {
    machine: Option<u64>,
    /// By size, from 0.
    jobs: Vec<u64>,
    /// Of how many kinds each size is.
    kinds: Vec<usize>,
}

impl Counts {
    fn new(sizes: &[OfSize], machine: Option<u64>) -> Counts {
        let largest = sizes.iter().map(|of| of.procs).max().unwrap_or(0);
        let most = machine.unwrap_or(largest).min(SIZE_MAX);
        let mut jobs = vec![0; usize::try_from(most).unwrap_or(0) + 1];
        for of in sizes {
            if let Some(count) = usize::try_from(of.procs).ok().and_then(|size| jobs.get_mut(size)) {
                *count = of.jobs;
            }
        }
        let kinds = |size| Interest::ALL.iter().filter(|interest| interest.has(size, machine)).count();
        let kinds = (0..jobs.len() as u64).map(kinds).collect();
        Counts { machine, jobs, kinds }
    }

    fn sizes(&self) -> std::ops::Range<u64> {
        2..self.jobs.len() as u64
    }

    fn jobs(&self, size: u64) -> u64 {
        usize::try_from(size).ok().and_then(|size| self.jobs.get(size)).copied().unwrap_or(0)
    }

    fn has(&self, interest: Interest, size: u64) -> bool {
        self.sizes().contains(&size) && interest.has(size, self.machine)
    }

    fn kinds(&self, size: u64) -> usize {
        usize::try_from(size).ok().and_then(|size| self.kinds.get(size)).copied().unwrap_or(0)
    }

    /// The mean of the neighbours.
    fn expected(&self, size: u64) -> f64 {
        let plain = |size: &u64| self.kinds(*size) == 0;
        let below = (2..size).rev().filter(plain).take(NEIGHBOURS);
        let above = (size + 1..self.sizes().end).filter(plain).take(NEIGHBOURS);
        let (jobs, sizes) =
            below.chain(above).fold((0, 0_u32), |(jobs, sizes), near| (jobs + self.jobs(near), sizes + 1));
        jobs as f64 / f64::from(sizes.max(1))
    }

    fn popularity(&self, sizes: &[OfSize], meets: impl Fn(u64) -> bool) -> Popularity {
        let parallel = || sizes.iter().filter(|of| of.is_parallel());
        let these = || parallel().filter(|of| meets(of.procs));
        let work: u128 = parallel().map(OfSize::work).sum();
        Popularity {
            jobs: Share { count: these().map(|of| of.jobs).sum(), of: parallel().map(|of| of.jobs).sum() },
            expected: self.sizes().filter(|&size| meets(size)).map(|size| self.expected(size)).sum(),
            work: (work > 0).then(|| these().map(OfSize::work).sum::<u128>() as f64 / work as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sizes(jobs: &[(u64, u64)]) -> Vec<OfSize> {
        let of = |&(procs, jobs)| OfSize { procs, jobs, timed: jobs, seconds: 10 * u128::from(jobs) };
        jobs.iter().map(of).collect()
    }

    #[track_caller]
    fn judged(jobs: &[(u64, u64)], machine: Option<u32>, interest: Interest) -> Interesting {
        let all = interesting(&sizes(jobs), machine);
        *all.iter().find(|of| of.interest == interest).unwrap()
    }

    #[test]
    fn which_sizes_are_of_which_kind() {
        let of = |interest: Interest| -> Vec<u64> {
            (0..=40).filter(|&size| interest.has(size, Some(36))).collect()
        };
        assert_eq!(of(Interest::PowerOfTwo), [2, 4, 8, 16, 32]);
        assert_eq!(of(Interest::Square), [4, 9, 16, 25, 36]);
        assert_eq!(of(Interest::MultipleOfTen), [10, 20, 30, 40]);
        assert_eq!(of(Interest::FullMachine), [36]);
        assert_eq!(of(Interest::PlusOne), [5, 9, 10, 11, 17, 21, 26, 31, 33, 37]);
    }

    #[test]
    fn all_sizes_alike_are_no_kind() {
        let alike: Vec<_> = (1..=128).map(|size| (size, 7)).collect();
        for of in interesting(&sizes(&alike), Some(128)) {
            assert!((of.all.ratio().unwrap() - 1.0).abs() < 1e-12, "{of:?}");
            assert_eq!((of.verdict(), of.stands_alone()), (Verdict::No, true));
        }
    }

    #[test]
    fn a_machine_of_powers_of_two_has_squares_in_brackets() {
        let powers: Vec<_> = (0..=7).map(|power| (1 << power, 100)).collect();
        let verdict = |interest| {
            let of = judged(&powers, Some(128), interest);
            (of.verdict(), of.stands_alone())
        };
        assert_eq!(verdict(Interest::PowerOfTwo), (Verdict::Yes, true));
        assert_eq!(verdict(Interest::Square), (Verdict::Yes, false));
        assert_eq!(verdict(Interest::MultipleOfTen), (Verdict::No, true));
        assert_eq!(verdict(Interest::FullMachine), (Verdict::Yes, false));
        assert_eq!(verdict(Interest::PlusOne), (Verdict::No, true));
    }

    #[test]
    fn neighbours_are_the_nearest_two_of_no_kind() {
        // Of 16: 14 and 15, 18 and 19; 17 is one more than a square.
        let jobs = [(1, 99), (14, 1), (15, 2), (16, 30), (17, 50), (18, 3), (19, 6), (22, 99)];
        let counts = Counts::new(&sizes(&jobs), Some(24));
        assert!((counts.expected(16) - 3.0).abs() < 1e-12);
        // Of the whole machine, those below.
        assert!((counts.expected(24) - 49.5).abs() < 1e-12);
        let plus_one = judged(&jobs, Some(24), Interest::PlusOne);
        assert_eq!(plus_one.all.jobs, Share { count: 50, of: 191 });
    }

    #[test]
    fn without_a_machine_there_is_no_whole_one_and_absurd_sizes_are_no_kind() {
        let all = interesting(&sizes(&[(2, 1), (1 << 60, 1)]), None);
        assert!(all.iter().all(|of| of.interest != Interest::FullMachine));
        assert_eq!(all[0].all.jobs, Share { count: 1, of: 2 });
        assert!(interesting(&[], None).iter().all(|of| of.verdict() == Verdict::No));
    }

    proptest! {
        #[test]
        fn as_a_list_of_jobs_has_it(jobs in prop::collection::vec(1..60_u64, 0..300), machine in 2..60_u32) {
            let mut counted: Vec<(u64, u64)> = Vec::new();
            for size in 1..60 {
                let alike = jobs.iter().filter(|&&job| job == size).count() as u64;
                counted.extend((alike > 0).then_some((size, alike)));
            }
            let most = u64::from(machine);
            let kinds = |size: u64| Interest::ALL.into_iter().filter(move |kind| kind.has(size, Some(most)));
            let plain: Vec<u64> = (2..=most).filter(|&size| kinds(size).next().is_none()).collect();
            for of in interesting(&sizes(&counted), Some(machine)) {
                let these: Vec<u64> = (2..=most).filter(|&size| of.interest.has(size, Some(most))).collect();
                let count = jobs.iter().filter(|job| these.contains(job)).count() as u64;
                prop_assert_eq!(of.all.jobs.count, count);
                let mut expected = 0.0;
                for size in these {
                    let at = plain.partition_point(|&other| other < size);
                    let near = &plain[at.saturating_sub(2)..(at + 2).min(plain.len())];
                    let beside = jobs.iter().filter(|job| near.contains(job)).count();
                    expected += beside as f64 / near.len().max(1) as f64;
                }
                prop_assert!((of.all.expected - expected).abs() < 1e-9);
            }
        }
    }
}
