//! From the command line to a run.

use std::path::Path;
use std::{fs, io};

use anyhow::{Context, bail};
use miserly_machine_file::{MachineError, MachineSpec};
use miserly_run::{OpportunisticMode, OpportunisticOptions, RunOptions, RunSetup};
use miserly_workload::{Estimates, Interactive, JobOptions, Trace};

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

impl RunArgs {
    /// Returns the options of a single run.
    fn single(&self, estimates: Estimates) -> anyhow::Result<RunOptions> {
        if let Some(option) = self.swept() {
            bail!("{option}: several values; this needs one");
        }
        self.options(estimates)
    }

    pub(crate) fn options(&self, estimates: Estimates) -> anyhow::Result<RunOptions> {
        Ok(RunOptions {
            procs: self.procs.first().copied(),
            machine: self.machine()?,
            jobs: JobOptions {
                estimates: self.estimates.unwrap_or(estimates),
                overrun: self.overrun,
                procs_field: self.procs_field,
                drop: self.filter.dropped(),
                lenient: self.lenient,
                from: self.from,
                to: self.to,
                arrivals: self.arrivals(),
                shake: self.shake,
                seed: self.seed,
                ..JobOptions::default()
            },
            users: self.user.clone(),
            queues: self.queue.clone(),
            event_order: self.event_order,
            warmup: self.warmup,
            opportunistic: OpportunisticOptions {
                mode: self.opportunistic_mode(),
                interactive: self.load()?,
            },
            ..RunOptions::default()
        })
    }

    fn opportunistic_mode(&self) -> OpportunisticMode {
        match self.preempt_lead_time {
            _ if self.no_opportunistic => OpportunisticMode::Off,
            Some(secs) => OpportunisticMode::Lead(secs),
            None => OpportunisticMode::ByPolicy,
        }
    }

    /// Returns the interactive load, if any: a process, or otherwise a file.
    fn load(&self) -> anyhow::Result<Option<Interactive>> {
        let Some(word) = &self.interactive else { return Ok(None) };
        if word.starts_with("poisson") {
            return Ok(Some(word.parse()?));
        }
        let text = fs::read_to_string(word).with_context(|| format!("--interactive {word}"))?;
        let name = Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or(word);
        Ok(Some(Interactive::parse(name, &text)?))
    }

    /// Returns the requested machine, if any.
    fn machine(&self) -> Result<Option<MachineSpec>, MachineError> {
        let Some(word) = &self.machine else { return Ok(None) };
        Ok(Some(machine_named(word)?.with(self.span, self.sharing)))
    }
}

/// Returns the machine of that word: a built-in name, a number of processors, or else a file.
pub(crate) fn machine_named(word: &str) -> Result<MachineSpec, MachineError> {
    MachineSpec::named(word, read_text)
}

/// Reads a machine file.
fn read_text(path: &str) -> io::Result<String> {
    let binary = || io::Error::new(io::ErrorKind::InvalidData, "it is a binary file, not TOML");
    match fs::read_to_string(path) {
        Ok(text) if text.contains('\0') => Err(binary()),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(binary()),
        read => read,
    }
}
