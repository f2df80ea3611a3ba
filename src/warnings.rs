//! Warnings about the jobs of a run.

use std::collections::BTreeSet;

use anyhow::bail;
use miserly_report::{count, nothing_measured};
use miserly_run::RunDoc;

use crate::colour::message_head;

/// The skip reason of jobs that are wider than the machine.
const TOO_WIDE: &str = "too_wide";

/// Prints warnings about the jobs of these runs, once for each log and machine.
///
/// # Errors
/// If no job was simulated.
pub(crate) fn warn<'a>(runs: impl IntoIterator<Item = &'a RunDoc>) -> anyhow::Result<()> {
    let (mut warnings, mut simulated, mut seen) = (Vec::new(), 0, BTreeSet::new());
    for run in runs {
        simulated += run.jobs.simulated;
        for warning in of_run(run) {
            let text = format!("{}: {warning}", run.trace.name);
            if seen.insert(text.clone()) {
                warnings.push(text);
            }
        }
    }
    if simulated == 0 {
        bail!("{}", warnings.join("; "));
    }
    for warning in warnings {
        note!("{} {warning}", message_head("warning"));
    }
    Ok(())
}

/// Returns the warnings about the jobs of a run.
fn of_run(run: &RunDoc) -> Vec<String> {
    let jobs = &run.jobs;
    if jobs.simulated == 0 {
        let reasons = jobs.skipped.iter().map(|(reason, number)| format!("{} {reason}", count(*number)));
        return vec![format!(
            "no job to simulate of {} ({}); change the filters or the machine",
            count(jobs.read),
            reasons.collect::<Vec<_>>().join(", ")
        )];
    }
    let wide = jobs.skipped.get(TOO_WIDE).map(|number| {
        format!(
            "{} of {} jobs are wider than the machine ({} processors) and left out",
            count(*number),
            count(jobs.read),
            count(run.settings.procs.into())
        )
    });
    let deviations = [
        (jobs.extra_fields, "have more than 18 fields, and the further ones are ignored"),
        (jobs.missing_fields, "have fewer than 18 fields, and the missing ones are unknown"),
        (jobs.decimals, "have whole numbers with decimals, such as 30.0"),
    ];
    let deviations = deviations
        .into_iter()
        .filter(|(lines, _)| *lines > 0)
        .map(|(lines, how)| format!("{} of {} lines {how}", count(lines), count(jobs.read)));
    wide.into_iter().chain(deviations).chain(nothing_measured(run)).collect()
}
