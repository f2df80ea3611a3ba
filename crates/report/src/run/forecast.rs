//! The audit of the forecasts of a log.

use miserly_workload::LogDates;
use serde::Serialize;

use super::layout::{Quantity, TableStyle, TextTable};
use super::on_page::on_page;
use crate::chart::{Axis, AxisScale, BarSeries, Body, Chart, DataSeries, GroupBar, LocalClock};
use crate::numbers::{count, percent};
use crate::page::{Block, Page, Section};

/// The forecasts of a log against the waits that followed. Times are in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct ForecastDoc {
    /// Version of the program.
    pub version: &'static str,
    /// File name of the log.
    pub trace: String,
    /// Policy in its written form.
    pub policy: String,
    /// Simulated futures with likely runtimes for each job that waits.
    pub draws: u64,
    /// Jobs of the log, the first tenth included, which is not audited.
    pub jobs: u64,
    /// The audit of each size class that has jobs, then that of all.
    pub classes: Vec<ForecastClassDoc>,
    /// The audited jobs that did not start at once, in equal parts by submission.
    pub over_time: Vec<ForecastPartDoc>,
}

/// The forecasts of a part of the log.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ForecastPartDoc {
    /// First submission.
    pub from: f64,
    /// Last submission.
    pub to: f64,
    /// Jobs.
    pub jobs: u64,
    /// Share of waits within the median, 0 to 1.
    pub median: f64,
    /// Share of waits within the bound of level 80 %, 0 to 1.
    pub level_80: f64,
    /// Share of waits within the bound of level 95 %, 0 to 1.
    pub level_95: f64,
}

/// The forecasts of a class of jobs.
#[derive(Clone, Debug, Serialize)]
pub struct ForecastClassDoc {
    /// The processors of the jobs, such as `5-16`, or `all`.
    pub procs: &'static str,
    /// Jobs.
    pub jobs: u64,
    /// Jobs that started at once: their forecast is their start.
    pub at_once: u64,
    /// Upper bounds of the wait that half of the jobs keep.
    pub median: ForecastBoundDoc,
    /// Upper bounds of level 80 %.
    pub level_80: ForecastBoundDoc,
    /// Upper bounds of level 95 %.
    pub level_95: ForecastBoundDoc,
    /// The promise as a bound of level 95 %; no jobs if the policy does not promise.
    pub promise: ForecastBoundDoc,
    /// The baseline: BMBP, of level 95 %.
    pub bmbp: ForecastBoundDoc,
    /// Shares of waits, of the jobs that did not start at once, within the bounds of level 5 %, 10 %, ..., 100 %.
    pub calibration: Option<Vec<f64>>,
    /// Shares of jobs that started within 1, 10 and 60 minutes of the median, 0 to 1.
    pub near_median: Option<[f64; 3]>,
}

/// Upper bounds of one level against the waits that followed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ForecastBoundDoc {
    /// Jobs with such a bound.
    pub jobs: u64,
    /// Share of waits within the bound, 0 to 1.
    pub coverage: Option<f64>,
    /// The same over the jobs that did not start at once.
    pub coverage_of_waiting: Option<f64>,
    /// Mean bound.
    pub mean: Option<f64>,
    /// Mean pinball loss at this level.
    pub pinball: Option<f64>,
}

/// Formats the audit as tables. `machine` describes the machine.
pub fn forecast_table(document: &ForecastDoc, machine: &str, style: TableStyle) -> String {
    let heading = [
        ("log", format!("{}, {machine}", document.trace)),
        ("policy", document.policy.clone()),
        ("jobs", format!("{}; the first tenth is not audited", count(document.jobs))),
        ("draws", format!("{} for each job that waits", count(document.draws))),
    ];
    let mut text: String = heading.iter().map(|(name, value)| style.entry(name, value)).collect();
    text.push_str(&format!("\n{}\n", shares(document, style).table(style.width)));
    text.push_str(&format!("\n{}\n", losses(document, style).table(style.width)));
    text.push_str("\nkept: waits within the bound, of the jobs that did not start at once\nwithin: starts near the median, of all jobs\n");
    text
}

/// Returns the shares of kept bounds and of near medians, one row a class.
fn shares(document: &ForecastDoc, style: TableStyle) -> TextTable {
    let share = |value| style.figure(Quantity::Share, value);
    let row = |class: &ForecastClassDoc| {
        let near = class.near_median;
        vec![
            class.procs.to_owned(),
            count(class.jobs),
            share((class.jobs > 0).then(|| class.at_once as f64 / class.jobs as f64)),
            share(class.median.coverage_of_waiting),
            share(class.level_80.coverage_of_waiting),
            share(class.level_95.coverage_of_waiting),
            share(near.map(|near| near[0])),
            share(near.map(|near| near[1])),
            share(near.map(|near| near[2])),
        ]
    };
    let header = [
        "processors",
        "jobs",
        "at once",
        "50 % kept",
        "80 % kept",
        "95 % kept",
        "within 1m",
        "within 10m",
        "within 1h",
    ]
    .map(str::to_owned);
    TextTable { header: header.into(), rows: document.classes.iter().map(row).collect() }
}

/// Returns the mean bounds and losses at 95 %, one row a class.
fn losses(document: &ForecastDoc, style: TableStyle) -> TextTable {
    let time = |value| style.figure(Quantity::Time, value);
    let row = |class: &ForecastClassDoc| {
        let ForecastClassDoc { level_95: ours, promise, bmbp, .. } = class;
        vec![
            class.procs.to_owned(),
            time(ours.mean),
            time(promise.mean),
            time(bmbp.mean),
            time(ours.pinball),
            time(promise.pinball),
            time(bmbp.pinball),
        ]
    };
    let label = |name| style.label(Quantity::Time, name);
    let header = [
        "processors".to_owned(),
        label("mean 95 %"),
        label("promise"),
        label("BMBP"),
        label("loss 95 %"),
        label("promise"),
        label("BMBP"),
    ];
    TextTable { header: header.into(), rows: document.classes.iter().map(row).collect() }
}

/// The fewest jobs that waited of a class with a curve of its own.
const CURVE_LEAST: u64 = 100;

/// Returns the page of an audit. `machine` describes the machine, `dates` are those of the log, and `provenance` says how the page was made.
pub fn forecast_page(
    document: &ForecastDoc,
    machine: &str,
    dates: Option<&LogDates>,
    provenance: Vec<(String, String)>,
) -> Page {
    let style = TableStyle::default();
    let calibration = Section {
        heading: "Calibration".into(),
        blocks: vec![
            Block::Chart(calibration_chart(document)),
            Block::Chart(over_time_chart(document, dates)),
            Block::Chart(kept_chart(document)),
            Block::Chart(bounds_chart(document)),
        ],
    };
    let tables = Section {
        heading: "By processors".into(),
        blocks: vec![
            Block::Text("Kept: waits within the bound, of the jobs that did not start at once.".into()),
            Block::Table(on_page(shares(document, style))),
            Block::Text(
                "Mean bounds of the wait and mean pinball losses at 95 %, of all jobs. BMBP is the baseline of Brevik, \
                 Nurmi and Wolski (2006)."
                    .into(),
            ),
            Block::Table(on_page(losses(document, style))),
        ],
    };
    Page {
        title: format!("Forecasts of {} under {}", document.trace, document.policy),
        lead: Some(lead(document, machine)),
        sections: vec![calibration, tables],
        provenance,
    }
}

/// Returns the result in a sentence or two.
fn lead(document: &ForecastDoc, machine: &str) -> String {
    let Some(all) = document.classes.last() else { return machine.to_owned() };
    let kept = percent(all.level_95.coverage_of_waiting);
    let near = percent(all.near_median.map(|near| near[1]));
    let at_once = percent((all.jobs > 0).then(|| all.at_once as f64 / all.jobs as f64));
    format!(
        "{} jobs on {machine}, of which {at_once} started at once. Of the others, {kept} started within their 95 % bound. \
         {near} of all jobs started within 10 minutes of the median.",
        count(all.jobs)
    )
}

/// Returns the share of kept bounds by their level.
fn calibration_chart(document: &ForecastDoc) -> Chart {
    let enough =
        |class: &&ForecastClassDoc| class.jobs - class.at_once >= CURVE_LEAST || class.procs == "all";
    let of_class = |class: &ForecastClassDoc| {
        let shares = class.calibration.as_ref()?;
        let points = shares.iter().enumerate().map(|(at, share)| {
            let level = (at + 1) as f64 / shares.len() as f64;
            (100.0 * level, 100.0 * share)
        });
        Some(DataSeries::line(class.procs, std::iter::once((0.0, 0.0)).chain(points).collect()))
    };
    let exact = DataSeries::reference("kept as often as stated", vec![(0.0, 0.0), (100.0, 100.0)]);
    let classes = document.classes.iter().filter(enough).filter_map(of_class);
    Chart {
        id: "calibration".into(),
        title: "Kept bounds by their level".into(),
        caption: Some(
            "A line for each class of processors. Above the straight line, bounds are kept more often than they say.".into(),
        ),
        x: Axis { from: Some(0.0), to: Some(100.0), ..Axis::linear("level of the bound, %") },
        y: Axis { from: Some(0.0), to: Some(100.0), ..Axis::linear("waits within it, %") },
        body: Body::Lines { series: std::iter::once(exact).chain(classes).collect() },
    }
}

/// Returns the share of kept bounds over the log.
fn over_time_chart(document: &ForecastDoc, dates: Option<&LogDates>) -> Chart {
    let series = |name: &str, share: fn(&ForecastPartDoc) -> f64| {
        let points = document.over_time.iter().map(|part| (part.from, 100.0 * share(part))).collect();
        DataSeries::line(name, points)
    };
    let first = document.over_time.first().map_or(0.0, |part| part.from);
    let last = document.over_time.last().map_or(0.0, |part| part.to);
    let clock = dates.and_then(|dates| LocalClock::new(dates, first, last));
    let x = match clock {
        Some(clock) => Axis {
            label: format!("submission, {}", clock.label(first, last)),
            scale: AxisScale::Dates(clock),
            from: Some(first),
            to: Some(last),
        },
        None => Axis::seconds("submission"),
    };
    Chart {
        id: "over-time".into(),
        title: "Kept bounds over the log".into(),
        caption: Some("Jobs that did not start at once, in parts of equal numbers.".into()),
        x,
        y: Axis { from: Some(0.0), to: Some(100.0), ..Axis::linear("waits within the bound, %") },
        body: Body::Lines {
            series: vec![
                series("50 %", |part| part.median),
                series("80 %", |part| part.level_80),
                series("95 %", |part| part.level_95),
            ],
        },
    }
}

/// Returns a chart with a group of bars for each class of processors.
fn by_class(document: &ForecastDoc, [id, title]: [&str; 2], y: Axis, series: &[(&str, ClassValue)]) -> Chart {
    let bars = |value: ClassValue| {
        let bar = |class| value(class).map(|value| GroupBar { value, interval: None });
        document.classes.iter().map(bar).collect()
    };
    let of_value =
        |&(name, value): &(&str, ClassValue)| BarSeries { name: name.to_owned(), bars: bars(value) };
    let classes = document.classes.iter().map(|class| class.procs.to_owned()).collect();
    Chart {
        id: id.into(),
        title: title.into(),
        caption: None,
        x: Axis::category("processors", classes),
        y,
        body: Body::Groups { series: series.iter().map(of_value).collect() },
    }
}

/// A figure of a class.
type ClassValue = fn(&ForecastClassDoc) -> Option<f64>;

/// Returns the share of kept bounds of each class.
fn kept_chart(document: &ForecastDoc) -> Chart {
    let y = Axis { from: Some(0.0), to: Some(100.0), ..Axis::linear("waits within the bound, %") };
    let series: [(&str, ClassValue); 3] = [
        ("50 %", |class| Some(100.0 * class.median.coverage_of_waiting?)),
        ("80 %", |class| Some(100.0 * class.level_80.coverage_of_waiting?)),
        ("95 %", |class| Some(100.0 * class.level_95.coverage_of_waiting?)),
    ];
    let chart = by_class(document, ["kept", "Kept bounds by processors"], y, &series);
    Chart { caption: Some("Jobs that did not start at once.".into()), ..chart }
}

/// Returns the mean bounds of each class beside those of the promise and of the baseline.
fn bounds_chart(document: &ForecastDoc) -> Chart {
    let y = Axis { scale: AxisScale::Seconds, ..Axis::linear("mean bound of the wait") };
    let series: [(&str, ClassValue); 3] = [
        ("bound of 95 %", |class| class.level_95.mean),
        ("promise", |class| class.promise.mean),
        ("BMBP", |class| class.bmbp.mean),
    ];
    let chart = by_class(document, ["bounds", "Mean bounds of the wait"], y.from_zero(), &series);
    Chart {
        caption: Some("All jobs. A lower bound says more, if it is kept as often as stated.".into()),
        ..chart
    }
}
