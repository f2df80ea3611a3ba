//! Logs of every form, as the Standard Workload Format.

use std::io::Write;
use std::path::Path;

use miserly_core::Procs;
use miserly_import::{BatsimOptions, Form, Report, SlurmOptions, batsim, slurm};
use miserly_report::import_summary;
use miserly_workload::{Trace, TraceError};

use crate::args::ReadArgs;

/// Opens the file with that name. `-` is standard input.
pub(crate) fn open(path: &Path) -> Result<Trace, TraceError> {
    if path == Path::new("-") { Trace::stdin() } else { Trace::open(path) }
}

/// Returns the log with that name. One of another form is converted, and the remarks of the conversion are printed to
/// standard error.
///
/// `procs` are the processors of the machine, if an option gives them. Jobs keep their numbers.
pub(crate) fn read_log(
    path: &Path,
    args: &ReadArgs,
    lenient: bool,
    procs: Option<Procs>,
) -> anyhow::Result<Trace> {
    let trace = open(path)?.filling_missing_fields(args.missing_fields);
    let log = match Form::of(&trace) {
        Ok(Form::Swf) => return Ok(trace),
        // Every line of it is malformed, and counted.
        Err(_) if lenient => return Ok(trace),
        Err(error) => return Err(error.into()),
        Ok(Form::Slurm) => {
            let time_zone = args.time_zone.clone();
            slurm(
                &trace,
                &SlurmOptions { procs, time_zone, keep_ids: true, lenient, ..SlurmOptions::default() },
            )?
        }
        Ok(Form::Batsim) => batsim(&trace, &BatsimOptions { procs })?,
    };
    warn_of_size(&log.report);
    // Standard error may be closed.
    let _ = std::io::stderr().write_all(import_summary(&log.report).as_bytes());
    let mut text = Vec::new();
    log.write(&mut text)?;
    Ok(trace.with_text(text))
}

/// Warns if the log used more at one instant than the machine has.
pub(crate) fn warn_of_size(report: &Report) {
    if let (Some(procs), Some(busiest)) = (report.procs, report.busiest)
        && busiest > procs.get()
    {
        note!(
            "warning: {}: the machine has {procs} processors, but up to {busiest} were in use at once; check --procs",
            report.name
        );
    }
}
