//! The workload model of Feitelson, Packing schemes for gang scheduling, JSSPP 1996, §3.5.

use super::arrivals::{JobRun, LoadTarget, after_the_end, on_one_stream, whole_seconds};
use super::log::{GeneratedLog, SiteHeader};
use super::random::{Discrete, Stream, harmonic};
use super::{GenerateError, Model, Shape};

mod arrays;

mod sizes;

mod parameters;

mod validate;

/// Rigid jobs that repeat in runs with Poisson arrivals.
///
/// Sizes are harmonic, tailored towards small and interesting ones. Runtimes are hyperexponential
/// with two stages; larger jobs are more likely in the longer one. Run lengths follow a Zipf
/// distribution.
///
/// The paper gives the shapes of the distributions and the order of the run lengths, and no other
/// number. Each parameter names the source of its default. "Decided here" means that no published
/// value was found. The ratio of the two stages and the line between them (0.05 + 0.2 n / P) are
/// recalled from a later book. That is Feitelson's Workload Modeling for Computer Systems
/// Performance Evaluation, which was not at hand.
///
/// Each run has a program of its own (field 14), which distinguishes it from other runs of its
/// user.
///
/// Draws use `ln` and `powf`, whose last bit may differ between platforms. On one platform the same
/// parameters give the same bytes.
///
/// # Source
/// Feitelson 1996, §3; sizes also: Parallel Workloads Archive, the page of this model
/// (<https://www.cs.huji.ac.il/labs/parallel/workload/m_feitelson96/>).
#[derive(Clone, Debug, PartialEq)]
pub struct Feitelson96 {
    /// Number of jobs. Default 10 000, decided here.
    pub jobs: u64,
    /// Processors of the machine. Default 128, the paper's machine (§2).
    pub procs: u32,
    /// Offered load from the first submission to the last. Default 0.7, decided here.
    ///
    /// The interarrival times are scaled to it, as in the paper (§4.1).
    pub load: f64,
    /// Seed of all draws. Default 1.
    pub seed: u64,
    /// Order of the harmonic distribution of sizes: size n has weight 1 / n^order before tailoring.
    ///
    /// Default 1.5, from the archive's page.
    pub size_order: f64,
    /// Largest small size. Default 8: the paper's own limit between small and large (§2).
    pub small_max: u32,
    /// Factor of the weight of small sizes. Default 1.5, decided here.
    ///
    /// The paper and the archive's page mention the preference without a number.
    pub small_weight: f64,
    /// Least interesting size; 1, 2 and 3 are common without a factor. Default 4, decided here.
    pub interesting_from: u32,
    /// Factor of the weight of powers of two. Default 10, decided here.
    ///
    /// The archive's page calls them "the most popular sizes by far". A size of several kinds has
    /// the greatest factor.
    pub power_of_two_weight: f64,
    /// Factor of the weight of squares (Table 2: "some"). Default 3, decided here.
    pub square_weight: f64,
    /// Factor of the weight of multiples of ten (Table 2: "some"). Default 3, decided here.
    pub multiple_of_ten_weight: f64,
    /// Factor of the weight of the full machine. Default 30, decided here.
    ///
    /// It is popular even if it is no power of two (§3.1).
    pub full_machine_weight: f64,
    /// Factor of the weight of sizes one above a power of two, square or multiple of ten. Default
    /// 2, decided here.
    ///
    /// These are a master and its workers (§3.1).
    pub plus_one_weight: f64,
    /// Mean runtime of the shorter stage in seconds. Default 600, decided here.
    pub short_mean: f64,
    /// Mean runtime of the longer stage in seconds. Default 4200, decided here.
    ///
    /// Seven times the other one gives runtimes a coefficient of variation near 1.8.
    pub long_mean: f64,
    /// Probability of the longer stage for a job of size 0. Default 0.05, decided here.
    ///
    /// The line is `long_base + long_slope * n / P`, linear in the size as in the paper.
    pub long_base: f64,
    /// Additional probability of the longer stage for a job of the machine's size. Default 0.2,
    /// decided here.
    ///
    /// The mean runtime rises from 780 s to 1500 s, the paper's "weak tendency" (§3.2).
    pub long_slope: f64,
    /// Order of the Zipf distribution of run lengths. Default 2.5, from the paper (§3.5); its logs
    /// had 2.2.
    pub run_order: f64,
    /// Longest run. Default 402, the longest observed in the paper (§3.3).
    pub run_max: u32,
    /// Number of users; each run belongs to a random one. The paper's model has none. Default 64,
    /// decided here.
    pub users: u32,
    /// Whether a repetition is submitted at the end of the previous job, had that started at once.
    ///
    /// Otherwise it is an arrival of the Poisson stream. Its line then names the previous job
    /// (fields 17 and 18). The paper leaves this open. Default no.
    pub repeat_after_end: bool,
    /// Probability that a run is an array: all its jobs are submitted at one instant. Default 0.
    ///
    /// The paper's model has no arrays. Logs of later machines have thousands of identical jobs that
    /// one user submits at once, and deep queues behind them.
    pub array_chance: f64,
    /// Longest array. Default 1000, decided here.
    ///
    /// The logarithms of the lengths are uniform.
    pub array_max: u32,
    /// Greatest estimate of a run, in runtimes. Default 1: exact estimates, as in the paper.
    ///
    /// The ratio is uniform from 1 on. All jobs of a run have the same estimate.
    pub estimate_max: f64,
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
            array_chance: 0.0,
            array_max: 1000,
            estimate_max: 1.0,
        }
    }
}

/// Purposes of random streams. Their values are part of the meaning of a seed.
mod purpose {
    pub(super) const SIZES: u64 = 1;
    pub(super) const RUNTIMES: u64 = 2;
    pub(super) const LENGTHS: u64 = 3;
    pub(super) const USERS: u64 = 4;
    pub(super) const ARRIVALS: u64 = 5;
    pub(super) const ARRAYS: u64 = 6;
    pub(super) const ESTIMATES: u64 = 7;
}

impl Feitelson96 {
    /// Name of the model.
    pub const NAME: &str = "feitelson96";

    /// Default shape of a log. The load, above the parameter's own default, separates policies.
    /// Decided here.
    pub const SHAPE: Shape = Shape { jobs: 10_000, procs: 128, load: 0.85, seed: 1 };

    /// Creates the model with this shape and otherwise default parameters.
    pub fn with_shape(shape: Shape) -> Feitelson96 {
        let Shape { jobs, procs, load, seed } = shape;
        Feitelson96 { jobs, procs, load, seed, ..Feitelson96::default() }
    }

    /// Returns a generator of runs.
    fn runs(&self) -> impl FnMut() -> JobRun + '_ {
        let stream = |purpose| Stream::new(self.seed, purpose);
        let (mut sizes, mut runtimes) = (stream(purpose::SIZES), stream(purpose::RUNTIMES));
        let (mut lengths, mut users) = (stream(purpose::LENGTHS), stream(purpose::USERS));
        let size = Discrete::new(self.procs, |size| self.size_weight(size));
        let length = Discrete::new(self.run_max, |length| harmonic(length, self.run_order));
        let user = Discrete::new(self.users, |_| 1.0);
        let (mut arrays, mut estimates) = (stream(purpose::ARRAYS), stream(purpose::ESTIMATES));
        let mut programs = 1..;
        move || {
            let procs = size.draw(&mut sizes);
            let runtime = self.runtime(procs, &mut runtimes);
            let (length, user) = (length.draw(&mut lengths), user.draw(&mut users));
            let array = self.array_length(&mut arrays);
            JobRun {
                procs,
                runtime,
                estimate: self.estimate(runtime, &mut estimates),
                length: array.unwrap_or(length),
                user,
                executable: programs.next(),
                together: array.is_some(),
            }
        }
    }

    /// Draws a runtime of at least a second.
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
        let used = |name: &str| match name {
            "array_chance" | "array_max" => self.array_chance > 0.0,
            "estimate_max" => self.estimate_max > 1.0,
            _ => true,
        };
        let mut model = self.clone();
        let slots = model.slots().into_iter().filter(|(name, _)| used(name));
        slots.map(|(name, slot)| (name, slot.to_string())).collect()
    }

    fn validate(&self) -> Result<(), GenerateError> {
        self.check_parameters()
    }

    fn generate(&self) -> Result<GeneratedLog, GenerateError> {
        self.validate()?;
        let Feitelson96 { jobs, procs, load, seed, .. } = *self;
        let target = LoadTarget::new(Shape { jobs, procs, load, seed });
        let mut arrivals = Stream::new(self.seed, purpose::ARRIVALS);
        let gap = || arrivals.exponential(1.0);
        let jobs = if self.repeat_after_end {
            after_the_end(target, self.runs(), gap)?
        } else {
            on_one_stream(target, self.runs(), gap)?
        };
        Ok(GeneratedLog::new(self, SiteHeader::plain(self.procs), jobs))
    }
}

#[cfg(test)]
mod tests;
