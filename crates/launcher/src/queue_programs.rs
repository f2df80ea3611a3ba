//! The programs of queues in attempts that have ended, for the log, the metrics and the engine.

use miserly_engine::Attempt;
use miserly_launch::{AttemptEnd, ProgramKind, ProgramReport};

use crate::site::{Found, Host};

/// Logs and counts the programs that failed. Returns the failure of the epilog.
pub(crate) fn note(host: &impl Host, attempt: Attempt, end: &AttemptEnd) -> Option<String> {
    let reports = [
        (ProgramKind::Prolog, &end.prolog),
        (ProgramKind::Epilog, &end.epilog),
        (ProgramKind::Checkpoint, &end.checkpoint),
    ];
    for (kind, report) in reports {
        if let Some(report) = report {
            log(attempt, kind, report);
            if report.failure.is_some() {
                host.count_failure(kind);
            }
        }
    }
    Some(end.epilog.as_ref()?.failure.as_ref()?.to_string())
}

/// As [`note`], for an attempt that was found.
pub(crate) fn note_found<H: Host>(host: &H, attempt: Attempt, found: &Found<H::Shim>) -> Option<String> {
    match found {
        Found::Ended(end) => note(host, attempt, end),
        Found::Alive(_) | Found::Lost(_) | Found::NeverRan => None,
    }
}

fn log(attempt: Attempt, kind: ProgramKind, ProgramReport { failure, output }: &ProgramReport) {
    let (job, name) = (attempt.job, kind.name());
    let output = if output.is_empty() { String::new() } else { format!("; its output: {output}") };
    match failure {
        Some(failure) => tracing::warn!("job {job}: {name} failed: {failure}{output}"),
        None if output.is_empty() => {}
        None => tracing::info!("job {job}: {name} ended{output}"),
    }
}
