//! The workload model of Feitelson, Packing schemes for gang scheduling, JSSPP 1996, §3.5.

use super::arrivals::{Run, Target, after_the_end, on_one_stream, whole_seconds};
use super::log::{MadeLog, Site};
use super::random::{Discrete, Stream, harmonic};
use super::{GenerateError, Model, Shape};

mod sizes;

mod parameters;

mod validate;

/// Rigid jobs: sizes harmonic, tailored towards small and interesting ones; runtimes hyperexponential in two
/// stages, the longer the likelier the larger the job; repeated in runs of Zipf lengths; Poisson arrivals.
///
/// The paper gives the shape of the distributions and the order of the run lengths, and no other number. Each
/// parameter says where its default is from; "decided here" means that no published value was found. Of those,
/// the ratio of the two stages and the line between them (0.05 + 0.2 n / P) are as remembered from Feitelson's
/// later book, Workload Modeling for Computer Systems Performance Evaluation, which was not at hand to check.
///
/// Each run is of a program of its own (field 14), so that the same job can be told from another that its user submits.
///
/// Draws go through `ln` and `powf`, which may differ in the last bit between platforms; on one platform the
/// same parameters make the same bytes.
///
/// # Source
/// Feitelson 1996, §3; sizes also: Parallel Workloads Archive, the page of this model
/// (<https://www.cs.huji.ac.il/labs/parallel/workload/m_feitelson96/>).
#[derive(Clone, Debug, PartialEq)]
pub struct Feitelson96 {
    /// How many jobs. Default 10 000, decided here.
    pub jobs: u64,
    /// The machine's processors. Default 128, the paper's machine (§2).
    pub procs: u32,
    /// The offered load, from the first submission to the last: the times between arrivals are scaled to it,
    /// as in the paper (§4.1). Default 0.7, decided here.
    pub load: f64,
    /// The seed of all draws. Default 1.
    pub seed: u64,
    /// The order of the harmonic distribution of sizes: size n has weight 1 / n^order before it is tailored.
    /// Default 1.5, from the archive's page.
    pub size_order: f64,
    /// The largest small size. Default 8: the paper's own line between small and large (§2).
    pub small_max: u32,
    /// How much likelier small sizes are made. That they are is from the paper and the archive's page; the
    /// default 1.5 is decided here.
    pub small_weight: f64,
    /// The least size that is interesting; 1, 2 and 3 are common enough. Default 4, decided here.
    pub interesting_from: u32,
    /// How much likelier powers of two are made. "The most popular sizes by far" on the archive's page; the
    /// default 10 is decided here. A size that is interesting in several ways takes the greatest weight.
    pub power_of_two_weight: f64,
    /// How much likelier squares are made (Table 2: "some"). Default 3, decided here.
    pub square_weight: f64,
    /// How much likelier multiples of ten are made (Table 2: "some"). Default 3, decided here.
    pub multiple_of_ten_weight: f64,
    /// How much likelier the full machine is made (§3.1: popular even where it is no power of two). Default
    /// 30, decided here.
    pub full_machine_weight: f64,
    /// How much likelier the sizes one above a power of two, square or multiple of ten are made (§3.1: a
    /// master and its workers). Default 2, decided here.
    pub plus_one_weight: f64,
    /// The mean runtime of the shorter stage, in seconds. Default 600, decided here.
    pub short_mean: f64,
    /// The mean runtime of the longer stage, in seconds. Default 4200, decided here: seven times the other, for
    /// runtimes of a coefficient of variation near 1.8.
    pub long_mean: f64,
    /// The probability of the longer stage for a job of no size: the line is `long_base + long_slope * n / P`,
    /// linear in the size as in the paper. Default 0.05, decided here.
    pub long_base: f64,
    /// How much likelier the longer stage is for a job as large as the machine. Default 0.2, decided here:
    /// the mean runtime goes from 780 s to 1500 s, the paper's "weak tendency" (§3.2).
    pub long_slope: f64,
    /// The order of the Zipf distribution of run lengths. Default 2.5, from the paper (§3.5); its logs had 2.2.
    pub run_order: f64,
    /// The longest run. Default 402, the longest that the paper saw (§3.3).
    pub run_max: u32,
    /// How many users there are; each run belongs to one of them at random. The paper has no users in its
    /// model. Default 64, decided here.
    pub users: u32,
    /// Whether a repetition is submitted when the one before it would end, had it started at once, instead of
    /// as an arrival of the one Poisson stream. Its line then names the one before (fields 17 and 18). The
    /// paper leaves it open. Default no.
    pub repeat_after_end: bool,
}

impl Default for Feitelson96 {
    fn default() -> Feitelson96 {
        Feitelson96 {
            jobs: 10_000,
            procs: 128,
            load: 0.7,
            seed: 1,
            size_order: 1.5,
            small_max: 8,
            small_weight: 1.5,
            interesting_from: 4,
            power_of_two_weight: 10.0,
            square_weight: 3.0,
            multiple_of_ten_weight: 3.0,
            full_machine_weight: 30.0,
            plus_one_weight: 2.0,
            short_mean: 600.0,
            long_mean: 4200.0,
            long_base: 0.05,
            long_slope: 0.2,
            run_order: 2.5,
            run_max: 402,
            users: 64,
            repeat_after_end: false,
        }
    }
}

/// The purposes of random streams; their values are part of what a seed means.
mod purpose {
    pub(super) const SIZES: u64 = 1;
    pub(super) const RUNTIMES: u64 = 2;
    pub(super) const LENGTHS: u64 = 3;
    pub(super) const USERS: u64 = 4;
    pub(super) const ARRIVALS: u64 = 5;
}

impl Feitelson96 {
    /// The model's name.
    pub const NAME: &str = "feitelson96";

    /// The shape of the log that is made where nobody says otherwise. The load is decided here, above the parameter's
    /// own default, so that the log tells policies apart.
    pub const SHAPE: Shape = Shape { jobs: 10_000, procs: 128, load: 0.85, seed: 1 };

    /// The model of this shape, its other parameters at their defaults.
    pub fn with_shape(shape: Shape) -> Feitelson96 {
        let Shape { jobs, procs, load, seed } = shape;
        Feitelson96 { jobs, procs, load, seed, ..Feitelson96::default() }
    }

    /// Draws runs, one after the other.
    fn runs(&self) -> impl FnMut() -> Run + '_ {
        let stream = |purpose| Stream::new(self.seed, purpose);
        let (mut sizes, mut runtimes) = (stream(purpose::SIZES), stream(purpose::RUNTIMES));
        let (mut lengths, mut users) = (stream(purpose::LENGTHS), stream(purpose::USERS));
        let size = Discrete::new(self.procs, |size| self.size_weight(size));
        let length = Discrete::new(self.run_max, |length| harmonic(length, self.run_order));
        let user = Discrete::new(self.users, |_| 1.0);
        let mut programs = 1..;
        move || {
            let procs = size.draw(&mut sizes);
            let runtime = self.runtime(procs, &mut runtimes);
            let (length, user) = (length.draw(&mut lengths), user.draw(&mut users));
            Run { procs, runtime, length, user, executable: programs.next() }
        }
    }

    /// At least a second.
    fn runtime(&self, procs: u32, stream: &mut Stream) -> u64 {
        let part = f64::from(procs) / f64::from(self.procs);
        let long = stream.uniform() < self.long_base + self.long_slope * part;
        let mean = if long { self.long_mean } else { self.short_mean };
        whole_seconds(stream.exponential(mean)).max(1)
    }
}

impl Model for Feitelson96 {
    fn name(&self) -> &'static str {
        Feitelson96::NAME
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        self.clone().slots().into_iter().map(|(name, slot)| (name, slot.to_string())).collect()
    }

    fn validate(&self) -> Result<(), GenerateError> {
        self.check_parameters()
    }

    fn generate(&self) -> Result<MadeLog, GenerateError> {
        self.validate()?;
        // Validation bounds the jobs.
        let jobs = usize::try_from(self.jobs).unwrap_or(usize::MAX);
        let target = Target { jobs, procs: self.procs, load: self.load };
        let mut arrivals = Stream::new(self.seed, purpose::ARRIVALS);
        let gap = || arrivals.exponential(1.0);
        let jobs = if self.repeat_after_end {
            after_the_end(target, self.runs(), gap)?
        } else {
            on_one_stream(target, self.runs(), gap)?
        };
        Ok(MadeLog::new(self, Site::plain(self.procs), jobs))
    }
}

#[cfg(test)]
mod tests;
