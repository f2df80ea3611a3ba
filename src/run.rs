//! From the command line to a run.

use std::fs;
use std::path::Path;

use miserly_lab::{MachineError, MachineSpec, PrepareError, Prepared, RunOptions};
use miserly_workload::{Estimates, Trace, TraceError};

use crate::args::RunArgs;

/// The log of that name; `-` is standard input.
pub(crate) fn open(path: &Path) -> Result<Trace, TraceError> {
    if path == Path::new("-") { Trace::stdin() } else { Trace::open(path) }
}

/// The log, ready to be run; `estimates` are those of a command line that says nothing of them.
pub(crate) fn prepare(trace: Trace, args: &RunArgs, estimates: Estimates) -> Result<Prepared, PrepareError> {
    Prepared::new(trace, args.options(estimates)?)
}

impl RunArgs {
    fn options(&self, estimates: Estimates) -> Result<RunOptions, MachineError> {
        Ok(RunOptions {
            procs: self.procs,
            machine: self.machine()?,
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
        })
    }

    /// The machine that is asked for, if one is.
    fn machine(&self) -> Result<Option<MachineSpec>, MachineError> {
        let Some(word) = &self.machine else { return Ok(None) };
        let spec = MachineSpec::named(word, |path| fs::read_to_string(path))?;
        Ok(Some(spec.with(self.span.map(Into::into), self.sharing.map(Into::into))))
    }
}
