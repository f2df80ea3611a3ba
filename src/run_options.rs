//! From the command line to a run.

use std::path::Path;

use miserly_run::RunSetup;
use miserly_workload::{Estimates, Trace};

use crate::args::RunArgs;
use crate::read_log::read_log;

/// Returns the log of that name as a run setup. `estimates` is the default of the estimate model.
pub(crate) fn prepare(path: &Path, args: &RunArgs, estimates: Estimates) -> anyhow::Result<RunSetup> {
    let options = args.single(estimates)?;
    Ok(RunSetup::new(read_log(path, &args.read, args.lenient, options.procs)?, options)?)
}

/// Returns a generated log as a run setup.
pub(crate) fn prepare_generated(
    trace: Trace,
    args: &RunArgs,
    estimates: Estimates,
) -> anyhow::Result<RunSetup> {
    Ok(RunSetup::new(trace, args.single(estimates)?)?)
}

/// Returns the setup of another run on the log of `other`, which is read and surveyed once.
pub(crate) fn prepare_another(
    other: &RunSetup,
    args: &RunArgs,
    estimates: Estimates,
) -> anyhow::Result<RunSetup> {
    Ok(other.with_options(args.single(estimates)?)?)
}
