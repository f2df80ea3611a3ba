//! `miserly workload import`: other job logs, converted to the Standard Workload Format.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use miserly_import::{ImportedLog, batsim, command, slurm};
use miserly_report::{AtomicFile, import_json, import_text};

use crate::args::{ImportArgs, ImportCommand, SlurmArgs, WrittenArgs};
use crate::output::{as_json, print, refuse_the_input_itself};
use crate::read_log::{open, warn_of_size};

pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<()> {
    match &args.command {
        ImportCommand::Slurm(args) => import_slurm(args),
        ImportCommand::Batsim(args) => {
            args.written.refuse(&args.input)?;
            write(&batsim(&open(&args.input)?, &args.options())?, &args.written)
        }
    }
}

fn import_slurm(args: &SlurmArgs) -> anyhow::Result<()> {
    // Without an input, the parser requires `--command`.
    let Some(input) = &args.input else { return print(&command()) };
    args.written.refuse(input)?;
    write(&slurm(&open(input)?, &args.options())?, &args.written)
}

/// Writes the log to its file and the report to standard output. Without a file, the log goes to
/// standard output and the report to standard error.
pub(super) fn write(log: &ImportedLog, args: &WrittenArgs) -> anyhow::Result<()> {
    // A report in JSON on standard error stands alone.
    if args.output.is_some() || !args.json {
        warn_of_size(&log.report);
    }
    let report = if args.json { as_json(&import_json(&log.report))? } else { import_text(&log.report) };
    match &args.output {
        None => {
            // Standard error may be closed.
            let _ = std::io::stderr().write_all(report.as_bytes());
            log.write(std::io::stdout().lock()).context("cannot write to standard output")
        }
        Some(path) => {
            let written = AtomicFile::write(path, |output| log.write(output));
            written.with_context(|| format!("cannot write {}", path.display()))?;
            print(&report)
        }
    }
}

impl WrittenArgs {
    fn refuse(&self, input: &Path) -> anyhow::Result<()> {
        self.output.as_deref().map_or(Ok(()), |output| refuse_the_input_itself(input, "--output", output))
    }
}
