//! What is asked of a model, wherever it is asked: on the command line, in an experiment.

use super::{GenerateError, Shape};
use crate::o2k::Month;

/// What is asked of a model; what is not said is as the model has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// How many jobs.
    pub jobs: Option<u64>,
    /// The machine's processors.
    pub procs: Option<u32>,
    /// The offered load.
    pub load: Option<f64>,
    /// The seed of all random draws.
    pub seed: Option<u64>,
    /// The month whose jobs are made.
    pub month: Option<Month>,
    /// Whether a repetition of a job is submitted only after the one before it has run.
    pub repeat_after_end: bool,
    /// Further parameters of the model, by name, as text; of two of one name the last counts, and it goes before what is
    /// asked for above.
    pub set: Vec<(String, String)>,
}

impl Asked {
    /// The shape, for a model that has one of its own and knows no months.
    pub(super) fn shape(&self, model: &'static str, own: Shape) -> Result<Shape, GenerateError> {
        refuse(self.month.is_some(), model, "--month", "is of no month; only o2k is")?;
        Ok(Shape {
            jobs: self.jobs.unwrap_or(own.jobs),
            procs: self.procs.unwrap_or(own.procs),
            load: self.load.unwrap_or(own.load),
            seed: self.seed.unwrap_or(own.seed),
        })
    }

    /// That no shape is asked for, of a model whose jobs and machine are given.
    pub(super) fn shapes_not(&self, model: &'static str) -> Result<(), GenerateError> {
        let why = "makes the jobs of a month on a machine that is given; ask for another --month";
        refuse(self.jobs.is_some(), model, "--jobs", why)?;
        refuse(self.procs.is_some(), model, "--procs", why)?;
        refuse(self.load.is_some(), model, "--load", why)
    }

    /// That no repetitions are asked for.
    pub(super) fn repeats_not(&self, model: &'static str) -> Result<(), GenerateError> {
        refuse(self.repeat_after_end, model, "--repeat-after-end", "repeats no jobs")
    }

    /// That no parameters are set by name.
    pub(super) fn sets_not(&self, model: &'static str) -> Result<(), GenerateError> {
        refuse(!self.set.is_empty(), model, "--set", "has no parameters beyond its options")
    }
}

fn refuse(
    asked: bool,
    model: &'static str,
    option: &'static str,
    why: &'static str,
) -> Result<(), GenerateError> {
    if asked { Err(GenerateError::NotTaken { model, option, why }) } else { Ok(()) }
}
