//! The page of a few runs that were not planned as an experiment: `simulate --report` and `compare --report`.

use std::collections::BTreeMap;

use miserly_core::Time;
use miserly_policies::PolicySpec;
use miserly_report::page::{Block, Page, Section, TableCell, TableData};
use miserly_report::{RunDoc, decimals};
use miserly_sim::MostSlots;
use rayon::prelude::*;
use serde_json::Value;

use crate::chart_request::{AxisRequest, ChartKind, ChartRequest, LineRequest, Scale};
use crate::experiment::{Axes, Index, IndexedRun};
use crate::present::{blocks, number_charts};
use crate::results::{Results, at};
use crate::run_result::{MatrixRows, RunResult, Window, document, matrix_watch};
use crate::selector::Selector;
use miserly_run::{RunSetup, SetupError};

/// How long the window of the Gantt charts is where none is given, seconds.
const WINDOW: f64 = 86_400.0;

/// The content of the page.
pub struct Overview<'a> {
    /// The command that makes it.
    pub command: String,
    /// The runs, made with details: the setup, the policy, and the result.
    pub runs: Vec<(&'a RunSetup, &'a PolicySpec, &'a RunDoc)>,
    /// The window of the Gantt charts, in the log's seconds; else the day of the longest queue.
    pub window: Option<[i64; 2]>,
}

/// Returns the page of some runs. Each is made once more for its Gantt chart.
///
/// # Errors
/// If a run fails.
pub fn overview(overview: &Overview<'_>) -> Result<Page, SetupError> {
    let results = overview.results()?;
    let mut sections = Vec::new();
    for log in overview.logs() {
        sections.push(measures(&log, overview));
        sections.extend(charts(&log, overview).iter().filter_map(|chart| section(chart, &results)));
    }
    number_charts(&mut sections);
    let policies: Vec<_> = overview.policies();
    Ok(Page {
        title: format!("{} on {}", policies.join(", "), overview.logs().join(", ")),
        lead: None,
        sections,
        provenance: provenance(overview),
    })
}

impl<'a> Overview<'a> {
    /// Returns the names of the logs, each once.
    fn logs(&self) -> Vec<String> {
        distinct(self.runs.iter().map(|(log, ..)| self.name(log)))
    }

    /// Returns the name of a log, numbered where another one before it has the same.
    fn name(&self, log: &RunSetup) -> String {
        let mut alike: Vec<&RunSetup> = Vec::new();
        for (other, ..) in self.runs.iter().filter(|(other, ..)| other.name() == log.name()) {
            if !alike.iter().any(|known| std::ptr::eq(*known, *other)) {
                alike.push(other);
            }
        }
        match alike.iter().position(|known| std::ptr::eq(*known, log)) {
            None | Some(0) => log.name().to_owned(),
            Some(before) => format!("{} ({})", log.name(), before + 1),
        }
    }

    /// Returns the runs of the log of this name.
    fn runs_of(&self, log: &str) -> impl Iterator<Item = &(&'a RunSetup, &'a PolicySpec, &'a RunDoc)> {
        self.runs.iter().filter(move |(of, ..)| self.name(of) == log)
    }

    fn policies(&self) -> Vec<String> {
        distinct(self.runs.iter().map(|(_, policy, _)| policy.to_string()))
    }

    /// Returns the results of the runs, each with the jobs of its window.
    fn results(&self) -> Result<Results, SetupError> {
        let made: Vec<Result<(String, Axes, Value), SetupError>> =
            self.runs.par_iter().enumerate().map(|(at, _)| self.result(at)).collect();
        let (mut runs, mut documents) = (Vec::new(), BTreeMap::new());
        for made in made {
            let (key, axes, document) = made?;
            runs.push(IndexedRun { axes, key: key.clone() });
            documents.insert(key, document);
        }
        let index = Index {
            version: env!("CARGO_PKG_VERSION").into(),
            sources: env!("MISERLY_SOURCES").into(),
            command: self.command.clone(),
            file: String::new(),
            traces: vec![],
            runs,
        };
        Ok(Results::in_memory(index, documents))
    }

    fn result(&self, position: usize) -> Result<(String, Axes, Value), SetupError> {
        let (log, policy, outcome) = self.runs[position];
        let key = position.to_string();
        let document = document(outcome);
        let window = match self.window {
            Some(window) => window,
            None => busiest(&document).map_or_else(|| fullest(log, policy), Ok)?,
        };
        let (mut jobs, mut matrix) = (Window::new(window[0], window[1]), matrix_watch(window));
        log.outcome(policy, true, &mut [&mut jobs, &mut matrix])?;
        let result = RunResult {
            key: &key,
            run: document,
            gantt_window: Some(window),
            gantt: Some(jobs.rows),
            matrix: matrix.record().as_ref().map(MatrixRows::from_record),
            longest_waits: None,
        };
        // Plain data: it has a JSON form.
        let result = serde_json::to_value(&result).unwrap_or_default();
        let axes = [("trace", self.name(log)), ("policy", policy.to_string())];
        let axes = axes.into_iter().map(|(axis, value)| (axis.to_owned(), value)).collect();
        Ok((key, axes, result))
    }
}

/// Returns each name once, in the order in which they come.
fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

/// Returns the day around the longest queue, in the seconds of the log; `None` if no job ever waits.
fn busiest(document: &Value) -> Option<[i64; 2]> {
    let series = at(document, "details.series");
    let number = |name: &str| series.and_then(|series| series.get(name)).and_then(Value::as_f64);
    let (first, step) = (number("from").unwrap_or_default(), number("step").unwrap_or(1.0));
    let waiting = series.and_then(|series| series.get("waiting")).and_then(Value::as_array);
    let longest =
        waiting.into_iter().flatten().enumerate().filter_map(|(at, value)| Some((at, value.as_f64()?)));
    let (longest, most) = longest.fold((0, 0.0), |most, one| if one.1 > most.1 { one } else { most });
    (most > 0.0).then(|| day_around(first + (longest as f64 + 0.5) * step))
}

/// Returns the day around the instant with the most slots; the first day without slots.
fn fullest(log: &RunSetup, policy: &PolicySpec) -> Result<[i64; 2], SetupError> {
    let mut most = MostSlots::default();
    log.outcome(policy, false, &mut [&mut most])?;
    Ok(day_around(most.at().map_or(0.0, |at| (at - Time::ZERO).as_secs_f64())))
}

fn day_around(middle: f64) -> [i64; 2] {
    let from = (middle - WINDOW / 2.0).max(0.0);
    // Seconds of a log fit by far.
    #[allow(clippy::cast_possible_truncation)]
    [from as i64, (from + WINDOW) as i64]
}

/// The rows of the table of measures: name, path, decimals, divisor.
const MEASURES: [(&str, &str, usize, f64); 19] = [
    ("jobs read", "jobs.read", 0, 1.0),
    ("  simulated", "jobs.simulated", 0, 1.0),
    ("  killed at the estimate", "jobs.killed_at_estimate", 0, 1.0),
    ("  measured", "jobs.measured", 0, 1.0),
    ("  started immediately", "jobs.started_immediately", 0, 1.0),
    ("wait, mean (s)", "metrics.wait.mean", 2, 1.0),
    ("  95 % ±", "uncertainty.half_width.wait", 2, 1.0),
    ("wait, median (s)", "metrics.wait.median", 2, 1.0),
    ("wait, p95 (s)", "metrics.wait.p95", 2, 1.0),
    ("wait, max (s)", "metrics.wait.max", 2, 1.0),
    ("bounded slowdown, mean", "metrics.bounded_slowdown.mean", 2, 1.0),
    ("  95 % ±", "uncertainty.half_width.bounded_slowdown", 2, 1.0),
    ("bounded slowdown, p95", "metrics.bounded_slowdown.p95", 2, 1.0),
    ("bounded slowdown, max", "metrics.bounded_slowdown.max", 2, 1.0),
    ("suspensions", "suspensions", 0, 1.0),
    ("utilization (%)", "utilization", 2, 0.01),
    ("queue length, mean", "queue_length.mean", 2, 1.0),
    ("promises made", "promises.made", 0, 1.0),
    ("  broken", "promises.broken", 0, 1.0),
];

fn measures(log: &str, overview: &Overview<'_>) -> Section {
    let runs: Vec<_> = overview.runs_of(log).collect();
    let documents: Vec<Value> = runs.iter().map(|(.., outcome)| document(outcome)).collect();
    let head =
        std::iter::once(String::new()).chain(runs.iter().map(|(_, policy, _)| policy.to_string())).collect();
    let row = |&(name, path, digits, unit): &(&str, &str, usize, f64)| {
        let cell = |document: &Value| {
            let value = at(document, path).and_then(Value::as_f64);
            TableCell::number(value.map_or_else(|| "-".into(), |value| decimals(value / unit, digits)))
        };
        std::iter::once(TableCell::text(name)).chain(documents.iter().map(cell)).collect()
    };
    let table = TableData { caption: None, header: vec![head], rows: MEASURES.iter().map(row).collect() };
    Section { heading: format!("{log}: measures"), blocks: vec![Block::Table(table)] }
}

/// Returns a chart as a section; `None` if the runs do not have its figure.
fn section(chart: &ChartRequest, results: &Results) -> Option<Section> {
    let blocks = blocks(chart, results).ok()?;
    Some(Section { heading: chart.title.clone(), blocks })
}

/// A chart of a log: its title, its kind, its figure, and the labels and scales of its axes.
type Row = (&'static str, ChartKind, &'static str, [(&'static str, Scale); 2]);

const SHARE: (&str, Scale) = ("share of the jobs", Scale::Linear);
const BY_CATEGORY: [(&str, Scale); 2] = [("policy", Scale::LogTime), ("category", Scale::Linear)];
const TIME: (&str, Scale) = ("time of the log", Scale::Time);

/// The charts of distributions, with a line for each policy.
const DISTRIBUTIONS: [Row; 7] = [
    ("distribution of the wait", ChartKind::Steps, "details.cdf.wait", [("wait", Scale::LogTime), SHARE]),
    (
        "distribution of the bounded slowdown",
        ChartKind::Steps,
        "details.cdf.bounded_slowdown",
        [("bounded slowdown", Scale::Log), SHARE],
    ),
    (
        "wait against runtime",
        ChartKind::Groups,
        "by.runtime-bin:metrics.wait.mean",
        [("runtime", Scale::LogTime), ("mean wait", Scale::LogTime)],
    ),
    (
        "mean bounded slowdown by category",
        ChartKind::Heat,
        "by.category:metrics.bounded_slowdown.mean",
        BY_CATEGORY,
    ),
    (
        "95th percentile of the bounded slowdown by category",
        ChartKind::Heat,
        "by.category:metrics.bounded_slowdown.p95",
        BY_CATEGORY,
    ),
    (
        "worst bounded slowdown by category",
        ChartKind::Heat,
        "by.category:metrics.bounded_slowdown.max",
        BY_CATEGORY,
    ),
    ("jobs by category", ChartKind::Heat, "by.category:jobs", BY_CATEGORY),
];

/// The chart of promises, if there are any.
const PROMISES: Row = (
    "quality of promises as forecasts",
    ChartKind::Steps,
    "details.cdf.guarantees",
    [("promised wait / actual wait", Scale::Log), SHARE],
);

/// The charts over time, with a line for each policy.
const OVER_TIME: [Row; 2] = [
    ("busy processors", ChartKind::Series, "busy", [TIME, ("processors", Scale::Linear)]),
    ("jobs waiting", ChartKind::Series, "waiting", [TIME, ("jobs", Scale::Linear)]),
];

/// The charts of each single policy.
const SCHEDULES: [Row; 2] = [
    (
        "slots by processors",
        ChartKind::Matrix,
        "matrix",
        [("processors", Scale::Linear), ("slot", Scale::Linear)],
    ),
    ("jobs on processors", ChartKind::Gantt, "gantt", [TIME, ("processors", Scale::Linear)]),
];

/// Returns the charts of a log.
fn charts(log: &str, overview: &Overview<'_>) -> Vec<ChartRequest> {
    let policies = overview.policies();
    let promised = overview.runs_of(log).any(|(.., outcome)| outcome.promises.made > 0);
    let of_all = DISTRIBUTIONS.iter().chain(promised.then_some(&PROMISES)).chain(&OVER_TIME);
    let of_all = of_all.map(|row| request(row, log, row.0, &policies));
    let of_one = policies.iter().flat_map(|policy| {
        let title = move |row: &Row| format!("{}, {policy}", row.0);
        SCHEDULES.iter().map(move |row| request(row, log, &title(row), std::slice::from_ref(policy)))
    });
    of_all.chain(of_one).collect()
}

/// Returns the request for a chart of a log, with a line for each policy.
fn request(row: &Row, log: &str, title: &str, policies: &[String]) -> ChartRequest {
    let &(_, kind, figure, [x, y]) = row;
    let line = |policy: &String| LineRequest {
        label: policy.clone(),
        figure: figure.to_owned(),
        unit: 1.0,
        runs: Selector::new([("trace", log), ("policy", policy)]),
    };
    ChartRequest {
        title: format!("{log}: {title}"),
        note: None,
        kind,
        along: None,
        x: AxisRequest::new(x.0, x.1),
        y: AxisRequest::new(y.0, y.1),
        lines: policies.iter().map(line).collect(),
    }
}

fn provenance(overview: &Overview<'_>) -> Vec<(String, String)> {
    let mut lines = vec![
        ("command".to_owned(), overview.command.clone()),
        (
            "program".to_owned(),
            format!("miserly {}, sources {}", env!("CARGO_PKG_VERSION"), env!("MISERLY_SOURCES")),
        ),
    ];
    for (log, _, outcome) in &overview.runs {
        let settings = serde_json::to_string(&outcome.settings).unwrap_or_default();
        for line in [
            (format!("log {}", overview.name(log)), format!("SHA-256 {}", outcome.trace.sha256)),
            (format!("settings on {}", overview.name(log)), settings),
        ] {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}
