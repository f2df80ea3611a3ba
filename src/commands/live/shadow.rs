//! `miserly shadow report`: the decisions of another policy on the daemon's queues.

use anyhow::bail;
use miserly_api::model::{ShadowFilter, ShadowGroup, ShadowReport, ShadowView};
use miserly_core::Span;
use miserly_live::shadow::of_journal;
use miserly_units::duration;

use super::text::{counted, local, plain, table};
use super::{client, print_answer, state_folder};
use crate::args::{ShadowArgs, ShadowCommand, ShadowReportArgs};

pub(crate) fn run(args: &ShadowArgs) -> anyhow::Result<()> {
    let ShadowCommand::Report(args) = &args.command;
    let report = report(args)?;
    print_answer(args.json, &report, || report.shadows.iter().map(shown).collect::<Vec<_>>().join("\n"))
}

fn report(args: &ShadowReportArgs) -> anyhow::Result<ShadowReport> {
    let ShadowReportArgs { daemon, since, queue, policy, state, .. } = args;
    if let Some(policy) = policy {
        return Ok(of_journal(&state_folder(state.as_deref())?, queue.as_deref(), policy, *since)?);
    }
    let mut report = client(daemon)?.shadow(&ShadowFilter { since: *since })?;
    if let Some(queue) = queue {
        report.shadows.retain(|shadow| shadow.queue == *queue);
    }
    if report.shadows.is_empty() {
        bail!(
            "no queue has a shadow: write shadow = \"POLICY\" for a queue in the daemon's configuration and reload it, or \
             give --policy, which reads the journal"
        );
    }
    Ok(report)
}

/// Returns a report in words and tables.
pub(crate) fn shown(shadow: &ShadowView) -> String {
    let ShadowView { queue, policy, real_policy, until, behind, waits_for, problem, all, .. } = shadow;
    let real = real_policy.as_deref().unwrap_or("not known yet");
    let mut text = format!("queue {queue}: {policy} in the shadow of {real}\n");
    text += &match until {
        Some(until) => format!("from {} to {}", local(shadow.since), local(*until)),
        None => format!("from {}; it has not begun yet", local(shadow.since)),
    };
    if *behind > 0 {
        text += &format!("; {} behind the machine", counted(*behind, "event"));
    }
    if let Some(job) = waits_for {
        text += &format!("; job {job} runs in the shadow, and its runtime is not known yet");
    }
    text += "\n";
    if let Some(problem) = problem {
        text += &format!("the shadow was stopped: {problem}\n");
    }
    for (number, what) in [
        (all.waits_in_shadow, "started on the machine only"),
        (all.waits_on_machine, "started in the shadow only"),
        (all.refused, "refused by the policy of the shadow"),
    ] {
        if number > 0 {
            text += &format!("not compared: {} {what}\n", counted(number, "job"));
        }
    }
    if all.jobs == 0 {
        return text + "no job has started in both\n";
    }
    for (name, groups) in [("DAY", &shadow.days), ("USER", &shadow.users), ("CPUS", &shadow.sizes)] {
        text += "\n";
        text += &grouped(name, groups, all);
    }
    text
}

/// Returns a table with a row for each group, and one for all jobs.
fn grouped(name: &str, groups: &[ShadowGroup], all: &ShadowGroup) -> String {
    let header =
        [name, "JOBS", "WAIT", "IN SHADOW", "DIFFERENCE", "SLOWDOWN", "IN SHADOW", "EARLIER", "LATER"];
    let compared = groups.iter().filter(|group| group.jobs > 0);
    table(&header, &header[1..], compared.chain([all]).map(row))
}

fn row(group: &ShadowGroup) -> Vec<String> {
    let time =
        |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), |seconds| duration(span(seconds)));
    let number = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |number| format!("{number:.2}"));
    let waits = group.mean_wait.zip(group.shadow_mean_wait);
    // Of the shown waits.
    let difference = waits.map(|(wait, shadow)| shadow.round() - wait.round());
    let sign = difference.map_or("", |difference| if difference < 0.0 { "-" } else { "+" });
    vec![
        plain(&group.name),
        group.jobs.to_string(),
        time(group.mean_wait),
        time(group.shadow_mean_wait),
        format!("{sign}{}", time(difference.map(f64::abs))),
        number(group.mean_slowdown),
        number(group.shadow_mean_slowdown),
        group.earlier.to_string(),
        group.later.to_string(),
    ]
}

/// Returns a span in whole seconds, which are enough for a mean.
fn span(seconds: f64) -> Span {
    #[expect(clippy::cast_possible_truncation, reason = "a cast saturates")]
    Span::from_secs(seconds.round() as i64).unwrap_or(Span::MAX)
}
