//! Warnings about the jobs of a run.

use std::collections::BTreeSet;

use anyhow::bail;
use miserly_policies::PolicySpec;
use miserly_report::{count, nothing_measured};
use miserly_run::{RunDoc, RunSetup, SettingsDoc};

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

/// Prints a warning for each fact of jobs that these policies use and that the log lacks. Each run has a policy and the number
/// of its jobs.
///
/// # Errors
/// If a log cannot be read.
pub(crate) fn warn_of_missing_facts<'a>(
    runs: impl IntoIterator<Item = (&'a RunSetup, &'a PolicySpec, u64)>,
) -> anyhow::Result<()> {
    let mut warnings = BTreeSet::new();
    for (setup, policy, jobs) in runs {
        let counts = setup.line_counts()?;
        let lack =
            [counts.without_user, counts.without_group, counts.without_memory, counts.without_estimate];
        let missing = missing_facts(&policy.to_string(), &setup.settings(), jobs, lack);
        warnings.extend(missing.into_iter().map(|text| format!("{}: {text}", setup.name())));
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
    let lack = [jobs.without_user, jobs.without_group, jobs.without_memory, jobs.without_estimate];
    let missing = missing_facts(&run.policy, &run.settings, jobs.simulated, lack);
    wide.into_iter().chain(deviations).chain(nothing_measured(run)).chain(missing).collect()
}

/// Policies that never look at an estimate, unless their order does.
const WITHOUT_ESTIMATES: [&str; 3] = ["fcfs", "gang", "eqspatial"];

/// Returns a warning for each fact of jobs that the policy uses and that nine of ten of `all` jobs lack. The counts are of those
/// without a user, a group, memory, and an estimate.
fn missing_facts(
    name: &str,
    settings: &SettingsDoc,
    all: u64,
    [user, group, memory, estimate]: [u64; 4],
) -> Vec<String> {
    let Ok(policy) = name.parse::<PolicySpec>() else { return vec![] };
    let order = policy.order_uses();
    let estimates = order.estimate || !WITHOUT_ESTIMATES.contains(&policy.descriptor().name);
    let of_log = settings.estimates.starts_with("trace");
    let of_machine = settings.machine.hosts.iter().any(|hosts| hosts.memory.is_some());
    let facts = [
        (order.user, user, "a user", "its order takes them as jobs of one user"),
        (policy.learns_from_users(), user, "a user", "it takes their estimates as predictions"),
        (order.group, group, "a group", "its order takes them as jobs of one group"),
        (order.memory, memory, "memory", "its order takes it as 0"),
        (of_machine, memory, "memory", "they fit where processors are free"),
        (estimates && of_log, estimate, "an estimate", "it knows their runtimes instead"),
    ];
    let missing = facts.into_iter().filter(|(uses, lack, ..)| *uses && *lack > 0 && 10 * lack >= 9 * all);
    let warning = |(_, lack, fact, instead)| {
        format!("{name}: {} of {} jobs are without {fact}; {instead}", count(lack), count(all))
    };
    missing.map(warning).collect()
}
