//! From the command line to a run.

use std::path::Path;

use miserly_lab::{PrepareError, Prepared, RunOptions};
use miserly_workload::{Estimates, Trace, TraceError};

use crate::args::RunArgs;

/// The log of that name; `-` is standard input.
pub(crate) fn open(path: &Path) -> Result<Trace, TraceError> {
    if path == Path::new("-") { Trace::stdin() } else { Trace::open(path) }
}

/// The log, ready to be run; `estimates` are those of a command line that says nothing of them.
pub(crate) fn prepare(trace: Trace, args: &RunArgs, estimates: Estimates) -> Result<Prepared, PrepareError> {
    Prepared::new(trace, args.options(estimates))
}

impl RunArgs {
    fn options(&self, estimates: Estimates) -> RunOptions {
        RunOptions {
            procs: self.procs,
            estimates: self.estimates.unwrap_or(estimates),
            overrun: self.overrun.into(),
            instants: self.instants.into(),
            procs_field: self.procs_field.into(),
            drop: self.drop.clone(),
            lenient: self.lenient,
            from: self.from,
            to: self.to,
            users: self.user.clone(),
            queues: self.queue.clone(),
            arrivals: self.arrivals(),
            warmup: self.warmup,
            seed: self.seed,
            details: false,
            by: Vec::new(),
        }
    }
}
