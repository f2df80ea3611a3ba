//! The options of a workload model.

use clap::Args;
use miserly_core::Procs;
use miserly_workload::generate::{Model, ModelOptions, find_model};
use miserly_workload::o2k::Month;

use crate::values::procs;

/// The options of a workload model.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// The model: feitelson96 (Feitelson 1996, section 3.5), sud or sud-feitelson96 (Zotkin et al. 2000, section 3),
    /// lublin99 (Lublin and Feitelson 1999, with the draws of the archive's program), o2k (Chiang and Vernon 2001, section 3; takes --month, but not --jobs, --procs or --load)
    #[arg(long, value_name = "MODEL", default_value = "feitelson96")]
    pub model: String,
    /// The number of jobs [default: 10000; sud: 18415]
    #[arg(long, value_name = "N")]
    pub jobs: Option<u64>,
    /// The processors of the machine [default: 128; sud: 256]
    #[arg(long, value_name = "P", value_parser = procs(), allow_negative_numbers = true)]
    pub procs: Option<Procs>,
    /// The offered load: the work of the jobs over the capacity until the last submission [default: 0.85; sud: 0.765; lublin99: that of its arrivals]
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    pub load: Option<f64>,
    /// The seed of the random numbers; a seed always gives the same bytes [default: 1]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// The month of o2k, from 1999-10 to 2000-03, after seven days of warm-up [default: 1999-10]
    #[arg(long, value_name = "MONTH")]
    pub month: Option<Month>,
    /// Submits each repetition of a job after the end of the previous one
    #[arg(long)]
    pub repeat_after_end: bool,
    /// A parameter of feitelson96 or lublin99, such as size_order=1.2 or types=all; repeatable. The header of the log lists all
    #[arg(long, value_name = "NAME=VALUE", value_parser = parameter)]
    pub set: Vec<(String, String)>,
}

impl ModelArgs {
    /// Returns the model with its parameters.
    ///
    /// # Errors
    /// If there is no such model, or it does not take an option.
    pub fn build(&self) -> anyhow::Result<Box<dyn Model>> {
        let options = ModelOptions {
            jobs: self.jobs,
            procs: self.procs,
            load: self.load,
            seed: self.seed,
            month: self.month,
            repeat_after_end: self.repeat_after_end,
            set: self.set.clone(),
        };
        Ok((find_model(&self.model)?.build)(&options)?)
    }
}

/// Parses a parameter of a model: its name and its value.
fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("no = found; write NAME=VALUE, such as size_order=1.2")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
