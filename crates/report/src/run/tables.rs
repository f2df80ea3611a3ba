//! The tables that people read.

use miserly_core::Span;
use miserly_units::{duration, duration_rounded, span_of_seconds};

use super::details::Difference;
use super::document::{EarlyDoc, Measure, Outcome, Settings, SuspendedDoc};
use super::group_tables;
use super::layout::Columns;
use super::slicing::{BatchSettings, SlicingDoc};
use crate::numbers::{count, figure, percent};

/// One run as a table, with what it was above it, and its breakdowns below.
///
/// Tables wider than `width` characters are folded; without it, none is.
pub fn simulate_table(outcome: &Outcome, width: Option<usize>) -> String {
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
    text + &group_tables::of_run(outcome, width)
}

fn measure_table(outcome: &Outcome) -> Columns {
    let sure = outcome.uncertainty.half_width.any();
    let header = ["", "mean", "± 95 %", "median", "p95", "p99", "max"];
    let header = header.into_iter().filter(|name| sure || !name.starts_with('±')).map(str::to_owned);
    let row = |(name, measure, half_width): (&str, &Measure, Option<f64>)| {
        let figures = [measure.median, measure.p95, measure.p99, measure.max].map(figure);
        let mean = std::iter::once(figure(measure.mean)).chain(sure.then(|| figure(half_width)));
        std::iter::once(name.to_owned()).chain(mean).chain(figures).collect()
    };
    Columns { header: header.collect(), rows: measures(outcome).map(row).into() }
}

/// What is told of a run below its measures.
fn facts(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let queue = &outcome.queue_length;
    let mut facts = vec![
        ("utilization", percent(outcome.utilization)),
        ("idle while jobs waited", percent(outcome.loss_of_capacity)),
        ("makespan", outcome.makespan.map_or_else(|| "-".into(), makespan)),
        ("queue length", format!("{} on the average, {} at most", figure(queue.mean), queue.max)),
        ("promises", promises(outcome)),
        ("started at once", percent(outcome.guarantees.started_at_once)),
        ("placed at once", placed_at_once(outcome)),
    ];
    facts.extend(outcome.early.as_ref().map(|early| ("early work", early_work(early))));
    facts.extend(nonzero("kept idle for a job", outcome.kept_idle));
    facts.extend(nonzero("work lost", outcome.lost_work));
    facts.extend(outcome.suspended.as_ref().map(|of| ("suspensions", suspensions(outcome.suspensions, of))));
    facts.extend(nonzero("written and read", outcome.suspended.as_ref().and_then(|of| of.share)));
    facts.extend(outcome.slicing.as_ref().into_iter().flat_map(sliced));
    facts.extend(promised_to_waited(outcome).map(|text| ("promised / waited", text)));
    if outcome.metrics.slowdown.count != outcome.jobs.measured {
        let over = format!("over the {} jobs with a runtime", count(outcome.metrics.slowdown.count));
        facts.push(("slowdown", over));
    }
    let notes = [outcome.percentile_note(), outcome.uncertainty.note(), outcome.nothing_measured()];
    facts.extend(notes.into_iter().flatten().map(|note| ("note", note)));
    facts
}

/// Runs of one log side by side, and their breakdowns; the best value of a row is marked with a star.
///
/// Tables wider than `width` characters are folded; without it, none is.
pub fn compare_tables(outcomes: &[&Outcome], width: Option<usize>) -> String {
    let Some(first) = outcomes.first() else { return String::new() };
    let policies = outcomes.iter().map(|outcome| headed(&outcome.policy));
    let header = std::iter::once(String::new()).chain(policies).collect();
    let kept = outcomes.iter().map(|outcome| promises_kept(outcome));
    let rows = ROWS.iter().chain(SOMETIMES.iter().filter(|row| row.tells(outcomes)));
    let rows = rows.map(|row| row.cells(outcomes));
    let rows: Vec<Vec<String>> =
        rows.chain([std::iter::once("promises kept".to_owned()).chain(kept).collect()]).collect();
    let marked = |mark| rows.iter().flatten().any(|cell| cell.ends_with(mark));
    let legend = legend(marked(BEST), marked(ALIKE), marked(UNJUDGED));
    let table = Columns { header, rows }.table(width);
    format!(
        "{}\n{table}\n{legend}{}",
        log_heading(first, outcomes),
        group_tables::of_comparison(outcomes, width)
    )
}

/// What stands behind the best value of a row.
const BEST: char = '*';

/// What stands behind a value that is not told apart from it.
const ALIKE: char = '~';

/// What stands behind a value whose difference from it cannot be judged.
const UNJUDGED: char = '?';

fn legend(starred: bool, alike: bool, unjudged: bool) -> String {
    if !starred {
        return String::new();
    }
    let alike = alike.then_some("~ not told apart from it by paired batch means (95 %)");
    let unjudged = unjudged.then_some("? not to be judged: neighbouring batches are alike, or too short");
    let marks: Vec<&str> = [Some("* best of the row"), alike, unjudged].into_iter().flatten().collect();
    format!("\n{}\n", marks.join("; "))
}

fn promises_kept(outcome: &Outcome) -> String {
    let promises = &outcome.promises;
    match promises.made {
        0 => "none made ".into(),
        made => format!("{} of {} ", count(promises.kept), count(made)),
    }
}

/// A row of the comparison.
struct Row {
    name: &'static str,
    /// The measure whose mean it is, by its place in `Measures::all`.
    mean_of: Option<usize>,
    value: fn(&Outcome) -> Option<f64>,
    show: fn(Option<f64>) -> String,
    better: Option<Better>,
}

/// Which values of a row are better than others.
#[derive(Clone, Copy)]
enum Better {
    Lower,
    Higher,
}

impl Row {
    /// Whether any run has some of it.
    fn tells(&self, outcomes: &[&Outcome]) -> bool {
        outcomes.iter().any(|outcome| (self.value)(outcome).is_some_and(|value| value > 0.0))
    }

    /// Its name, and a cell for each run.
    fn cells(&self, outcomes: &[&Outcome]) -> Vec<String> {
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

    /// What the batches tell of the difference from the best run: nothing of a row that is no mean.
    fn mark(&self, outcome: &Outcome, best: &Outcome) -> char {
        let Some(measure) = self.mean_of else { return ' ' };
        let difference = Difference::of(outcome, best, measure);
        match difference.within_noise {
            Some(true) => ALIKE,
            // There were batches enough to ask.
            None if difference.autocorrelation.is_some() => UNJUDGED,
            _ => ' ',
        }
    }
}

const fn row(name: &'static str, value: fn(&Outcome) -> Option<f64>) -> Row {
    Row { name, mean_of: None, value, show: figure, better: Some(Better::Lower) }
}

const fn neutral(name: &'static str, value: fn(&Outcome) -> Option<f64>) -> Row {
    Row { better: None, ..row(name, value) }
}

const fn mean(name: &'static str, measure: usize, value: fn(&Outcome) -> Option<f64>) -> Row {
    Row { mean_of: Some(measure), ..row(name, value) }
}

const ROWS: &[Row] = &[
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
    Row { show: percent, better: Some(Better::Higher), ..row("utilization", |run| run.utilization) },
];

/// What is shown where some run has it: of jobs that were suspended, and of those that shared processors by turns.
const SOMETIMES: &[Row] = &[
    Row { show: whole, ..neutral("suspensions", |run| Some(run.suspensions as f64)) },
    neutral("slots per job, mean", |run| run.slicing.as_ref()?.slots.mean),
    neutral("slots used, mean", |run| run.slicing.as_ref()?.rows.mean),
    Row { show: percent, ..neutral("run fraction, mean", |run| run.slicing.as_ref()?.run_fraction.mean) },
];

/// A figure, without decimals where it has none.
fn whole(number: Option<f64>) -> String {
    figure(number).trim_end_matches(".00").to_owned()
}

/// The best value, unless there is nothing to choose: all alike, or none.
fn best(values: &[Option<f64>], better: Better) -> Option<f64> {
    let known = || values.iter().flatten().copied();
    let (lowest, highest) = (known().min_by(f64::total_cmp)?, known().max_by(f64::total_cmp)?);
    let chosen = match better {
        Better::Lower => lowest,
        Better::Higher => highest,
    };
    (lowest < highest).then_some(chosen)
}

/// A policy's written form on several lines, so that columns stay narrow; a formula in quotes stays whole.
pub(super) fn headed(policy: &str) -> String {
    let fold = |(position, part): (usize, &str)| match position % 2 {
        0 => part.replace('(', "\n(").replace(", ", ",\n"),
        _ => format!("'{part}'"),
    };
    policy.split('\'').enumerate().map(fold).collect()
}

fn heading(outcome: &Outcome) -> String {
    format!("{}{:<24}{}\n", log_heading(outcome, &[outcome]), "policy", outcome.policy)
}

/// What log was run and how; `outcomes` are all that the heading stands over.
fn log_heading(outcome: &Outcome, outcomes: &[&Outcome]) -> String {
    let (settings, jobs) = (&outcome.settings, &outcome.jobs);
    let mut text =
        format!("{:<24}{}, {} processors\n", "log", outcome.trace.name, count(settings.procs.into()));
    if !settings.machine.is_plain() {
        text.push_str(&format!("{:<24}{}\n", "machine", settings.machine.told()));
    }
    let mut said = format!("{} read, {} simulated", count(jobs.read), count(jobs.simulated));
    if jobs.measured != jobs.simulated {
        said.push_str(&format!(", {} measured", count(jobs.measured)));
    }
    for (reason, number) in &jobs.skipped {
        said.push_str(&format!("; skipped {}: {reason}", count(*number)));
    }
    if jobs.out_of_order > 0 {
        said.push_str(&format!("; {} out of order, sorted", count(jobs.out_of_order)));
    }
    if jobs.without_estimate > 0 {
        let number = count(jobs.without_estimate);
        said.push_str(&format!("; {number} without an estimate, the runtime stands for it"));
    }
    if jobs.killed_at_estimate > 0 {
        said.push_str(&format!("; {} killed at the log's estimate", count(jobs.killed_at_estimate)));
    }
    text.push_str(&format!("{:<24}{said}\n", "jobs"));
    let random = |outcome: &&Outcome| outcome.policy.contains("random");
    let drawn = settings.estimates.starts_with("uniform") || outcomes.iter().any(random);
    let conventions = format!(
        "estimates {}, overrun {}, instants {}, size {}",
        settings.estimates, settings.overrun, settings.instants, settings.procs_field
    );
    text.push_str(&format!("{:<24}{conventions}{}\n", "settings", further(settings, drawn)));
    text
}

/// The settings that are seldom other than they come.
fn further(settings: &Settings, drawn: bool) -> String {
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
    if let Some(filling) = &settings.filling {
        match (filling.early, filling.parking_lead) {
            ("on", Some(lead)) => text.push_str(&format!(", early, parked {} ahead", secs_text(lead))),
            ("off", _) => text.push_str(", nothing early"),
            _ => {}
        }
        if let Some(load) = &filling.interactive {
            text.push_str(&format!(", interactive {load}"));
        }
    }
    if settings.lenient {
        text.push_str(", lenient");
    }
    text
}

fn placed_at_once(outcome: &Outcome) -> String {
    let (placed, measured) = (outcome.jobs.placed_at_once, outcome.jobs.measured);
    if measured == 0 {
        return "-".into();
    }
    let share = percent(Some(placed as f64 / measured as f64));
    format!("{share}: {} of {} jobs", count(placed), count(measured))
}

/// `1 200, of 800 jobs, one of them 7 times`.
fn suspensions(all: u64, of: &SuspendedDoc) -> String {
    format!("{}, of {} jobs, one of them {} times", count(all), count(of.jobs), count(of.most))
}

/// What the slicing of time came to.
fn sliced(slicing: &SlicingDoc) -> [(&'static str, String); 4] {
    let SlicingDoc { slots, run_fraction, rows, unifications, unifications_per_termination: share } = slicing;
    [
        ("slots per job", format!("{} on the average, {} at most", figure(slots.mean), figure(slots.max))),
        ("run fraction", format!("{} on the average", percent(run_fraction.mean))),
        ("slots used", format!("{} on the average, {} at most", figure(rows.mean), rows.max)),
        ("slots united", format!("{}, {} of the terminations", count(*unifications), percent(*share))),
    ]
}

/// A share, where it is more than nothing.
fn nonzero(name: &'static str, share: Option<f64>) -> Option<(&'static str, String)> {
    share.filter(|share| *share > 0.0).map(|share| (name, percent(Some(share))))
}

/// `12.30 %: jobs that ran ahead of their starts 40, done before 7`.
fn early_work(early: &EarlyDoc) -> String {
    let (jobs, done) = (count(early.jobs), count(early.done));
    format!("{}: jobs that ran ahead of their starts {jobs}, done before {done}", percent(early.share))
}

fn secs_text(secs: i64) -> String {
    duration(Span::from_secs(secs).unwrap_or(Span::MAX))
}

fn makespan(secs: f64) -> String {
    format!("{} s ({})", whole(Some(secs)), duration_rounded(span_of_seconds(secs)))
}

fn promises(outcome: &Outcome) -> String {
    let promises = &outcome.promises;
    match promises.made {
        0 => "none made".into(),
        made => {
            format!("{} made, {} kept, {} broken", count(made), count(promises.kept), count(promises.broken))
        }
    }
}

fn promised_to_waited(outcome: &Outcome) -> Option<String> {
    let ratio = &outcome.guarantees.ratio;
    let [median, p80, mean] = [ratio.median, ratio.p80, ratio.mean].map(figure);
    ratio
        .median
        .map(|_| format!("{median} in the median, {p80} at the 80th percentile, {mean} on the average"))
}

fn measures(outcome: &Outcome) -> [(&'static str, &Measure, Option<f64>); 6] {
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
            "\n* best of the row; ? not to be judged: neighbouring batches are alike, or too short\n";
        assert_eq!(legend(true, false, true), unjudged);
        assert!(legend(true, true, true).contains("; ~ not told apart"));
    }
}
