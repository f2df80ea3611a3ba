//! Logs of every format, as the Standard Workload Format.

use std::io::Write;
use std::path::Path;

use miserly_core::Procs;
use miserly_import::{ImportOptions, Report, converted};
use miserly_report::import_summary;
use miserly_workload::{Trace, TraceError};

use crate::args::ReadArgs;

/// Opens the file with that name. `-` is standard input.
pub(crate) fn open(path: &Path) -> Result<Trace, TraceError> {
    if path == Path::new("-") { Trace::stdin() } else { Trace::open(path) }
}

/// Returns the log with that name. One of another format is converted, and the remarks of the conversion are printed to
/// standard error.
///
/// `procs` are the processors of the machine, if an option gives them. Jobs keep their numbers.
pub(crate) fn read_log(
    path: &Path,
    args: &ReadArgs,
    lenient: bool,
    procs: Option<Procs>,
) -> anyhow::Result<Trace> {
    let options = ImportOptions { procs, keep_ids: true, lenient, ..args.options() };
    let (trace, report) = converted(open(path)?.filling_missing_fields(args.missing_fields), &options)?;
    if let Some(report) = report {
        show_conversion(&report);
    }
    Ok(trace)
}

/// Prints the counts of a conversion to standard error, with a warning if the machine is too small.
pub(crate) fn show_conversion(report: &Report) {
    warn_of_size(report);
    // Standard error may be closed.
    let _ = std::io::stderr().write_all(import_summary(report).as_bytes());
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
