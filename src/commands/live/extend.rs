//! `miserly extend`: a longer window, if no promise breaks.

use std::process::ExitCode;

use super::show::summary;
use super::text::Instants;
use super::{client, print_answer};
use crate::args::ExtendArgs;

pub(crate) fn run(args: &ExtendArgs) -> anyhow::Result<ExitCode> {
    // At most 10^10, which a double holds exactly.
    let job = client(&args.job.daemon)?.extend(args.job.job, args.by as f64)?;
    print_answer(args.job.json, &job, || {
        format!("job {}: {}\n", job.number, summary(&job, Instants::short()))
    })?;
    Ok(ExitCode::SUCCESS)
}
