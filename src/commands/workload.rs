//! `miserly workload`: the content and the anomalies of a log, and logs from a model or another
//! format.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use miserly_core::Procs;
use miserly_report::{AtomicFile, check_json, check_text, describe_json, describe_text};
use miserly_workload::check::{Anomaly, Severity};
use miserly_workload::{CheckReport, Resampling, Trace, TraceError, check, describe, resample};
use serde_json::Value;

use crate::args::{CheckArgs, DescribeArgs, ReadArgs, ResampleArgs, WorkloadArgs, WorkloadCommand};
use crate::commands::{columns, convert, slice};
use crate::output::{print, print_json, refuse_the_input_itself, to_file};
use crate::read_log::read_to_count;

pub(crate) fn run(args: &WorkloadArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        WorkloadCommand::Describe(args) => describe_logs(args)?,
        WorkloadCommand::Check(args) => return check_logs(args),
        WorkloadCommand::Generate(args) => {
            let log = args.model.build()?.generate()?;
            write_log(args.output.as_deref(), |output| log.write(output))?;
        }
        WorkloadCommand::Resample(args) => resample_log(args)?,
        WorkloadCommand::Convert(args) => convert::run(args)?,
        WorkloadCommand::Slice(args) => slice::run(args)?,
        WorkloadCommand::Columns(args) => columns::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn describe_logs(args: &DescribeArgs) -> anyhow::Result<()> {
    let logs =
        of_each(&args.traces, &args.read, args.procs, |trace| describe(trace, args.procs, args.procs_field))?;
    if args.json {
        return print_documents(&logs, |log| describe_json(log, &args.estimate));
    }
    print_texts(&logs, |log| describe_text(log, &args.estimate))
}

fn check_logs(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let checked = |trace: &Trace| {
        if trace.is_converted() {
            note!("{}: the lines are those of the converted log (miserly workload convert)", trace.name());
        }
        check(trace, args.procs, args.procs_field)
    };
    let reports = of_each(&args.traces, &args.read, args.procs, checked)?;
    if args.json {
        print_documents(&reports, check_json)?;
    } else {
        print_texts(&reports, |report| check_text(report, args.lines))?;
    }
    // With --procs, the header needs no machine size.
    let is_error = |anomaly: &Anomaly| {
        anomaly.severity() == Severity::Error && (*anomaly != Anomaly::NoMachineSize || args.procs.is_none())
    };
    let fails =
        |report: &CheckReport| report.findings.keys().any(is_error) || args.strict && !report.is_clean();
    let failed = reports.iter().any(fails);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the result of `make` for each log.
fn of_each<T>(
    paths: &[PathBuf],
    args: &ReadArgs,
    procs: Option<Procs>,
    make: impl Fn(&Trace) -> Result<T, TraceError>,
) -> anyhow::Result<Vec<T>> {
    paths.iter().map(|path| Ok(make(&read_to_count(path, args, procs)?)?)).collect()
}

/// Prints one document as it is, several as a list.
fn print_documents<T>(made: &[T], document: impl Fn(&T) -> Value) -> anyhow::Result<()> {
    match made {
        [one] => print_json(&document(one)),
        several => print_json(&several.iter().map(document).collect::<Vec<_>>()),
    }
}

fn print_texts<T>(made: &[T], text: impl Fn(&T) -> String) -> anyhow::Result<()> {
    print(&made.iter().map(text).collect::<Vec<_>>().join("\n"))
}

fn resample_log(args: &ResampleArgs) -> anyhow::Result<()> {
    if let Some(output) = &args.output {
        refuse_the_input_itself(&args.trace, "--output", output)?;
    }
    let trace = read_to_count(&args.trace, &args.read, None)?;
    let ResampleArgs { weeks, users, long_term, seed, .. } = *args;
    let log = resample(&trace, &Resampling { weeks, users, lasting: long_term, seed })?;
    write_log(args.output.as_deref(), |output| log.write(output))
}

/// Writes a log to a file, or else to standard output.
fn write_log(
    output: Option<&Path>,
    write: impl Fn(&mut dyn io::Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    match to_file(output) {
        None => {
            let mut text = Vec::new();
            write(&mut text)?;
            print(&String::from_utf8_lossy(&text))
        }
        Some(path) => {
            let written = AtomicFile::write(path, |output| write(output));
            written.with_context(|| format!("cannot write {}", path.display()))
        }
    }
}
