//! The history as a table.

use jiff::Timestamp;
use miserly_api::model::Exit;
use miserly_core::Span;
use miserly_engine::wall_span;
use miserly_experiments::Table;
use miserly_live::history::{FinishedJob, JobOutcome};
use serde_json::Value;

use crate::commands::live::text::ranges;

/// The columns. Instants are in seconds since 1970, durations in seconds, memory in kilobytes, input and output in bytes.
const COLUMNS: [&str; 26] = [
    "job",
    "array",
    "index",
    "name",
    "uid",
    "queue",
    "cpus",
    "memory_kb",
    "time",
    "submitted",
    "started",
    "ended",
    "wait",
    "runtime",
    "suspended",
    "runs",
    "outcome",
    "exit",
    "cpu_user",
    "cpu_system",
    "memory_peak_kb",
    "io_read",
    "io_written",
    "stops",
    "usage_of",
    "cpu_numbers",
];

/// Returns the table, with one row for each job.
pub(super) fn table(jobs: &[FinishedJob]) -> Table {
    Table { columns: COLUMNS.map(str::to_owned).into(), cells: jobs.iter().map(row).collect() }
}

fn row(job: &FinishedJob) -> Vec<Option<Value>> {
    vec![
        Some(job.number.into()),
        job.array.map(|array| array.first.into()),
        job.array.map(|array| array.index.into()),
        Some(job.name.clone().into()),
        Some(job.uid.into()),
        Some(job.queue.clone().into()),
        Some(job.cpus.into()),
        Some(job.memory.into()),
        Some(span(job.time)),
        Some(instant(job.submitted)),
        job.started.map(|started| instant(started.max(job.submitted))),
        Some(instant(job.ended)),
        // A start is rounded to another microsecond than the submission.
        Some(span(wall_span(job.submitted, job.started.unwrap_or(job.ended)).max(Span::ZERO))),
        job.runtime().map(span),
        job.started.map(|_| span(job.suspended_time)),
        Some(job.runs.into()),
        Some(job.outcome.as_str().into()),
        exit(job.outcome).map(Value::from),
        job.usage.map(|usage| unsigned_seconds(usage.user)),
        job.usage.map(|usage| unsigned_seconds(usage.system)),
        job.usage.and_then(|usage| Some(usage.memory_peak?.div_ceil(1024).into())),
        job.usage.and_then(|usage| Some(usage.io_read?.into())),
        job.usage.and_then(|usage| Some(usage.io_written?.into())),
        job.usage.map(|usage| usage.stops.into()),
        job.usage.map(|usage| if usage.of_processes { "processes" } else { "group" }.into()),
        (!job.cpu_ranges.is_empty()).then(|| ranges(&job.cpu_ranges).into()),
    ]
}

/// Returns an instant in seconds since 1970.
fn instant(at: Timestamp) -> Value {
    (at.as_microsecond() as f64 / 1e6).into()
}

/// Returns a duration in seconds.
fn span(span: Span) -> Value {
    span.as_secs_f64().into()
}

/// Returns microseconds in seconds.
fn unsigned_seconds(micros: u64) -> Value {
    (micros as f64 / 1e6).into()
}

/// Returns the exit code, as a shell has it: 128 and the signal, if a signal ended the job.
fn exit(outcome: JobOutcome) -> Option<i32> {
    match outcome {
        JobOutcome::Done(Exit::Code(code)) => Some(code),
        JobOutcome::Done(Exit::Signal(signal)) => Some(128 + signal),
        _ => None,
    }
}
