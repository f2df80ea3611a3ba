//! Tables of runs and comparisons.

use miserly_core::Span;
use miserly_run::{
    BatchSettings, DifferenceDoc, GpuTypeUseDoc, GpuUseDoc, MeasureDoc, OpportunisticDoc, RunDoc,
    SettingsDoc, SlicingDoc, SuspensionDoc, is_of_schedule,
};
use miserly_units::{duration, duration_rounded, span_of_seconds};
use miserly_workload::LogDates;

use super::group_tables;
use super::layout::{Quantity, TableStyle, TextTable, Tone};
use super::machine::machine_summary;
use super::measures::LABELS;
use super::notes::notes;
use crate::numbers::{count, figure, percent, with_half_width};

/// Formats one run as a table, below its settings and above its breakdowns.
///
/// With the recorded schedule of the log, its waits stand below.
pub fn simulate_table(outcome: &RunDoc, recorded: Option<&RunDoc>, style: TableStyle) -> String {
    let mut text = heading(outcome, style);
    let table = measure_table(outcome, style);
    let sure = table.header.iter().any(|name| name.starts_with('±'));
    let meanings = MEANINGS[..2].iter().chain(sure.then_some(&HALF_WIDTH));
    let meanings: Vec<String> = meanings.map(|(name, meaning)| format!("{name}: {meaning}")).collect();
    let meanings = style.paragraph(&meanings.join("; "));
    text.push_str(&format!("\n{}\n\n{meanings}\n\n", table.table(style.width)));
    let recorded = recorded.map(|recorded| ("recorded wait", recorded_wait(recorded, style)));
    for (name, value) in recorded.into_iter().chain(facts(outcome, style)) {
        text.push_str(&style.entry(name, &value));
    }
    let timing = &outcome.timing;
    let speed = whole(Some(timing.jobs_per_second.round()));
    let mut took = format!("{:.3} s, {speed} jobs per second", timing.seconds);
    if outcome.planned_starts > 0 {
        took.push_str(&format!("; starts planned {} times", count(outcome.planned_starts)));
    }
    text.push_str(&style.entry("took", &took));
    text + &group_tables::run_tables(outcome, style)
}

/// Returns `70.00 % to the last submission, 68.74 % to the last end`.
fn utilizations(outcome: &RunDoc) -> String {
    let whole = percent(outcome.utilization);
    match outcome.utilization_to_last_submission {
        None => whole,
        steady => format!("{} to the last submission, {whole} to the last end", percent(steady)),
    }
}

fn recorded_wait(recorded: &RunDoc, style: TableStyle) -> String {
    let wait = &recorded.metrics.wait;
    let [mean, median, p95, max] =
        [wait.mean, wait.median, wait.p95, wait.max].map(|value| style.figure(Quantity::Time, value));
    format!("mean {mean}, median {median}, p95 {p95}, max {max}")
}

/// The measures of a run that are shown by default.
const MAIN: [&str; 2] = ["wait", "bounded slowdown"];

pub(super) fn measure_table(outcome: &RunDoc, style: TableStyle) -> TextTable {
    let half_widths = outcome.uncertainty.half_width.all();
    let sure = half_widths.iter().any(|half_width| half_width.is_some());
    let header = ["", "mean", HALF_WIDTH.0, "median", "p95", "p99", "max"];
    let header = header.into_iter().filter(|name| sure || !name.starts_with('±')).map(str::to_owned);
    let row =
        |((name, quantity), (measure, half_width)): (&(&str, Quantity), (&MeasureDoc, &Option<f64>))| {
            let figure = |value| style.figure(*quantity, value);
            let [mean, width] = match (measure.mean, *half_width) {
                (Some(mean), Some(width)) if style.is_decimal(*quantity) => with_half_width(mean, width),
                (mean, width) => [mean, width].map(figure),
            };
            let mean = std::iter::once(mean).chain(sure.then_some(width));
            let figures = [measure.median, measure.p95, measure.p99, measure.max].map(figure);
            std::iter::once(style.label(*quantity, name)).chain(mean).chain(figures).collect()
        };
    let measures = LABELS.iter().zip(outcome.metrics.all().into_iter().zip(half_widths));
    let measures = measures.filter(|((name, _), _)| style.all_measures || MAIN.contains(name));
    TextTable { header: header.collect(), rows: measures.map(row).collect() }
}

/// Returns the figures below the table of measures.
pub(super) fn facts(outcome: &RunDoc, style: TableStyle) -> Vec<(&'static str, String)> {
    let queue = &outcome.queue_length;
    let mut facts = vec![
        ("utilization", utilizations(outcome)),
        ("makespan", outcome.makespan.map_or_else(|| "-".into(), makespan)),
        ("promises", promises(outcome)),
        ("jobs without wait", percent(outcome.guarantees.without_wait)),
    ];
    if style.all_measures {
        facts.insert(1, ("idle while jobs waited", percent(outcome.loss_of_capacity)));
        facts.insert(3, ("queue length", format!("mean {}, max {}", figure(queue.mean), queue.max)));
        let response = style.figure(Quantity::Time, outcome.area_weighted_response);
        let slowdown = figure(outcome.area_weighted_slowdown);
        facts.push(("weighted by area", format!("response {response}, slowdown {slowdown}")));
        let (mean, deviation) = (outcome.throughput_per_hour, outcome.throughput_deviation);
        facts.push(("ends per hour", format!("{}, standard deviation {}", figure(mean), figure(deviation))));
    }
    // A job that starts with fewer processors, or for a quantum, starts immediately and waits later.
    facts.extend(started_immediately(outcome).map(|text| ("started immediately", text)));
    facts.extend(outcome.opportunistic.as_ref().map(|doc| ("opportunistic work", opportunistic_work(doc))));
    facts.extend(outcome.gpus.iter().flat_map(gpus));
    facts.extend(nonzero("kept idle for a job", outcome.kept_idle));
    facts.extend(nonzero("work lost", outcome.lost_work));
    facts
        .extend(outcome.suspended.as_ref().map(|doc| ("suspensions", suspensions(outcome.suspensions, doc))));
    facts.extend(nonzero("swapping", outcome.suspended.as_ref().and_then(|doc| doc.share)));
    facts.extend(outcome.slicing.as_ref().into_iter().flat_map(sliced));
    facts.extend(promised_to_waited(outcome).map(|text| ("promised / actual wait", text)));
    if style.all_measures && outcome.metrics.slowdown.count != outcome.jobs.measured {
        let over = format!("of the {} jobs with a runtime", count(outcome.metrics.slowdown.count));
        facts.push(("slowdown", over));
    }
    facts.extend(notes(outcome).map(|note| ("note", note)));
    facts
}

/// Formats runs of one log side by side with their breakdowns. A star marks the best value of a
/// row.
///
/// A schedule that leaves jobs out has no mark, because its figures are of other jobs.
pub fn compare_tables(outcomes: &[&RunDoc], style: TableStyle) -> String {
    let Some(first) = first_run(outcomes) else { return String::new() };
    let policies = outcomes.iter().map(|outcome| folded_policy(&outcome.policy));
    let header = std::iter::once(String::new()).chain(policies).collect();
    let rows = comparison_rows(outcomes, style);
    let legend = legend_of(&rows, outcomes);
    let worst = if style.colour { worst_columns(outcomes, style) } else { vec![] };
    let tone = |row: usize, column: usize| match worst.get(row) {
        _ if !style.colour => Tone::Plain,
        _ if column > 0 && rows[row][column].ends_with(BEST) => Tone::Best,
        Some(worst) if *worst == Some(column) => Tone::Worst,
        _ => Tone::Plain,
    };
    let table = TextTable { header, rows: rows.clone() }.coloured(style.width, tone);
    let legend = legend.map_or_else(String::new, |legend| format!("\n{}\n", style.paragraph(&legend)));
    let meanings: String = MEANINGS.iter().map(|(name, meaning)| style.entry(name, meaning)).collect();
    format!(
        "{}\n{table}\n{legend}\n{meanings}{}",
        log_heading(first, outcomes, style),
        group_tables::comparison_tables(outcomes, style)
    )
}

/// Returns the first schedule that was simulated.
pub(super) fn first_run<'a>(outcomes: &[&'a RunDoc]) -> Option<&'a RunDoc> {
    outcomes.iter().find(|outcome| outcome.record.is_none()).or(outcomes.first()).copied()
}

/// Returns the rows of a comparison: the name and a cell for each run.
pub(super) fn comparison_rows(outcomes: &[&RunDoc], style: TableStyle) -> Vec<Vec<String>> {
    let rows = shown_rows(outcomes, style);
    let kept = outcomes.iter().map(|outcome| promises_kept(outcome));
    let kept = std::iter::once("promises kept".to_owned()).chain(kept).collect();
    rows.map(|row| row.cells(outcomes, style)).chain([kept]).collect()
}

fn shown_rows(outcomes: &[&RunDoc], style: TableStyle) -> impl Iterator<Item = &'static ComparisonRow> {
    let rows = ROWS.iter().filter(move |row| row.main || style.all_measures);
    rows.chain(OPTIONAL_ROWS.iter().filter(|row| row.is_shown(outcomes)))
}

/// What a half width is.
const HALF_WIDTH: (&str, &str) =
    ("± 95 %", "half the width of the interval of the mean, for a longer log of the same kind");

/// What the default rows of a comparison mean.
pub(super) const MEANINGS: [(&str, &str); 4] = [
    ("wait", "the time from submission to start; 5 % of the jobs wait longer than p95"),
    ("bounded slowdown", "(wait + runtime) / runtime, where runtimes below 10 s count as 10 s; 1 is no wait"),
    ("utilization", "the share of the processors' time that jobs used, up to the last submission"),
    ("promises kept", "of the latest starts that the policy promised to jobs"),
];

/// Returns the column of the worst value of each row, if it differs significantly from the best.
fn worst_columns(outcomes: &[&RunDoc], style: TableStyle) -> Vec<Option<usize>> {
    shown_rows(outcomes, style).map(|row| Some(row.worst(outcomes)? + 1)).collect()
}

/// Returns the legend of the marks in these rows; `None` without a mark.
pub(super) fn legend_of(rows: &[Vec<String>], outcomes: &[&RunDoc]) -> Option<String> {
    let marked = |mark| rows.iter().flatten().any(|cell| cell.ends_with(mark));
    let leaves_out = outcomes.iter().any(|outcome| outcome.jobs.left_out() > 0);
    let incomparable = outcomes.iter().any(|outcome| !outcome.is_comparable());
    legend(marked, leaves_out, incomparable)
}

/// Mark of the best value of a row.
pub(super) const BEST: char = '*';

/// Mark of a value that does not differ significantly from the best.
const INSIGNIFICANT: char = '~';

/// Mark of a value whose difference from the best has unknown significance.
const UNKNOWN: char = '?';

fn legend(is_marked: impl Fn(char) -> bool, leaves_out: bool, incomparable: bool) -> Option<String> {
    let meanings = [
        (true, "* best of the row"),
        (is_marked(INSIGNIFICANT), "; ~ not significantly different from the best (95 %)"),
        (is_marked(UNKNOWN), "; ? significance unknown (batch means correlated, or too few jobs)"),
        (leaves_out, "; a schedule that leaves jobs out has no mark"),
        (incomparable, "; a recorded schedule that overfills the machine, or that the runs cut, has no mark"),
    ];
    let shown = meanings.into_iter().filter_map(|(shown, meaning)| shown.then_some(meaning));
    is_marked(BEST).then(|| shown.collect())
}

/// Returns `all 2 917`, or `2 915 of 2 917`.
fn promises_kept(outcome: &RunDoc) -> String {
    let promises = &outcome.promises;
    match promises.made {
        0 => "none made ".into(),
        made if promises.kept == made => format!("all {} ", count(made)),
        made => format!("{} of {} ", count(promises.kept), count(made)),
    }
}

/// A row of the comparison.
#[derive(Clone, Copy)]
struct ComparisonRow {
    name: &'static str,
    /// Position in `Measures::all`, if the row is a mean.
    mean_of: Option<usize>,
    value: fn(&RunDoc) -> Option<f64>,
    quantity: Quantity,
    better: Option<Improvement>,
    /// Whether it is shown by default.
    main: bool,
}

/// The direction of improvement of a row.
#[derive(Clone, Copy)]
enum Improvement {
    Lower,
    Higher,
}

impl Improvement {
    const fn opposite(self) -> Improvement {
        match self {
            Improvement::Lower => Improvement::Higher,
            Improvement::Higher => Improvement::Lower,
        }
    }
}

/// Returns whether a run has all jobs, and can be compared with simulated ones.
fn is_complete(outcomes: &[&RunDoc]) -> impl Fn(&RunDoc) -> bool + use<> {
    let most = outcomes.iter().map(|outcome| outcome.jobs.measured).max();
    move |outcome| Some(outcome.jobs.measured) == most && outcome.is_comparable()
}

impl ComparisonRow {
    /// Returns whether any run has a positive value.
    fn is_shown(&self, outcomes: &[&RunDoc]) -> bool {
        outcomes.iter().any(|outcome| (self.value)(outcome).is_some_and(|value| value > 0.0))
    }

    /// Returns the name and a cell for each run.
    fn cells(&self, outcomes: &[&RunDoc], style: TableStyle) -> Vec<String> {
        let values: Vec<Option<f64>> = outcomes.iter().map(|outcome| (self.value)(outcome)).collect();
        let compared = self.compared(outcomes);
        let complete = is_complete(outcomes);
        // Values that print alike are equal to the reader.
        let text = |value| style.figure(self.quantity, value);
        let mut texts = compared.iter().flatten().map(|value| text(Some(*value)));
        let first = texts.next();
        let differ = texts.any(|text| Some(text) != first);
        let best = self.better.and_then(|better| best(&compared, better)).filter(|_| differ);
        let winner = compared.iter().position(|&value| best.is_some() && value == best);
        let cells = values.iter().zip(outcomes).map(|(&value, outcome)| {
            let mark = match winner {
                Some(_) if complete(outcome) && value == best => BEST,
                Some(winner) if complete(outcome) => self.mark(outcome, outcomes[winner]),
                _ => ' ',
            };
            format!("{}{mark}", style.figure(self.quantity, value))
        });
        std::iter::once(style.label(self.quantity, self.name)).chain(cells).collect()
    }

    /// Returns the values that are compared.
    fn compared(&self, outcomes: &[&RunDoc]) -> Vec<Option<f64>> {
        let complete = is_complete(outcomes);
        outcomes.iter().map(|outcome| (self.value)(outcome).filter(|_| complete(outcome))).collect()
    }

    /// Returns the run with the worst value, if its difference from the best is known to be significant.
    fn worst(&self, outcomes: &[&RunDoc]) -> Option<usize> {
        let (better, measure) = (self.better?, self.mean_of?);
        let compared = self.compared(outcomes);
        let at = |value: f64| compared.iter().position(|&compared| compared == Some(value));
        let (winner, last) = (at(best(&compared, better)?)?, at(best(&compared, better.opposite())?)?);
        let difference = DifferenceDoc::new(outcomes[last], outcomes[winner], measure);
        (difference.within_noise == Some(false)).then_some(last)
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
    let quantity = Quantity::Number;
    ComparisonRow { name, mean_of: None, value, quantity, better: Some(Improvement::Lower), main: false }
}

const fn main(row: ComparisonRow) -> ComparisonRow {
    ComparisonRow { main: true, ..row }
}

const fn time(row: ComparisonRow) -> ComparisonRow {
    ComparisonRow { quantity: Quantity::Time, ..row }
}

const fn neutral(name: &'static str, value: fn(&RunDoc) -> Option<f64>) -> ComparisonRow {
    ComparisonRow { better: None, ..row(name, value) }
}

const fn mean(name: &'static str, measure: usize, value: fn(&RunDoc) -> Option<f64>) -> ComparisonRow {
    ComparisonRow { mean_of: Some(measure), ..row(name, value) }
}

const ROWS: &[ComparisonRow] = &[
    main(time(mean("wait, mean", 0, |run| run.metrics.wait.mean))),
    time(row("wait, median", |run| run.metrics.wait.median)),
    main(time(row("wait, p95", |run| run.metrics.wait.p95))),
    main(time(row("wait, max", |run| run.metrics.wait.max))),
    time(mean("response, mean", 1, |run| run.metrics.response.mean)),
    mean("slowdown, mean", 2, |run| run.metrics.slowdown.mean),
    main(mean("bounded slowdown, mean", 3, |run| run.metrics.bounded_slowdown.mean)),
    row("bounded slowdown, p95", |run| run.metrics.bounded_slowdown.p95),
    row("bounded slowdown, max", |run| run.metrics.bounded_slowdown.max),
    row("queue length, mean", |run| run.queue_length.mean),
    main(share("utilization", |run| run.utilization_to_last_submission.or(run.utilization))),
    share("utilization, to last end", |run| run.utilization),
    time(row("response by area, mean", |run| run.area_weighted_response)),
    row("slowdown by area, mean", |run| run.area_weighted_slowdown),
    neutral("ends per hour, deviation", |run| run.throughput_deviation),
];

const fn share(name: &'static str, value: fn(&RunDoc) -> Option<f64>) -> ComparisonRow {
    let better = Some(Improvement::Higher);
    ComparisonRow { quantity: Quantity::Share, better, ..row(name, value) }
}

/// Rows shown only if a run has a value: jobs left out, suspension and time slicing.
const OPTIONAL_ROWS: &[ComparisonRow] = &[
    ComparisonRow {
        quantity: Quantity::Count,
        ..neutral("jobs left out", |run| Some(run.jobs.left_out() as f64))
    },
    ComparisonRow { quantity: Quantity::Count, ..neutral("suspensions", |run| Some(run.suspensions as f64)) },
    neutral("slots per job, mean", |run| run.slicing.as_ref()?.slots.mean),
    neutral("slots used, mean", |run| run.slicing.as_ref()?.rows.mean),
    ComparisonRow {
        quantity: Quantity::Share,
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

/// The longest line of a parameter with its value.
const PARAMETER_WIDTH: usize = 12;

/// Breaks a long parameter before its value.
fn folded_value(parameter: &str) -> String {
    let long = parameter.chars().count() > PARAMETER_WIDTH;
    if long { parameter.replace('=', "=\n") } else { parameter.to_owned() }
}

/// Breaks a policy's written form into lines to keep columns narrow. Quoted formulas stay whole.
pub(super) fn folded_policy(policy: &str) -> String {
    let fold = |(position, part): (usize, &str)| match position % 2 {
        0 => {
            let parameters = part.replace('(', "\n(").replace(", ", ",\n");
            parameters.split('\n').map(folded_value).collect::<Vec<_>>().join("\n")
        }
        _ => format!("'{part}'"),
    };
    policy.split('\'').enumerate().map(fold).collect()
}

fn heading(outcome: &RunDoc, style: TableStyle) -> String {
    log_heading(outcome, &[outcome], style) + &style.entry("policy", &outcome.policy)
}

/// Returns the log and the settings of a run. `outcomes` are all runs below this heading.
fn log_heading(outcome: &RunDoc, outcomes: &[&RunDoc], style: TableStyle) -> String {
    let entries = log_entries(outcome, outcomes);
    entries.iter().map(|(name, value)| style.entry(name, value)).collect()
}

/// Returns the log and the settings of a run as names and values.
pub(super) fn log_entries(outcome: &RunDoc, outcomes: &[&RunDoc]) -> Vec<(&'static str, String)> {
    let (settings, jobs) = (&outcome.settings, &outcome.jobs);
    let log = format!("{}, {} processors", outcome.trace.name, count(settings.procs.into()));
    let mut entries = vec![("log", log)];
    if !settings.machine.is_plain() {
        entries.push(("machine", machine_summary(&settings.machine)));
    }
    let most = outcomes.iter().map(|outcome| outcome.jobs.simulated).max().unwrap_or_default();
    let mut counts = format!("{} read, {} simulated", count(jobs.read), count(most));
    if jobs.measured != jobs.simulated {
        counts.push_str(&format!(", {} measured", count(jobs.measured)));
    }
    // A row of a comparison has the jobs that only some schedules leave out.
    let shown = |reason: &str| outcomes.len() == 1 || !is_of_schedule(reason);
    for (reason, number) in jobs.skipped.iter().filter(|(reason, _)| shown(reason)) {
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
    entries.push(("jobs", counts));
    let random = |outcome: &&RunDoc| outcome.policy.contains("random");
    let drawn = ["uniform", "tsafrir"].iter().any(|model| settings.estimates.starts_with(model))
        || outcomes.iter().any(random);
    let conventions = format!(
        "estimates {}, overrun {}, event order {}, size {}",
        settings.estimates, settings.overrun, settings.event_order, settings.procs_field
    );
    let dates = outcome.trace.dates.as_ref();
    entries.push(("settings", conventions + &further(settings, drawn, dates)));
    entries
}

/// Returns the settings that differ from their defaults.
fn further(settings: &SettingsDoc, drawn: bool, dates: Option<&LogDates>) -> String {
    let mut text = String::new();
    if drawn {
        text.push_str(&format!(", seed {}", settings.seed));
    }
    for (name, value) in [("from", settings.from), ("to", settings.to)] {
        text.push_str(
            &value.map_or_else(String::new, |secs| format!(", {name} {}", instant_text(secs, dates))),
        );
    }
    for (name, list) in [("users", &settings.users), ("queues", &settings.queues)] {
        if !list.is_empty() {
            let numbers: Vec<_> = list.iter().map(ToString::to_string).collect();
            text.push_str(&format!(", {name} {}", numbers.join(" ")));
        }
    }
    if settings.offline {
        text.push_str(", off-line");
    } else if settings.load_is_scaled {
        text.push_str(&format!(", load x {}", settings.scale_load));
    }
    if let Some(secs) = settings.shake {
        text.push_str(&format!(
            ", submissions moved by up to {} (seed {})",
            secs_text(secs.into()),
            settings.seed
        ));
    }
    if let Some(feedback) = &settings.feedback {
        text.push_str(&format!(", feedback by {feedback}"));
    }
    if settings.warmup > 0 {
        text.push_str(&format!(", warm-up {}", secs_text(settings.warmup)));
    }
    if let Some(BatchSettings { jobs, count, discard }) = settings.batches {
        text.push_str(&format!(", {count} batches of {jobs} terminations after {discard}"));
    }
    if let Some(idle_use) = &settings.idle_use {
        match (idle_use.opportunistic.as_str(), idle_use.preempt_lead_time) {
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

/// Returns `86400 s`, or `86400 s (1996-09-24 15:00)`.
fn instant_text(secs: i64, dates: Option<&LogDates>) -> String {
    let date = dates.and_then(|dates| dates.minute(secs));
    format!("{secs} s{}", date.map_or_else(String::new, |date| format!(" ({date})")))
}

/// Returns the share of the jobs that started immediately, if it differs from that of the jobs without wait.
fn started_immediately(outcome: &RunDoc) -> Option<String> {
    let (started, measured) = (outcome.jobs.started_immediately, outcome.jobs.measured);
    let share = Some(started as f64 / measured as f64).filter(|_| measured > 0);
    (share != outcome.guarantees.without_wait)
        .then(|| format!("{}: {} of {} jobs", percent(share), count(started), count(measured)))
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

/// Returns the facts of typed GPUs: `40.00 % (a100 60.00 %, t4 20.00 %)`, and the GPUs that are fragments.
fn gpus(doc: &GpuUseDoc) -> Vec<(&'static str, String)> {
    let of_type = |used: &GpuTypeUseDoc| format!("{} {}", used.kind, percent(Some(used.utilization)));
    let types = match &doc.types[..] {
        [_] => String::new(),
        types => format!(" ({})", types.iter().map(of_type).collect::<Vec<_>>().join(", ")),
    };
    let utilization = format!("{}{types}", percent(Some(doc.utilization())));
    let fragmented =
        format!("{} idle, while a job waited that fits if they were together", figure(Some(doc.fragmented)));
    vec![("utilization of GPUs", utilization), ("fragmented GPUs", fragmented)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legend_explains_the_marks_that_there_are() {
        let text = |marks: &str, leaves_out| legend(|mark| marks.contains(mark), leaves_out, false);
        assert_eq!(text("", false), None);
        assert_eq!(text("*", false).as_deref(), Some("* best of the row"));
        let unknown = "* best of the row; ? significance unknown (batch means correlated, or too few jobs)";
        assert_eq!(text("*?", false).as_deref(), Some(unknown));
        assert!(text("*~?", true).is_some_and(|text| text.contains("; ~ not significantly different")));
    }
}
