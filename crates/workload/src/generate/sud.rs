//! The synthetic trace of Zotkin, Keleher, Perkovic 2000, §3, with uniform runtimes.

use super::arrivals::{JobRun, LoadTarget, on_one_stream};
use super::feitelson96::Feitelson96;
use super::log::{GeneratedLog, SiteHeader};
use super::random::{Discrete, Stream};
use super::{GenerateError, Model, Shape};

/// Rigid jobs whose runtimes are uniform between 1 and 240 minutes, so that short ones do not
/// dominate.
///
/// The paper gives the number of jobs, the processors and the runtimes, but neither sizes nor
/// arrivals. Decided here: Poisson arrivals with one job each, uniform sizes, and the load. At this
/// load, EASY with exact estimates comes near the paper's bounded slowdown of 12.89 (Table 2).
/// Table 5 supports uniform sizes: with all jobs submitted at once, first come first served waits
/// 46.12 million seconds. That is 45.7 with uniform sizes and 3.2 with those of [`Feitelson96`];
/// for EASY 28.07, against 27.9 and 2.4.
///
/// # Source
/// Zotkin, Keleher, Perkovic 2000, §3 and Table 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Sud {
    /// Jobs, processors, load and seed.
    pub shape: Shape,
    /// Distribution of sizes.
    pub sizes: SudSizes,
}

/// The distribution of sizes, which the paper omits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SudSizes {
    /// The sizes of [`Feitelson96`].
    Feitelson96,
    /// Uniform from one processor to the whole machine.
    Uniform,
}

/// Runtimes in seconds: from 1 to 240 minutes, from the paper.
const RUNTIMES: std::ops::RangeInclusive<u64> = 60..=14_400;

/// Purposes of random streams. Their values are part of the meaning of a seed.
mod purpose {
    pub(super) const SIZES: u64 = 1;
    pub(super) const RUNTIMES: u64 = 2;
    pub(super) const ARRIVALS: u64 = 3;
}

impl Sud {
    /// Name of the model.
    pub const NAME: &str = "sud";

    /// Name of the model with the sizes of [`Feitelson96`].
    pub const SIZED_NAME: &str = "sud-feitelson96";

    /// The paper's trace (jobs and processors) at the load described above.
    pub const SHAPE: Shape = Shape { jobs: 18_415, procs: 256, load: 0.765, seed: 1 };

    /// The same with the sizes of [`Feitelson96`], at the load that comes near the same figure.
    pub const SIZED_SHAPE: Shape = Shape { load: 1.01, ..Sud::SHAPE };

    /// Creates the model with this shape.
    pub fn with_shape(shape: Shape) -> Sud {
        Sud { shape, sizes: SudSizes::Uniform }
    }

    /// Returns a generator of jobs.
    fn runs(&self) -> impl FnMut() -> JobRun + '_ {
        let stream = |purpose| Stream::new(self.shape.seed, purpose);
        let (mut sizes, mut runtimes) = (stream(purpose::SIZES), stream(purpose::RUNTIMES));
        let model = self.feitelson96();
        let weight = |size| match self.sizes {
            SudSizes::Feitelson96 => model.size_weight(size),
            SudSizes::Uniform => 1.0,
        };
        let size = Discrete::new(self.shape.procs, weight);
        move || {
            let procs = size.draw(&mut sizes);
            let runtime = runtime(runtimes.uniform());
            let (length, user, executable) = (1, 1, None);
            JobRun { procs, runtime, estimate: runtime, length, user, executable, together: false }
        }
    }

    /// Returns the model that provides the sizes.
    fn feitelson96(&self) -> Feitelson96 {
        Feitelson96::with_shape(self.shape)
    }
}

impl Default for Sud {
    fn default() -> Sud {
        Sud::with_shape(Sud::SHAPE)
    }
}

/// Returns the runtime at a share of the range, in whole seconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn runtime(share: f64) -> u64 {
    let (least, most) = RUNTIMES.into_inner();
    // Between 0 and the width of the range.
    least + ((share * (most - least + 1) as f64) as u64).min(most - least)
}

impl Model for Sud {
    fn name(&self) -> &'static str {
        match self.sizes {
            SudSizes::Uniform => Sud::NAME,
            SudSizes::Feitelson96 => Sud::SIZED_NAME,
        }
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        let Shape { jobs, procs, load, seed } = self.shape;
        let sizes = match self.sizes {
            SudSizes::Feitelson96 => "feitelson96, decided here",
            SudSizes::Uniform => "uniform, decided here",
        };
        vec![
            ("jobs", jobs.to_string()),
            ("procs", procs.to_string()),
            ("load", load.to_string()),
            ("seed", seed.to_string()),
            ("sizes", sizes.to_owned()),
            ("arrivals", "poisson, decided here".to_owned()),
        ]
    }

    fn validate(&self) -> Result<(), GenerateError> {
        self.feitelson96().validate().map_err(|error| match error {
            GenerateError::Parameter { parameter, value, wanted, .. } => {
                GenerateError::Parameter { model: self.name(), parameter, value, wanted }
            }
            other => other,
        })
    }

    fn generate(&self) -> Result<GeneratedLog, GenerateError> {
        self.validate()?;
        let Shape { procs, seed, .. } = self.shape;
        let mut arrivals = Stream::new(seed, purpose::ARRIVALS);
        let jobs = on_one_stream(LoadTarget::new(self.shape), self.runs(), || arrivals.exponential(1.0))?;
        Ok(GeneratedLog::new(self, SiteHeader::plain(procs), jobs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_uniform_and_in_the_range() {
        let log = Sud::with_shape(Shape { jobs: 20_000, ..Sud::SHAPE }).generate().unwrap();
        let mut runtimes: Vec<u64> = log.jobs.iter().map(|job| job.runtime).collect();
        runtimes.sort_unstable();
        assert!(RUNTIMES.contains(&runtimes[0]) && RUNTIMES.contains(runtimes.last().unwrap()));
        // Kolmogorov and Smirnov: beyond 1.95 / sqrt(n) in one sample of a thousand.
        let (least, most) = RUNTIMES.into_inner();
        let uniform = |runtime: u64| (runtime - least) as f64 / (most - least) as f64;
        let n = runtimes.len() as f64;
        let off = (0..).zip(&runtimes).map(|(rank, &at)| (uniform(at) - f64::from(rank) / n).abs());
        let off = off.fold(0.0, f64::max);
        assert!(off < 1.95 / n.sqrt() + 1e-4, "{off}");
    }

    #[test]
    fn the_ends_of_the_range() {
        assert_eq!((runtime(0.0), runtime(0.999_999_999)), (60, 14_400));
        assert_eq!(runtime(0.5), 60 + 14_341 / 2);
    }

    #[test]
    fn the_same_seed_makes_the_same_log_and_another_another() {
        let bytes = |seed| {
            let mut text = Vec::new();
            Sud::with_shape(Shape { jobs: 200, seed, ..Sud::SHAPE })
                .generate()
                .unwrap()
                .write(&mut text)
                .unwrap();
            text
        };
        assert_eq!(bytes(1), bytes(1));
        assert_ne!(bytes(1), bytes(2));
    }

    #[test]
    fn the_load_is_what_was_asked_for() {
        let log = Sud::with_shape(Shape { load: 0.6, ..Sud::SHAPE }).generate().unwrap().into_trace("sud");
        let load = crate::describe(&log, None, crate::ProcsField::Allocated).unwrap().load().unwrap();
        assert!((load - 0.6).abs() < 0.01, "{load}");
    }
}
