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

mod random;

mod arrivals;

mod feitelson96;

mod sud;

pub use feitelson96::Feitelson96;
pub use log::{Made, MadeLog};
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
    /// The shape that it has where nobody says otherwise.
    pub shape: Shape,
    /// The model with this shape and its other parameters as they come.
    pub build: fn(Shape) -> Box<dyn Model>,
}

/// Every model.
pub const MODELS: &[ModelEntry] = &[
    ModelEntry {
        name: Feitelson96::NAME,
        about: "Rigid jobs, mostly small and of interesting sizes, repeated in runs (Feitelson, 1996)",
        shape: Shape { jobs: 10_000, procs: 128, load: 0.85, seed: 1 },
        build: |shape| Box::new(Feitelson96::with_shape(shape)),
    },
    ModelEntry {
        name: Sud::NAME,
        about: "Rigid jobs of uniform runtimes, 1 to 240 minutes, and sizes (Zotkin, Keleher, Perkovic, 2000)",
        shape: Sud::SHAPE,
        build: |shape| Box::new(Sud::with_shape(shape)),
    },
    ModelEntry {
        name: Sud::SIZED_NAME,
        about: "The same with the sizes of feitelson96",
        shape: Sud::SIZED_SHAPE,
        build: |shape| Box::new(Sud { sizes: SudSizes::Feitelson96, ..Sud::with_shape(shape) }),
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
        let shape = Shape { jobs: 3, procs: 8, load: 0.5, seed: 1 };
        for entry in MODELS {
            let model = (find_model(entry.name).unwrap().build)(shape);
            assert_eq!(model.name(), entry.name);
            assert_eq!(model.generate().unwrap().jobs.len(), 3);
        }
        let error = find_model("feitelsen96").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no model \"feitelsen96\"; there are feitelson96, sud, sud-feitelson96"
        );
    }
}
