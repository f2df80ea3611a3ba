//! Requested parameters of a model, from the command line or an experiment.

use miserly_core::Procs;

use super::{GenerateError, Shape};
use crate::o2k::Month;

/// Requested parameters of a model. Unset ones have the model's defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelOptions {
    /// Number of jobs.
    pub jobs: Option<u64>,
    /// Processors of the machine.
    pub procs: Option<Procs>,
    /// Offered load.
    pub load: Option<f64>,
    /// Seed of all random draws.
    pub seed: Option<u64>,
    /// Month of the generated jobs.
    pub month: Option<Month>,
    /// Whether a repetition of a job is submitted only after the previous one has run.
    pub repeat_after_end: bool,
    /// Further parameters by name, as text.
    ///
    /// The last one of a name applies. They take precedence over the parameters above.
    pub set: Vec<(String, String)>,
}

impl ModelOptions {
    /// Returns the shape, for a model with a default shape and without months.
    pub(super) fn shape(&self, model: &'static str, own: Shape) -> Result<Shape, GenerateError> {
        reject(self.month.is_some(), model, "--month", "has no months; only o2k has")?;
        Ok(Shape {
            jobs: self.jobs.unwrap_or(own.jobs),
            procs: self.procs.map_or(own.procs, |procs| u32::try_from(procs).unwrap_or(u32::MAX)),
            load: self.load.unwrap_or(own.load),
            seed: self.seed.unwrap_or(own.seed),
        })
    }

    /// Rejects a requested shape, for a model whose jobs and machine are fixed.
    pub(super) fn reject_shape(&self, model: &'static str) -> Result<(), GenerateError> {
        let why = "has a fixed machine and the jobs of a month; choose another --month";
        reject(self.jobs.is_some(), model, "--jobs", why)?;
        reject(self.procs.is_some(), model, "--procs", why)?;
        reject(self.load.is_some(), model, "--load", why)
    }

    /// Rejects requested repetitions.
    pub(super) fn reject_repeats(&self, model: &'static str) -> Result<(), GenerateError> {
        reject(self.repeat_after_end, model, "--repeat-after-end", "repeats no jobs")
    }

    /// Rejects parameters set by name.
    pub(super) fn reject_parameters(&self, model: &'static str) -> Result<(), GenerateError> {
        reject(!self.set.is_empty(), model, "--set", "has no parameters beyond its options")
    }
}

fn reject(
    is_requested: bool,
    model: &'static str,
    option: &'static str,
    why: &'static str,
) -> Result<(), GenerateError> {
    if is_requested { Err(GenerateError::NotTaken { model, option, why }) } else { Ok(()) }
}
