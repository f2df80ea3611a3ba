//! `miserly workload convert` with the name of a form: other job logs, converted to the Standard Workload Format.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use miserly_import::{Format, Imported, batsim, command, imported};
use miserly_report::{AtomicFile, import_json, import_text};

use crate::args::{AccountingArgs, ImportCommand, SlurmArgs, WrittenArgs};
use crate::output::{as_json, print, refuse_the_input_itself, to_file};
use crate::read_log::{open, warn_of_size};

pub(super) fn run(form: &ImportCommand) -> anyhow::Result<()> {
    match form {
        ImportCommand::Slurm(args) => import_slurm(args),
        ImportCommand::Pbs(args) => import_as(Format::Pbs, &args.input, &args.accounting),
        ImportCommand::Lsf(args) => import_as(Format::Lsf, &args.input, &args.accounting),
        ImportCommand::Sge(args) => import_as(Format::GridEngine, &args.input, &args.accounting),
        ImportCommand::Table(args) => import_as(Format::Table, &args.input, &args.accounting),
        ImportCommand::Batsim(args) => {
            args.written.refuse(&args.input)?;
            write(&batsim(&open(&args.input)?, &args.options())?.sorted()?, &args.written)
        }
    }
}

fn import_slurm(args: &SlurmArgs) -> anyhow::Result<()> {
    // Without an input, the parser requires `--command`.
    let Some(input) = &args.input else { return print(&command()) };
    import_as(Format::Slurm, input, &args.accounting)
}

/// Imports accounting of this format. That of Slurm may be in JSON.
fn import_as(format: Format, input: &Path, args: &AccountingArgs) -> anyhow::Result<()> {
    args.written.refuse(input)?;
    if format != Format::Table && args.conversion.columns().is_some() {
        bail!("--preset and --columns are for a table: workload convert table");
    }
    let trace = open(input)?;
    let is_json = format == Format::Slurm && Format::of(&trace).is_ok_and(|found| found == Format::SlurmJson);
    let format = if is_json { Format::SlurmJson } else { format };
    write(&imported(&trace, format, &args.options())?, &args.written)
}

/// Writes the log to its file and the report to standard output. Without a file, the log goes to
/// standard output and the report to standard error.
pub(super) fn write(imported: &Imported, args: &WrittenArgs) -> anyhow::Result<()> {
    let Imported { log, report } = imported;
    // A report in JSON on standard error stands alone.
    let file = to_file(args.output.as_deref());
    if file.is_some() || !args.json {
        warn_of_size(report);
    }
    let text = if args.json { as_json(&import_json(report))? } else { import_text(report) };
    match file {
        None => {
            // Standard error may be closed.
            let _ = std::io::stderr().write_all(text.as_bytes());
            log.write(std::io::stdout().lock()).context("cannot write to standard output")
        }
        Some(path) => {
            let written = AtomicFile::write(path, |output| log.write(output));
            written.with_context(|| format!("cannot write {}", path.display()))?;
            print(&text)
        }
    }
}

impl WrittenArgs {
    fn refuse(&self, input: &Path) -> anyhow::Result<()> {
        self.output.as_deref().map_or(Ok(()), |output| refuse_the_input_itself(input, "--output", output))
    }
}
