//! Logs made up by a model of a workload, for when no real one has the load or the size that is needed.
//!
//! A model is a struct whose fields are its parameters, in a file of its own; [`MODELS`] lists them. The same
//! parameters and seed give the same bytes, and the log's header says how to make it again.
//!
//! ```
//! use miserly_workload::generate::{Feitelson96, Model};
//!
//! let model = Feitelson96 { jobs: 100, procs: 64, load: 0.8, ..Feitelson96::default() };
//! let mut text = Vec::new();
//! model.generate()?.write(&mut text)?;
//! assert!(text.starts_with(b"; Version: 2.2\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod log;

pub(crate) mod random;

mod arrivals;

mod feitelson96;

mod sud;

mod o2k;

mod asked;

pub use asked::Asked;
pub use feitelson96::Feitelson96;
pub use log::{Made, MadeLog, Memory};
pub use o2k::O2k;
pub use sud::{Sizes as SudSizes, Sud};

/// A model of a workload, with its parameters set.
pub trait Model {
    /// The name by which it is asked for.
    fn name(&self) -> &'static str;

    /// The parameters as the log's header tells them: name and value, the seed among them.
    fn parameters(&self) -> Vec<(&'static str, String)>;

    /// Whether the parameters make sense, alone and together.
    ///
    /// # Errors
    /// The first parameter that does not.
    fn validate(&self) -> Result<(), GenerateError>;

    /// Makes the log.
    ///
    /// # Errors
    /// As [`validate`](Model::validate); and if the format cannot hold what comes out.
    fn generate(&self) -> Result<MadeLog, GenerateError>;
}

/// What every model is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// How many jobs.
    pub jobs: u64,
    /// The machine's processors.
    pub procs: u32,
    /// The offered load: the jobs' work over what the machine can do from the first submission to the last.
    pub load: f64,
    /// The seed of all random draws.
    pub seed: u64,
}

/// A model that can be asked for by name.
#[derive(Clone, Copy, Debug)]
pub struct ModelEntry {
    /// Its name.
    pub name: &'static str,
    /// One line on what it is, and where from.
    pub about: &'static str,
    /// The model with what was asked for, and everything else as it comes.
    ///
    /// # Errors
    /// [`GenerateError::NotTaken`] for something that the model has no use for.
    pub build: fn(&Asked) -> Result<Box<dyn Model>, GenerateError>,
}

/// Every model.
pub const MODELS: &[ModelEntry] = &[
    ModelEntry {
        name: Feitelson96::NAME,
        about: "Rigid jobs, mostly small and of interesting sizes, repeated in runs (Feitelson, 1996)",
        build: |asked| {
            let shape = asked.shape(Feitelson96::NAME, Feitelson96::SHAPE)?;
            let repeat_after_end = asked.repeat_after_end;
            let mut model = Feitelson96 { repeat_after_end, ..Feitelson96::with_shape(shape) };
            asked.set.iter().try_for_each(|(name, value)| model.set(name, value))?;
            Ok(Box::new(model))
        },
    },
    ModelEntry {
        name: Sud::NAME,
        about: "Rigid jobs of uniform runtimes, 1 to 240 minutes, and sizes (Zotkin, Keleher, Perkovic, 2000)",
        build: |asked| {
            asked.repeats_not(Sud::NAME)?;
            asked.sets_not(Sud::NAME)?;
            Ok(Box::new(Sud::with_shape(asked.shape(Sud::NAME, Sud::SHAPE)?)))
        },
    },
    ModelEntry {
        name: Sud::SIZED_NAME,
        about: "The same with the sizes of feitelson96",
        build: |asked| {
            asked.repeats_not(Sud::SIZED_NAME)?;
            asked.sets_not(Sud::SIZED_NAME)?;
            let shape = asked.shape(Sud::SIZED_NAME, Sud::SIZED_SHAPE)?;
            Ok(Box::new(Sud { sizes: SudSizes::Feitelson96, ..Sud::with_shape(shape) }))
        },
    },
    ModelEntry {
        name: O2k::NAME,
        about: "A month of the NCSA Origin 2000, with memory: Table 4 of Chiang and Vernon, 2001",
        build: |asked| {
            asked.repeats_not(O2k::NAME)?;
            asked.sets_not(O2k::NAME)?;
            Ok(Box::new(O2k::of(asked)?))
        },
    },
];

/// Why a model makes no log.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GenerateError {
    /// No such model.
    #[error("no model {name:?}; there {}", known_models())]
    NoSuchModel {
        /// What was asked for.
        name: String,
    },
    /// A parameter that makes no sense.
    #[error("{model}: {parameter} is {value}; it must be {wanted}")]
    Parameter {
        /// The model.
        model: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What it is.
        value: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// A parameter that the model does not have.
    #[error("{model} has no parameter {name:?}; it has {known}")]
    NoSuchParameter {
        /// The model.
        model: &'static str,
        /// What was asked for.
        name: String,
        /// The parameters that it has.
        known: String,
    },
    /// Something was asked for that the model has no use for.
    #[error("{option}: {model} {why}")]
    NotTaken {
        /// The model.
        model: &'static str,
        /// What was asked for, as the command line has it.
        option: &'static str,
        /// Why that makes no sense.
        why: &'static str,
    },
    /// The load is so low that times grow beyond what the format's reader takes.
    #[error(
        "a load of {load} spreads the jobs over {span:.0} seconds, more than a log can hold; raise the load"
    )]
    TooLong {
        /// The load that was asked for.
        load: f64,
        /// How long the log would be.
        span: f64,
    },
}

fn known_models() -> String {
    let names: Vec<_> = MODELS.iter().map(|entry| entry.name).collect();
    format!("{} {}", if names.len() == 1 { "is" } else { "are" }, names.join(", "))
}

/// The model of that name.
///
/// # Errors
/// [`GenerateError::NoSuchModel`].
pub fn find_model(name: &str) -> Result<&'static ModelEntry, GenerateError> {
    let found = MODELS.iter().find(|entry| entry.name == name);
    found.ok_or_else(|| GenerateError::NoSuchModel { name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_found_by_name() {
        for entry in MODELS {
            let model = (find_model(entry.name).unwrap().build)(&Asked::default()).unwrap();
            assert_eq!(model.name(), entry.name);
        }
        let error = find_model("feitelsen96").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no model \"feitelsen96\"; there are feitelson96, sud, sud-feitelson96, o2k"
        );
    }

    #[test]
    fn models_have_the_shape_that_is_asked_for() {
        let asked =
            Asked { jobs: Some(3), procs: Some(8), load: Some(0.5), seed: Some(1), ..Asked::default() };
        for name in [Feitelson96::NAME, Sud::NAME, Sud::SIZED_NAME] {
            let model = (find_model(name).unwrap().build)(&asked).unwrap();
            assert_eq!(model.generate().unwrap().jobs.len(), 3);
        }
    }

    #[track_caller]
    fn refused(name: &str, asked: &Asked, message: &str) {
        let error = (find_model(name).unwrap().build)(asked).err().unwrap();
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn what_a_model_has_no_use_for_is_refused() {
        let of_month = "makes the jobs of a month on a machine that is given; ask for another --month";
        for (option, asked) in [
            ("--jobs", Asked { jobs: Some(1), ..Asked::default() }),
            ("--procs", Asked { procs: Some(128), ..Asked::default() }),
            ("--load", Asked { load: Some(1.0), ..Asked::default() }),
        ] {
            refused("o2k", &asked, &format!("{option}: o2k {of_month}"));
        }
        let repeated = Asked { repeat_after_end: true, ..Asked::default() };
        refused("sud", &repeated, "--repeat-after-end: sud repeats no jobs");
        refused("o2k", &repeated, "--repeat-after-end: o2k repeats no jobs");
        let set = Asked { set: vec![("size_order".into(), "1".into())], ..Asked::default() };
        refused("sud", &set, "--set: sud has no parameters beyond its options");
        refused("o2k", &set, "--set: o2k has no parameters beyond its options");
        let month = Asked { month: Some(crate::o2k::Month::March), ..Asked::default() };
        refused("feitelson96", &month, "--month: feitelson96 is of no month; only o2k is");
    }
}
