//! From options to a log and to the options of its run.

use std::path::Path;
use std::{fs, io};

use anyhow::{Context, bail};
use miserly_import::{Format, ImportError, ImportOptions, Report, converted, open_log};
use miserly_machine_file::{MachineError, MachineSpec};
use miserly_run::{OpportunisticMode, OpportunisticOptions, RunOptions};
use miserly_workload::{Estimates, Interactive, JobOptions, Trace};

use crate::read::ReadArgs;
use crate::run::RunArgs;

/// Opens the file with that name, the files that match a pattern, or those of a folder. `-` is standard input.
///
/// # Errors
/// If there is no such file.
pub fn open(path: &Path) -> anyhow::Result<Trace> {
    if path == Path::new("-") { Ok(Trace::stdin()?) } else { Ok(open_log(path)?) }
}

/// Returns the log with that name. One of another format is converted, with the counts of the conversion.
///
/// # Errors
/// If it cannot be read or converted.
pub fn read(
    path: &Path,
    args: &ReadArgs,
    options: &ImportOptions,
) -> anyhow::Result<(Trace, Option<Report>)> {
    let trace = open(path)?.filling_missing_fields(args.missing_fields);
    let is_table = args.conversion.columns().is_some();
    // Every line of an unknown format is malformed, and counted.
    if options.lenient && !is_table && matches!(Format::of(&trace), Err(ImportError::UnknownFormat { .. })) {
        return Ok((trace, None));
    }
    Ok(converted(trace, options)?)
}

impl RunArgs {
    /// Returns the options of a single run. `estimates` is the default of the estimate model.
    ///
    /// # Errors
    /// If an option has several values, or names a file that cannot be read.
    pub fn single(&self, estimates: Estimates) -> anyhow::Result<RunOptions> {
        if let Some(option) = self.swept() {
            bail!("{option}: several values; this needs one");
        }
        self.options(estimates)
    }

    /// Returns the options of the first run. `estimates` is the default of the estimate model.
    ///
    /// # Errors
    /// If an option names a file that cannot be read.
    pub fn options(&self, estimates: Estimates) -> anyhow::Result<RunOptions> {
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
///
/// # Errors
/// If it is none of them.
pub fn machine_named(word: &str) -> Result<MachineSpec, MachineError> {
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
