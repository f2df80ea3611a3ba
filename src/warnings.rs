//! Warnings about the jobs of a run.

use std::collections::BTreeSet;

use anyhow::bail;
use miserly_policies::PolicySpec;
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

/// Prints a warning for each fact of jobs that the policies of these runs use and that the log lacks.
pub(crate) fn warn_of_missing_facts<'a>(runs: impl IntoIterator<Item = &'a RunDoc>) {
    let warning = |run: &RunDoc| {
        missing_facts(run).into_iter().map(|text| format!("{}: {text}", run.trace.name)).collect::<Vec<_>>()
    };
    let warnings: BTreeSet<String> = runs.into_iter().flat_map(warning).collect();
    for warning in warnings {
        note!("{} {warning}", message_head("warning"));
    }
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
    wide.into_iter().chain(deviations).chain(nothing_measured(run)).chain(missing_facts(run)).collect()
}

/// Policies that never look at an estimate, unless their order does.
const WITHOUT_ESTIMATES: [&str; 3] = ["fcfs", "gang", "eqspatial"];

/// Returns a warning for each fact of jobs that the policy uses and that nine of ten jobs of the log lack.
fn missing_facts(run: &RunDoc) -> Vec<String> {
    let Ok(policy) = run.policy.parse::<PolicySpec>() else { return vec![] };
    let (jobs, order) = (&run.jobs, policy.order_uses());
    let all = jobs.simulated;
    let estimates = order.estimate || !WITHOUT_ESTIMATES.contains(&policy.descriptor().name);
    let of_log = run.settings.estimates.starts_with("trace");
    let of_machine = run.settings.machine.hosts.iter().any(|hosts| hosts.memory.is_some());
    let facts = [
        (order.user, jobs.without_user, "a user", "its order takes them as jobs of one user"),
        (policy.learns_from_users(), jobs.without_user, "a user", "it takes their estimates as predictions"),
        (order.group, jobs.without_group, "a group", "its order takes them as jobs of one group"),
        (order.memory, jobs.without_memory, "memory", "its order takes it as 0"),
        (of_machine, jobs.without_memory, "memory", "they fit where processors are free"),
        (estimates && of_log, jobs.without_estimate, "an estimate", "it knows their runtimes instead"),
    ];
    let missing = facts.into_iter().filter(|(uses, lack, ..)| *uses && *lack > 0 && 10 * lack >= 9 * all);
    let warning = |(_, lack, fact, instead)| {
        format!("{}: {} of {} jobs are without {fact}; {instead}", run.policy, count(lack), count(all))
    };
    missing.map(warning).collect()
}
