//! Logs of every format, as the Standard Workload Format.

use std::io::Write;
use std::path::Path;

use miserly_core::Procs;
use miserly_import::{ImportOptions, Report, converted};
pub(crate) use miserly_options::open;
use miserly_report::import_summary;
use miserly_workload::Trace;

use crate::args::{ReadArgs, RewriteArgs};

/// Returns the log with that name. One of another format is converted, and the counts of the conversion are printed to
/// standard error.
///
/// `procs` are the processors of the machine, if an option gives them. Jobs keep their numbers.
pub(crate) fn read_log(
    path: &Path,
    args: &ReadArgs,
    lenient: bool,
    procs: Option<Procs>,
) -> anyhow::Result<Trace> {
    read_as(path, args, &ImportOptions { procs, lenient, keep_ids: true, ..args.conversion.options() })
}

/// Returns the log as [`read_log`] does, for a command that writes its jobs: without the ids of users and groups, and the numbers of
/// jobs, unless they are to be kept.
pub(crate) fn read_to_write(
    path: &Path,
    RewriteArgs { keep_ids, lenient, read }: &RewriteArgs,
    procs: Option<Procs>,
) -> anyhow::Result<Trace> {
    let (keep_ids, lenient) = (*keep_ids, *lenient);
    read_as(path, read, &ImportOptions { procs, lenient, keep_ids, ..read.conversion.options() })
}

fn read_as(path: &Path, args: &ReadArgs, options: &ImportOptions) -> anyhow::Result<Trace> {
    Ok(shown(miserly_options::read_log(path, args, options)?))
}

/// Returns the log as [`read_log`] does, for a command that counts malformed lines.
pub(crate) fn read_to_count(path: &Path, args: &ReadArgs, procs: Option<Procs>) -> anyhow::Result<Trace> {
    let trace = open(path)?.filling_missing_fields(args.missing_fields);
    let options = ImportOptions { procs, lenient: true, keep_ids: true, ..args.conversion.options() };
    Ok(shown(converted(trace, &options)?))
}

/// Returns a log, with the counts of its conversion printed.
fn shown((trace, report): (Trace, Option<Report>)) -> Trace {
    if let Some(report) = report {
        show_conversion(&report);
    }
    trace
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
