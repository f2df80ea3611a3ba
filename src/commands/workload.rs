//! `miserly workload`: the content and the anomalies of a log, and logs from a model or another
//! format.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use miserly_core::Procs;
use miserly_report::{AtomicFile, check_json, check_text, describe_json, describe_text};
use miserly_workload::check::{Anomaly, Severity};
use miserly_workload::generate::{GeneratedLog, Model, ModelOptions, find_model};
use miserly_workload::{CheckReport, Trace, TraceError, check, describe};
use serde_json::Value;

use crate::args::{CheckArgs, DescribeArgs, GenerateArgs, ReadArgs, WorkloadArgs, WorkloadCommand};
use crate::commands::{columns, import};
use crate::output::{print, print_json};
use crate::read_log::read_to_count;

pub(crate) fn run(args: &WorkloadArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        WorkloadCommand::Describe(args) => describe_logs(args)?,
        WorkloadCommand::Check(args) => return check_logs(args),
        WorkloadCommand::Generate(args) => generate_log(args)?,
        WorkloadCommand::Import(args) => import::run(args)?,
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
            note!("{}: the lines are those of the converted log (miserly workload import)", trace.name());
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

fn generate_log(args: &GenerateArgs) -> anyhow::Result<()> {
    let log = args.model()?.generate()?;
    match &args.output {
        None => write_to_stdout(&log),
        Some(path) => {
            let written = AtomicFile::write(path, |output| log.write(output));
            written.with_context(|| format!("cannot write {}", path.display()))
        }
    }
}

fn write_to_stdout(log: &GeneratedLog) -> anyhow::Result<()> {
    let mut text = Vec::new();
    log.write(&mut text)?;
    print(&String::from_utf8_lossy(&text))
}

impl GenerateArgs {
    /// Returns the model with its parameters.
    pub(crate) fn model(&self) -> anyhow::Result<Box<dyn Model>> {
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
