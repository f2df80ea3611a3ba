//! The workload model of Lublin and Feitelson, 1999, as the program of the Parallel Workloads Archive has it.

use std::str::FromStr;

use miserly_core::named_enum;

use super::arrivals::whole_seconds;
use super::drand48::{Drand48, Gamma};
use super::log::{GeneratedJob, GeneratedLog, SiteHeader, load};
use super::{GenerateError, Model, ModelOptions, Shape};
use crate::swf::SECONDS_MAX;

mod arrivals;

use arrivals::Arrivals;

named_enum! {
    /// The types of jobs that a log has.
    #[derive(Default)]
    pub enum LublinTypes {
        /// Batch and interactive jobs, each with its own parameters.
        #[default]
        Both "both",
        /// Jobs without a type, by the parameters of all jobs together.
        All "all",
        /// Batch jobs.
        Batch "batch",
        /// Interactive jobs.
        Interactive "interactive",
    }
}

/// The parameters of a type of jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LublinParameters {
    /// Probability of one processor.
    pub serial: f64,
    /// Probability of a power of two above one.
    pub power_of_two: f64,
    /// Logarithm to base 2 of the least size of a parallel job.
    pub size_low: f64,
    /// Logarithm at which the density of the sizes changes.
    pub size_med: f64,
    /// Logarithm of the largest size.
    pub size_high: f64,
    /// Probability of a size below `size_med`.
    pub size_prob: f64,
    /// Shape of the gamma distribution of the logarithms of short runtimes.
    pub short_shape: f64,
    /// Its scale.
    pub short_scale: f64,
    /// Shape for long runtimes.
    pub long_shape: f64,
    /// Its scale.
    pub long_scale: f64,
    /// Change of the probability of a short runtime with each processor.
    pub short_slope: f64,
    /// Probability of a short runtime for a job of no size.
    pub short_base: f64,
    /// Shape of the gamma distribution of the logarithms of the times between jobs, in rush hours.
    pub gap_shape: f64,
    /// Its scale.
    pub gap_scale: f64,
    /// Shape of the gamma distribution of arrivals over the half hours of a day.
    pub day_shape: f64,
    /// Its scale.
    pub day_scale: f64,
    /// Factor of `gap_shape` that turns rush hours into all hours.
    pub rush_ratio: f64,
}

/// The published machine has 2^7 processors.
const PUBLISHED: f64 = 7.0;

const BATCH: LublinParameters = LublinParameters {
    serial: 0.2927,
    power_of_two: 0.6686,
    size_low: 1.2,
    size_med: 5.0,
    size_high: 7.0,
    size_prob: 0.875,
    short_shape: 6.57,
    short_scale: 0.823,
    long_shape: 639.1,
    long_scale: 0.0156,
    short_slope: -0.003,
    short_base: 0.6986,
    gap_shape: 6.0415,
    gap_scale: 0.8531,
    day_shape: 6.1271,
    day_scale: 5.2740,
    rush_ratio: 1.0519,
};

const INTERACTIVE: LublinParameters = LublinParameters {
    serial: 0.1541,
    power_of_two: 0.625,
    size_low: 1.0,
    size_med: 3.0,
    size_high: 5.5,
    size_prob: 0.705,
    short_shape: 3.8351,
    short_scale: 0.6605,
    long_shape: 7.073,
    long_scale: 0.6856,
    short_slope: -0.0118,
    short_base: 0.9156,
    gap_shape: 6.5510,
    gap_scale: 0.6621,
    day_shape: 8.9186,
    day_scale: 3.6680,
    rush_ratio: 0.9797,
};

const ALL: LublinParameters = LublinParameters {
    serial: 0.244,
    power_of_two: 0.576,
    size_low: 0.8,
    size_med: 4.5,
    size_high: 7.0,
    size_prob: 0.86,
    short_shape: 4.2,
    short_scale: 0.94,
    long_shape: 312.0,
    long_scale: 0.03,
    short_slope: -0.0054,
    short_base: 0.78,
    gap_shape: 10.2303,
    gap_scale: 0.4871,
    day_shape: 8.1737,
    day_scale: 3.9631,
    rush_ratio: 1.0225,
};

/// The logarithm that no runtime exceeds: 45 hours.
const LONGEST: f64 = 12.0;

/// Rigid jobs with hyper-gamma runtimes, sizes in two uniform stages, and a daily cycle.
///
/// The parameters, the order of the draws and their generator are those of the archive's program
/// `m_lublin99`. So a seed gives the jobs of that program, on the platforms whose `ln`, `exp` and
/// `powf` agree with its own. Sizes above the machine, which only a machine that is no power of two
/// can have, are cut.
///
/// Interactive jobs have queue 0, batch jobs queue 1; jobs without a type have queue 0. Estimates
/// are exact: the model has none. Without a `load` the arrivals are those of the model.
///
/// # Source
/// Lublin, Feitelson, The Workload on Parallel Supercomputers: Modeling the Characteristics of
/// Rigid Jobs, JPDC 63(11), 2003; Parallel Workloads Archive, `m_lublin99`.
#[derive(Clone, Debug, PartialEq)]
pub struct Lublin99 {
    /// Number of jobs. Default 10 000, decided here.
    pub jobs: u64,
    /// Processors of the machine. Default 128, from the program.
    pub procs: u32,
    /// Offered load from the first submission to the last, to which all submissions are scaled.
    pub load: Option<f64>,
    /// Seed, as for `srand48`. Default 1.
    pub seed: u32,
    /// Types of jobs.
    pub types: LublinTypes,
    /// Parameters of interactive jobs, or of jobs without a type.
    pub interactive: LublinParameters,
    /// Parameters of batch jobs.
    pub batch: LublinParameters,
}

impl Lublin99 {
    /// Name of the model.
    pub const NAME: &str = "lublin99";

    /// Creates the model with the published parameters.
    ///
    /// The logarithms of the sizes are moved from the published machine of 128 processors to this
    /// one, with their distance from its logarithm, but not below the least size.
    pub fn new(types: LublinTypes, procs: u32) -> Lublin99 {
        let grown = f64::from(procs.max(1)).log2() - PUBLISHED;
        let on_machine = |published: LublinParameters| LublinParameters {
            size_med: (published.size_med + grown).max(published.size_low),
            size_high: (published.size_high + grown).max(published.size_low),
            ..published
        };
        let (interactive, batch) = match types {
            LublinTypes::All => (ALL, ALL),
            _ => (INTERACTIVE, BATCH),
        };
        let (interactive, batch) = (on_machine(interactive), on_machine(batch));
        Lublin99 { jobs: 10_000, procs, load: None, seed: 1, types, interactive, batch }
    }

    /// Creates the model with the requested parameters.
    pub(super) fn from_options(options: &ModelOptions) -> Result<Lublin99, GenerateError> {
        options.reject_repeats(Lublin99::NAME)?;
        let own = Shape { jobs: 10_000, procs: 128, load: 1.0, seed: 1 };
        let Shape { jobs, procs, seed, .. } = options.shape(Lublin99::NAME, own)?;
        let types = options.set.iter().rev().find(|(name, _)| name == "types");
        let types = types.map_or(Ok(LublinTypes::default()), |(_, value)| {
            let known = LublinTypes::ALL.into_iter().find(|types| types.name() == value);
            known.ok_or_else(|| invalid("types", format!("{value:?}"), "both, all, batch or interactive"))
        })?;
        let seed = u32::try_from(seed)
            .map_err(|_| invalid("seed", seed.to_string(), "at most 4294967295, as for srand48"))?;
        let mut model = Lublin99 { jobs, load: options.load, seed, ..Lublin99::new(types, procs) };
        let others = options.set.iter().filter(|(name, _)| name != "types");
        others.into_iter().try_for_each(|(name, value)| model.set(name, value))?;
        Ok(model)
    }

    /// Sets a parameter of the types by name: `size_med` of all types, `batch.size_med` of one.
    ///
    /// # Errors
    /// [`GenerateError::NoSuchParameter`], or [`GenerateError::Parameter`] for what is no number.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), GenerateError> {
        let (of, bare) = name.split_once('.').map_or((None, name), |(of, bare)| (Some(of), bare));
        let known = self.batch.slots().map(|(known, _)| known);
        let parameter = known.into_iter().find(|known| *known == bare);
        let is_type = of.is_none_or(|of| of == "batch" || of == "interactive");
        let Some(parameter) = parameter.filter(|_| is_type) else {
            let known = format!("types, {}, each also as batch.NAME or interactive.NAME", known.join(", "));
            return Err(GenerateError::NoSuchParameter { model: Lublin99::NAME, name: name.into(), known });
        };
        let number =
            f64::from_str(value).map_err(|_| invalid(parameter, format!("{value:?}"), "a number"))?;
        for (of_type, parameters) in [("batch", &mut self.batch), ("interactive", &mut self.interactive)] {
            if of.is_none_or(|of| of == of_type) {
                parameters
                    .slots()
                    .into_iter()
                    .filter(|(known, _)| *known == parameter)
                    .for_each(|(_, slot)| *slot = number);
            }
        }
        Ok(())
    }

    /// Returns the types in use with their names.
    fn used(&self) -> Vec<(&'static str, LublinParameters)> {
        match self.types {
            LublinTypes::Both => vec![("batch", self.batch), ("interactive", self.interactive)],
            LublinTypes::Batch => vec![("batch", self.batch)],
            LublinTypes::Interactive => vec![("interactive", self.interactive)],
            LublinTypes::All => vec![("all", self.interactive)],
        }
    }

    /// Draws the jobs in the order of the program: the next arrival of the type, size, runtime.
    fn drawn(&self) -> Vec<GeneratedJob> {
        let mut stream = Drand48::new(self.seed);
        let mut batch = Arrivals::new(&self.batch);
        let mut interactive = Arrivals::new(&self.interactive);
        batch.advance(&mut stream);
        interactive.advance(&mut stream);
        let next = |_| {
            let is_batch = match self.types {
                LublinTypes::Both => batch.time() < interactive.time(),
                LublinTypes::Batch => true,
                LublinTypes::All | LublinTypes::Interactive => false,
            };
            let (arrivals, parameters) =
                if is_batch { (&mut batch, &self.batch) } else { (&mut interactive, &self.interactive) };
            let submit = arrivals.time();
            arrivals.advance(&mut stream);
            let drawn = parameters.size(&mut stream);
            let runtime = parameters.runtime(drawn, &mut stream);
            GeneratedJob {
                submit,
                runtime,
                estimate: runtime,
                procs: drawn.min(self.procs),
                memory: None,
                user: 1,
                executable: None,
                queue: Some(u32::from(is_batch)),
                after: None,
            }
        };
        (0..self.jobs).map(next).collect()
    }
}

impl LublinParameters {
    /// Returns all parameters by name.
    fn slots(&mut self) -> [(&'static str, &mut f64); 17] {
        [
            ("serial", &mut self.serial),
            ("power_of_two", &mut self.power_of_two),
            ("size_low", &mut self.size_low),
            ("size_med", &mut self.size_med),
            ("size_high", &mut self.size_high),
            ("size_prob", &mut self.size_prob),
            ("short_shape", &mut self.short_shape),
            ("short_scale", &mut self.short_scale),
            ("long_shape", &mut self.long_shape),
            ("long_scale", &mut self.long_scale),
            ("short_slope", &mut self.short_slope),
            ("short_base", &mut self.short_base),
            ("gap_shape", &mut self.gap_shape),
            ("gap_scale", &mut self.gap_scale),
            ("day_shape", &mut self.day_shape),
            ("day_scale", &mut self.day_scale),
            ("rush_ratio", &mut self.rush_ratio),
        ]
    }

    /// Draws a size. One draw decides between serial, power of two and neither.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "validation bounds sizes")]
    fn size(&self, stream: &mut Drand48) -> u32 {
        let kind = stream.uniform();
        if kind <= self.serial {
            return 1;
        }
        let is_low = stream.uniform() <= self.size_prob;
        let (low, high) =
            if is_low { (self.size_low, self.size_med) } else { (self.size_med, self.size_high) };
        let drawn = stream.uniform() * (high - low) + low;
        let is_power = kind <= self.serial + self.power_of_two;
        let logarithm = if is_power { (drawn + 0.5).floor() } else { drawn };
        (2.0_f64.powf(logarithm) + 0.5) as u32
    }

    /// Draws a runtime in whole seconds, at least 1; the more processors, the more likely a long one.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most exp(12)")]
    fn runtime(&self, procs: u32, stream: &mut Drand48) -> u64 {
        let short = (self.short_slope * f64::from(procs) + self.short_base).clamp(0.0, 1.0);
        loop {
            let is_short = stream.uniform() <= short;
            let (shape, scale) = if is_short {
                (self.short_shape, self.short_scale)
            } else {
                (self.long_shape, self.long_scale)
            };
            let logarithm = stream.gamma(Gamma { shape, scale });
            if logarithm <= LONGEST {
                return logarithm.exp() as u64;
            }
        }
    }

    fn check(mut self) -> Result<(), GenerateError> {
        let sizes = [0.0, self.size_low, self.size_med, self.size_high, 23.0];
        for (name, slot) in self.slots() {
            let value = *slot;
            let (holds, wanted) = match name {
                "serial" | "power_of_two" | "size_prob" => ((0.0..=1.0).contains(&value), "between 0 and 1"),
                "size_low" | "size_med" | "size_high" => (
                    sizes.is_sorted() && value.is_finite(),
                    "between 0 and 23, with size_low <= size_med <= size_high; give more --procs or set them",
                ),
                "short_slope" | "short_base" => ((-10.0..=10.0).contains(&value), "between -10 and 10"),
                "rush_ratio" => ((0.1..=10.0).contains(&value), "between 0.1 and 10"),
                _ => ((0.001..=1000.0).contains(&value), "between 0.001 and 1000"),
            };
            if !holds {
                return Err(invalid(name, value.to_string(), wanted));
            }
        }
        for (name, shape, scale) in [
            ("short_shape", self.short_shape, self.short_scale),
            ("long_shape", self.long_shape, self.long_scale),
            ("gap_shape", self.gap_shape * self.rush_ratio, self.gap_scale),
        ] {
            // Above, nearly every draw would exceed the limit and be repeated.
            if shape * scale > LONGEST {
                return Err(invalid(name, shape.to_string(), "such that shape times scale is at most 12"));
            }
        }
        Ok(())
    }
}

fn invalid(parameter: &'static str, value: String, wanted: &'static str) -> GenerateError {
    GenerateError::Parameter { model: Lublin99::NAME, parameter, value, wanted }
}

impl Model for Lublin99 {
    fn name(&self) -> &'static str {
        Lublin99::NAME
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        let load = self.load.map_or_else(|| "of the model".to_owned(), |load| load.to_string());
        let mut all = vec![
            ("jobs", self.jobs.to_string()),
            ("procs", self.procs.to_string()),
            ("load", load),
            ("seed", self.seed.to_string()),
            ("types", self.types.to_string()),
        ];
        for (of, mut parameters) in self.used() {
            let texts = parameters.slots().map(|(name, value)| format!("{name}={value}"));
            all.push((of, texts.join(" ")));
        }
        all
    }

    fn validate(&self) -> Result<(), GenerateError> {
        let ensure = |holds, parameter, value: String, wanted| {
            if holds { Ok(()) } else { Err(invalid(parameter, value, wanted)) }
        };
        ensure(
            (1..=100_000_000).contains(&self.jobs),
            "jobs",
            self.jobs.to_string(),
            "between 1 and 100000000",
        )?;
        ensure(
            (1..=10_000_000).contains(&self.procs),
            "procs",
            self.procs.to_string(),
            "between 1 and 10000000",
        )?;
        let load = self.load.unwrap_or(1.0);
        ensure(load > 0.0 && load.is_finite(), "load", load.to_string(), "above 0, and finite")?;
        self.used().into_iter().try_for_each(|(_, parameters)| parameters.check())
    }

    fn generate(&self) -> Result<GeneratedLog, GenerateError> {
        self.validate()?;
        let mut jobs = self.drawn();
        if let Some((wanted, natural)) = self.load.zip(load(&jobs, self.procs)) {
            let stretch = natural / wanted;
            for job in &mut jobs {
                job.submit = whole_seconds(job.submit as f64 * stretch);
            }
        }
        let span = jobs.last().map_or(0, |job| job.submit);
        if span > SECONDS_MAX.unsigned_abs() {
            return Err(GenerateError::TooLong { load: self.load.unwrap_or_default(), span: span as f64 });
        }
        Ok(GeneratedLog::new(self, SiteHeader::plain(self.procs), jobs))
    }
}

#[cfg(test)]
mod tests;
