//! Tables of runs and comparisons.

use miserly_core::Span;
use miserly_units::{duration, duration_rounded, span_of_seconds};

use super::details::DifferenceDoc;
use super::document::{MeasureDoc, OpportunisticDoc, RunDoc, SettingsDoc, SuspensionDoc};
use super::group_tables;
use super::layout::TextTable;
use super::slicing::{BatchSettings, SlicingDoc};
use crate::numbers::{count, figure, percent};

/// Formats one run as a table, below its settings and above its breakdowns.
///
/// Tables wider than `width` characters are folded; `None` is unlimited.
pub fn simulate_table(outcome: &RunDoc, width: Option<usize>) -> String {
    let mut text = heading(outcome);
    text.push_str(&format!("\n{}\n\n", measure_table(outcome).table(width)));
    for (name, value) in facts(outcome) {
        text.push_str(&format!("{name:<24}{value}\n"));
    }
    let timing = &outcome.timing;
    text.push_str(&format!(
        "{:<24}{:.3} s, {} jobs per second\n",
        "took",
        timing.seconds,
        whole(Some(timing.jobs_per_second.round()))
    ));
    text + &group_tables::run_tables(outcome, width)
}

fn measure_table(outcome: &RunDoc) -> TextTable {
    let sure = outcome.uncertainty.half_width.has_any();
    let header = ["", "mean", "± 95 %", "median", "p95", "p99", "max"];
    let header = header.into_iter().filter(|name| sure || !name.starts_with('±')).map(str::to_owned);
    let row = |(name, measure, half_width): (&str, &MeasureDoc, Option<f64>)| {
        let figures = [measure.median, measure.p95, measure.p99, measure.max].map(figure);
        let mean = std::iter::once(figure(measure.mean)).chain(sure.then(|| figure(half_width)));
        std::iter::once(name.to_owned()).chain(mean).chain(figures).collect()
    };
    TextTable { header: header.collect(), rows: measures(outcome).map(row).into() }
}

/// Returns the figures below the table of measures.
fn facts(outcome: &RunDoc) -> Vec<(&'static str, String)> {
    let queue = &outcome.queue_length;
    let mut facts = vec![
        ("utilization", percent(outcome.utilization)),
        ("idle while jobs waited", percent(outcome.loss_of_capacity)),
        ("makespan", outcome.makespan.map_or_else(|| "-".into(), makespan)),
        ("queue length", format!("mean {}, max {}", figure(queue.mean), queue.max)),
        ("promises", promises(outcome)),
        ("jobs without wait", percent(outcome.guarantees.without_wait)),
        ("started immediately", started_immediately(outcome)),
    ];
    facts.extend(outcome.opportunistic.as_ref().map(|doc| ("opportunistic work", opportunistic_work(doc))));
    facts.extend(nonzero("kept idle for a job", outcome.kept_idle));
    facts.extend(nonzero("work lost", outcome.lost_work));
    facts
        .extend(outcome.suspended.as_ref().map(|doc| ("suspensions", suspensions(outcome.suspensions, doc))));
    facts.extend(nonzero("swapping", outcome.suspended.as_ref().and_then(|doc| doc.share)));
    facts.extend(outcome.slicing.as_ref().into_iter().flat_map(sliced));
    facts.extend(promised_to_waited(outcome).map(|text| ("promised / actual wait", text)));
    if outcome.metrics.slowdown.count != outcome.jobs.measured {
        let over = format!("of the {} jobs with a runtime", count(outcome.metrics.slowdown.count));
        facts.push(("slowdown", over));
    }
    let notes = [outcome.percentile_note(), outcome.uncertainty.note(), outcome.nothing_measured()];
    facts.extend(notes.into_iter().flatten().map(|note| ("note", note)));
    facts
}

/// Formats runs of one log side by side with their breakdowns. A star marks the best value of a
/// row.
///
/// Tables wider than `width` characters are folded; `None` is unlimited.
pub fn compare_tables(outcomes: &[&RunDoc], width: Option<usize>) -> String {
    let Some(first) = outcomes.first() else { return String::new() };
    let policies = outcomes.iter().map(|outcome| folded_policy(&outcome.policy));
    let header = std::iter::once(String::new()).chain(policies).collect();
    let kept = outcomes.iter().map(|outcome| promises_kept(outcome));
    let rows = ROWS.iter().chain(OPTIONAL_ROWS.iter().filter(|row| row.is_shown(outcomes)));
    let rows = rows.map(|row| row.cells(outcomes));
    let rows: Vec<Vec<String>> =
        rows.chain([std::iter::once("promises kept".to_owned()).chain(kept).collect()]).collect();
    let marked = |mark| rows.iter().flatten().any(|cell| cell.ends_with(mark));
    let legend = legend(marked(BEST), marked(INSIGNIFICANT), marked(UNKNOWN));
    let table = TextTable { header, rows }.table(width);
    format!(
        "{}\n{table}\n{legend}{}",
        log_heading(first, outcomes),
        group_tables::comparison_tables(outcomes, width)
    )
}

/// Mark of the best value of a row.
const BEST: char = '*';

/// Mark of a value that does not differ significantly from the best.
const INSIGNIFICANT: char = '~';

/// Mark of a value whose difference from the best has unknown significance.
const UNKNOWN: char = '?';

fn legend(has_best: bool, has_insignificant: bool, has_unknown: bool) -> String {
    if !has_best {
        return String::new();
    }
    let mut text = "\n* best of the row".to_owned();
    if has_insignificant {
        text.push_str("; ~ not significantly different from the best (95 %)");
    }
    if has_unknown {
        text.push_str("; ? significance unknown (batch means correlated, or too few jobs)");
    }
    text + "\n"
}

fn promises_kept(outcome: &RunDoc) -> String {
    let promises = &outcome.promises;
    match promises.made {
        0 => "none made ".into(),
        made => format!("{} of {} ", count(promises.kept), count(made)),
    }
}

/// A row of the comparison.
struct ComparisonRow {
    name: &'static str,
    /// Position in `Measures::all`, if the row is a mean.
    mean_of: Option<usize>,
    value: fn(&RunDoc) -> Option<f64>,
    show: fn(Option<f64>) -> String,
    better: Option<Improvement>,
}

/// The direction of improvement of a row.
#[derive(Clone, Copy)]
enum Improvement {
    Lower,
    Higher,
}

impl ComparisonRow {
    /// Returns whether any run has a positive value.
    fn is_shown(&self, outcomes: &[&RunDoc]) -> bool {
        outcomes.iter().any(|outcome| (self.value)(outcome).is_some_and(|value| value > 0.0))
    }

    /// Returns the name and a cell for each run.
    fn cells(&self, outcomes: &[&RunDoc]) -> Vec<String> {
        let values: Vec<Option<f64>> = outcomes.iter().map(|outcome| (self.value)(outcome)).collect();
        let best = self.better.and_then(|better| best(&values, better));
        let winner = values.iter().position(|&value| best.is_some() && value == best);
        let cells = values.iter().zip(outcomes).map(|(&value, outcome)| {
            let mark = match winner {
                Some(_) if value == best => BEST,
                Some(winner) => self.mark(outcome, outcomes[winner]),
                None => ' ',
            };
            format!("{}{mark}", (self.show)(value))
        });
        std::iter::once(self.name.to_owned()).chain(cells).collect()
    }

    /// Returns the mark of the paired difference from the best run, or a blank for a row without a
    /// mean.
    fn mark(&self, outcome: &RunDoc, best: &RunDoc) -> char {
        let Some(measure) = self.mean_of else { return ' ' };
        let difference = DifferenceDoc::new(outcome, best, measure);
        match difference.within_noise {
            Some(true) => INSIGNIFICANT,
            // There were enough batches for a judgement.
            None if difference.autocorrelation.is_some() => UNKNOWN,
            _ => ' ',
        }
    }
}

const fn row(name: &'static str, value: fn(&RunDoc) -> Option<f64>) -> ComparisonRow {
    ComparisonRow { name, mean_of: None, value, show: figure, better: Some(Improvement::Lower) }
}

const fn neutral(name: &'static str, value: fn(&RunDoc) -> Option<f64>) -> ComparisonRow {
    ComparisonRow { better: None, ..row(name, value) }
}

const fn mean(name: &'static str, measure: usize, value: fn(&RunDoc) -> Option<f64>) -> ComparisonRow {
    ComparisonRow { mean_of: Some(measure), ..row(name, value) }
}

const ROWS: &[ComparisonRow] = &[
    mean("wait, mean (s)", 0, |run| run.metrics.wait.mean),
    row("wait, median (s)", |run| run.metrics.wait.median),
    row("wait, p95 (s)", |run| run.metrics.wait.p95),
    row("wait, max (s)", |run| run.metrics.wait.max),
    mean("response, mean (s)", 1, |run| run.metrics.response.mean),
    mean("slowdown, mean", 2, |run| run.metrics.slowdown.mean),
    mean("bounded slowdown, mean", 3, |run| run.metrics.bounded_slowdown.mean),
    row("bounded slowdown, p95", |run| run.metrics.bounded_slowdown.p95),
    row("bounded slowdown, max", |run| run.metrics.bounded_slowdown.max),
    row("queue length, mean", |run| run.queue_length.mean),
    ComparisonRow {
        show: percent,
        better: Some(Improvement::Higher),
        ..row("utilization", |run| run.utilization)
    },
];

/// Rows shown only if a run has a value: suspension and time slicing.
const OPTIONAL_ROWS: &[ComparisonRow] = &[
    ComparisonRow { show: whole, ..neutral("suspensions", |run| Some(run.suspensions as f64)) },
    neutral("slots per job, mean", |run| run.slicing.as_ref()?.slots.mean),
    neutral("slots used, mean", |run| run.slicing.as_ref()?.rows.mean),
    ComparisonRow {
        show: percent,
        ..neutral("run fraction, mean", |run| run.slicing.as_ref()?.run_fraction.mean)
    },
];

/// Returns a figure without trailing zero decimals.
fn whole(number: Option<f64>) -> String {
    figure(number).trim_end_matches(".00").to_owned()
}

/// Returns the best value, or `None` if all are equal or undefined.
fn best(values: &[Option<f64>], better: Improvement) -> Option<f64> {
    let known = || values.iter().flatten().copied();
    let (lowest, highest) = (known().min_by(f64::total_cmp)?, known().max_by(f64::total_cmp)?);
    let chosen = match better {
        Improvement::Lower => lowest,
        Improvement::Higher => highest,
    };
    (lowest < highest).then_some(chosen)
}

/// Breaks a policy's written form into lines to keep columns narrow. Quoted formulas stay whole.
pub(super) fn folded_policy(policy: &str) -> String {
    let fold = |(position, part): (usize, &str)| match position % 2 {
        0 => part.replace('(', "\n(").replace(", ", ",\n"),
        _ => format!("'{part}'"),
    };
    policy.split('\'').enumerate().map(fold).collect()
}

fn heading(outcome: &RunDoc) -> String {
    format!("{}{:<24}{}\n", log_heading(outcome, &[outcome]), "policy", outcome.policy)
}

/// Returns the log and the settings of a run. `outcomes` are all runs below this heading.
fn log_heading(outcome: &RunDoc, outcomes: &[&RunDoc]) -> String {
    let (settings, jobs) = (&outcome.settings, &outcome.jobs);
    let mut text =
        format!("{:<24}{}, {} processors\n", "log", outcome.trace.name, count(settings.procs.into()));
    if !settings.machine.is_plain() {
        text.push_str(&format!("{:<24}{}\n", "machine", settings.machine.summary()));
    }
    let mut counts = format!("{} read, {} simulated", count(jobs.read), count(jobs.simulated));
    if jobs.measured != jobs.simulated {
        counts.push_str(&format!(", {} measured", count(jobs.measured)));
    }
    for (reason, number) in &jobs.skipped {
        counts.push_str(&format!("; skipped {}: {reason}", count(*number)));
    }
    if jobs.out_of_order > 0 {
        counts.push_str(&format!("; {} out of order, sorted", count(jobs.out_of_order)));
    }
    if jobs.without_estimate > 0 {
        let number = count(jobs.without_estimate);
        counts.push_str(&format!("; {number} without an estimate, the runtime is used"));
    }
    if jobs.killed_at_estimate > 0 {
        counts.push_str(&format!("; {} killed at the log's estimate", count(jobs.killed_at_estimate)));
    }
    text.push_str(&format!("{:<24}{counts}\n", "jobs"));
    let random = |outcome: &&RunDoc| outcome.policy.contains("random");
    let drawn = settings.estimates.starts_with("uniform") || outcomes.iter().any(random);
    let conventions = format!(
        "estimates {}, overrun {}, event order {}, size {}",
        settings.estimates, settings.overrun, settings.event_order, settings.procs_field
    );
    text.push_str(&format!("{:<24}{conventions}{}\n", "settings", further(settings, drawn)));
    text
}

/// Returns the settings that differ from their defaults.
fn further(settings: &SettingsDoc, drawn: bool) -> String {
    let mut text = String::new();
    if drawn {
        text.push_str(&format!(", seed {}", settings.seed));
    }
    for (name, value) in [("from", settings.from), ("to", settings.to)] {
        text.push_str(&value.map_or_else(String::new, |secs| format!(", {name} {secs} s")));
    }
    for (name, list) in [("users", &settings.users), ("queues", &settings.queues)] {
        if !list.is_empty() {
            let numbers: Vec<_> = list.iter().map(ToString::to_string).collect();
            text.push_str(&format!(", {name} {}", numbers.join(" ")));
        }
    }
    if settings.offline {
        text.push_str(", off-line");
    } else if (settings.scale_load - 1.0).abs() > 0.0 {
        text.push_str(&format!(", load x {}", settings.scale_load));
    }
    if settings.warmup > 0 {
        text.push_str(&format!(", warm-up {}", secs_text(settings.warmup)));
    }
    if let Some(BatchSettings { jobs, count, discard }) = settings.batches {
        text.push_str(&format!(", {count} batches of {jobs} terminations after {discard}"));
    }
    if let Some(idle_use) = &settings.idle_use {
        match (idle_use.opportunistic, idle_use.preempt_lead_time) {
            ("on", Some(lead)) => {
                text.push_str(&format!(", opportunistic, preempt lead {}", secs_text(lead)));
            }
            ("off", _) => text.push_str(", not opportunistic"),
            _ => {}
        }
        if let Some(load) = &idle_use.interactive {
            text.push_str(&format!(", interactive {load}"));
        }
    }
    if settings.lenient {
        text.push_str(", lenient");
    }
    text
}

fn started_immediately(outcome: &RunDoc) -> String {
    let (started, measured) = (outcome.jobs.started_immediately, outcome.jobs.measured);
    if measured == 0 {
        return "-".into();
    }
    let share = percent(Some(started as f64 / measured as f64));
    format!("{share}: {} of {} jobs", count(started), count(measured))
}

/// Returns `1 200 of 800 jobs, at most 7 of one job`.
fn suspensions(all: u64, doc: &SuspensionDoc) -> String {
    format!("{} of {} jobs, at most {} of one job", count(all), count(doc.jobs), count(doc.most))
}

/// Returns the results of time slicing.
fn sliced(slicing: &SlicingDoc) -> [(&'static str, String); 4] {
    let SlicingDoc { slots, run_fraction, rows, unifications, unifications_per_termination: share } = slicing;
    [
        ("slots per job", format!("mean {}, max {}", figure(slots.mean), figure(slots.max))),
        ("run fraction", format!("mean {}", percent(run_fraction.mean))),
        ("slots used", format!("mean {}, max {}", figure(rows.mean), rows.max)),
        ("slot unifications", format!("{}, {} of the terminations", count(*unifications), percent(*share))),
    ]
}

/// Returns a share if it is positive.
fn nonzero(name: &'static str, share: Option<f64>) -> Option<(&'static str, String)> {
    share.filter(|share| *share > 0.0).map(|share| (name, percent(Some(share))))
}

/// Returns `12.30 %: 40 jobs ran before their starts, 7 of them finished`.
fn opportunistic_work(doc: &OpportunisticDoc) -> String {
    let (jobs, done) = (count(doc.jobs), count(doc.done));
    format!("{}: {jobs} jobs ran before their starts, {done} of them finished", percent(doc.share))
}

fn secs_text(secs: i64) -> String {
    duration(Span::from_secs(secs).unwrap_or(Span::MAX))
}

fn makespan(secs: f64) -> String {
    format!("{} s ({})", whole(Some(secs)), duration_rounded(span_of_seconds(secs)))
}

fn promises(outcome: &RunDoc) -> String {
    let promises = &outcome.promises;
    match promises.made {
        0 => "none made".into(),
        made => {
            format!("{} made, {} kept, {} broken", count(made), count(promises.kept), count(promises.broken))
        }
    }
}

fn promised_to_waited(outcome: &RunDoc) -> Option<String> {
    let ratio = &outcome.guarantees.ratio;
    let [median, p80, mean] = [ratio.median, ratio.p80, ratio.mean].map(figure);
    ratio.median.map(|_| format!("median {median}, p80 {p80}, mean {mean}"))
}

fn measures(outcome: &RunDoc) -> [(&'static str, &MeasureDoc, Option<f64>); 6] {
    let (metrics, sure) = (&outcome.metrics, &outcome.uncertainty.half_width);
    [
        ("wait (s)", &metrics.wait, sure.wait),
        ("response (s)", &metrics.response, sure.response),
        ("slowdown", &metrics.slowdown, sure.slowdown),
        ("bounded slowdown", &metrics.bounded_slowdown, sure.bounded_slowdown),
        ("  standard form", &metrics.bounded_slowdown_standard, sure.bounded_slowdown_standard),
        ("  per processor", &metrics.width_slowdown, sure.width_slowdown),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legend_explains_the_marks_that_there_are() {
        assert_eq!(legend(false, false, false), "");
        assert_eq!(legend(true, false, false), "\n* best of the row\n");
        let unjudged =
            "\n* best of the row; ? significance unknown (batch means correlated, or too few jobs)\n";
        assert_eq!(legend(true, false, true), unjudged);
        assert!(legend(true, true, true).contains("; ~ not significantly different"));
    }
}
