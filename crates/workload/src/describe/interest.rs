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
mod tests;
