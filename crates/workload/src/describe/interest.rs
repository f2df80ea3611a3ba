//! "Interesting" sizes: their frequency compared with neighbouring sizes (Feitelson 1996, §3.1 and
//! Table 2).

use miserly_core::Procs;

use super::by_size::OfSize;
use super::spread::Proportion;
use miserly_core::named_enum;

/// Number of neighbours without a kind on either side of a size.
const NEIGHBOURS: usize = 2;

/// Limit of interesting sizes, which bounds the cost of logs with absurd sizes.
const SIZE_MAX: u64 = 1 << 20;

named_enum! {
    /// A kind of interesting size, in the order of Table 2.
    pub enum Interest {
        /// A power of two, from 2.
        PowerOfTwo "powers_of_two",
        /// A square, from 4.
        Square "squares",
        /// A multiple of ten.
        MultipleOfTen "multiples_of_ten",
        /// The machine's size.
        FullMachine "full_machine",
        /// One more than a power of two, a square or a multiple of ten, from 5: a master and its
        /// workers.
        PlusOne "plus_one",
    }
}

impl Interest {
    /// Returns whether a size is of this kind, on a machine of this size if known.
    pub fn has(self, size: Procs, machine: Option<Procs>) -> bool {
        let (size, machine) = (size.get(), machine.map(Procs::get));
        self.has_number(size, machine)
    }

    fn has_number(self, size: u64, machine: Option<u64>) -> bool {
        let round = |kind: Interest| kind.has_number(size - 1, machine);
        match self {
            Interest::PowerOfTwo => size >= 2 && size.is_power_of_two(),
            Interest::Square => size >= 4 && size.isqrt().pow(2) == size,
            Interest::MultipleOfTen => size > 0 && size.is_multiple_of(10),
            Interest::FullMachine => size >= 2 && machine == Some(size),
            Interest::PlusOne => size >= 5 && Interest::ALL[..3].iter().any(|&kind| round(kind)),
        }
    }
}

/// The popularity of the sizes of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interesting {
    /// Kind.
    pub interest: Interest,
    /// All sizes of the kind.
    pub all: Popularity,
    /// Sizes of this kind alone, which no other kind explains.
    pub alone: Popularity,
}

/// The popularity of some sizes among the parallel jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Popularity {
    /// Jobs of these sizes, out of all parallel jobs.
    pub jobs: Proportion,
    /// Expected number of jobs if each of these sizes were as common as its neighbours.
    ///
    /// The neighbours are the nearest two sizes without a kind on either side. The value is the sum
    /// over the sizes of the mean of their neighbours.
    pub expected: f64,
    /// Share of the parallel jobs' processor-seconds; `None` if there are none.
    pub work: Option<f64>,
}

/// The popularity of sizes in the notation of Table 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Less than [`SOME`] times as common as the neighbours.
    No,
    /// At least [`SOME`] times as common.
    Some,
    /// At least [`YES`] times as common.
    Yes,
}

/// Ratio to the neighbours for "some". The paper judges by eye; the limit is decided here.
pub const SOME: f64 = 2.0;

/// Ratio to the neighbours for "yes". Decided here.
pub const YES: f64 = 4.0;

impl Popularity {
    /// Returns the ratio of actual to expected jobs, or `None` if none are expected.
    pub fn ratio(&self) -> Option<f64> {
        (self.expected > 0.0).then(|| self.jobs.count as f64 / self.expected)
    }

    /// Returns the verdict. Sizes with jobs are popular if no neighbour has any.
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
    /// Returns the verdict on all sizes of the kind.
    pub fn verdict(&self) -> Verdict {
        self.all.verdict()
    }

    /// Returns whether the sizes of this kind alone confirm the verdict.
    ///
    /// If they do not, the kind may be popular because of another one. The squares 4, 16 and 64 are
    /// also powers of two. Table 2 has such verdicts in brackets.
    pub fn stands_alone(&self) -> bool {
        self.alone.verdict() >= self.verdict()
    }
}

/// Judges each kind by the jobs of each size.
pub(super) fn interesting(sizes: &[OfSize], machine: Option<Procs>) -> Vec<Interesting> {
    let counts = SizeCounts::new(sizes, machine.map(Procs::get));
    let judged = |interest| Interesting {
        interest,
        all: counts.popularity(sizes, |size| counts.has(interest, size)),
        alone: counts.popularity(sizes, |size| counts.kinds(size) == 1 && counts.has(interest, size)),
    };
    let known = |interest: &Interest| *interest != Interest::FullMachine || machine.is_some();
    Interest::ALL.into_iter().filter(known).map(judged).collect()
}

/// The jobs of each size up to the machine's.
struct SizeCounts {
    machine: Option<u64>,
    /// Jobs by size, from 0.
    jobs: Vec<u64>,
    /// Number of kinds of each size.
    kinds: Vec<usize>,
}

impl SizeCounts {
    fn new(sizes: &[OfSize], machine: Option<u64>) -> SizeCounts {
        let largest = sizes.iter().map(|of| of.procs.get()).max().unwrap_or(0);
        let most = machine.unwrap_or(largest).min(SIZE_MAX);
        let mut jobs = vec![0; usize::try_from(most).unwrap_or(0) + 1];
        for of in sizes {
            if let Some(count) = usize::try_from(of.procs.get()).ok().and_then(|size| jobs.get_mut(size)) {
                *count = of.jobs;
            }
        }
        let kinds = |size| Interest::ALL.iter().filter(|interest| interest.has_number(size, machine)).count();
        let kinds = (0..jobs.len() as u64).map(kinds).collect();
        SizeCounts { machine, jobs, kinds }
    }

    fn sizes(&self) -> std::ops::Range<u64> {
        2..self.jobs.len() as u64
    }

    fn jobs(&self, size: u64) -> u64 {
        usize::try_from(size).ok().and_then(|size| self.jobs.get(size)).copied().unwrap_or(0)
    }

    fn has(&self, interest: Interest, size: u64) -> bool {
        self.sizes().contains(&size) && interest.has_number(size, self.machine)
    }

    fn kinds(&self, size: u64) -> usize {
        usize::try_from(size).ok().and_then(|size| self.kinds.get(size)).copied().unwrap_or(0)
    }

    /// Returns the mean of the neighbours.
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
        let these = || parallel().filter(|of| meets(of.procs.get()));
        let work: u128 = parallel().map(OfSize::work).sum();
        Popularity {
            jobs: Proportion {
                count: these().map(|of| of.jobs).sum(),
                of: parallel().map(|of| of.jobs).sum(),
            },
            expected: self.sizes().filter(|&size| meets(size)).map(|size| self.expected(size)).sum(),
            work: (work > 0).then(|| these().map(OfSize::work).sum::<u128>() as f64 / work as f64),
        }
    }
}

#[cfg(test)]
mod tests;
