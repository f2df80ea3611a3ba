//! The page of a few runs that were not planned as an experiment: `simulate --report` and `compare --report`.

use std::collections::BTreeMap;

use miserly_core::Time;
use miserly_policies::Chosen;
use miserly_report::RunDoc;
use miserly_report::page::{Block, Page, Section, TableCell, TableData};
use miserly_sim::MostSlots;
use rayon::prelude::*;
use serde_json::Value;

use crate::experiment::file::{ChartFile, ChartKind, Line, Scalar, Scale, Selector};
use crate::experiment::{Axes, Index, IndexedRun};
use crate::kept::{Kept, MatrixRows, Window, document, matrix_watch};
use crate::prepared::{PrepareError, Prepared};
use crate::present::{blocks, shown, tell_charts_apart};
use crate::results::{Results, at};

/// How long the window of the Gantt charts is where none is given, seconds.
const WINDOW: f64 = 86_400.0;

/// What to put on the page.
pub struct Overview<'a> {
    /// The command that makes it.
    pub command: String,
    /// The runs, made with details: the log, the policy, and what it came to.
    pub runs: Vec<(&'a Prepared, &'a Chosen, &'a RunDoc)>,
    /// The window of the Gantt charts, in the log's seconds; else the day of the longest queue.
    pub window: Option<[i64; 2]>,
}

/// The page of some runs. Each is made once more for its Gantt chart.
///
/// # Errors
/// If a run fails.
pub fn overview(overview: &Overview<'_>) -> Result<Page, PrepareError> {
    let results = overview.results()?;
    let mut sections = Vec::new();
    for log in overview.logs() {
        sections.push(measures(&log, overview));
        sections.extend(charts(&log, overview).iter().filter_map(|chart| drawn(chart, &results)));
    }
    tell_charts_apart(&mut sections);
    let policies: Vec<_> = overview.policies();
    Ok(Page {
        title: format!("{} on {}", policies.join(", "), overview.logs().join(", ")),
        lead: None,
        sections,
        provenance: provenance(overview),
    })
}

impl<'a> Overview<'a> {
    /// The logs' names, each once.
    fn logs(&self) -> Vec<String> {
        distinct(self.runs.iter().map(|(log, ..)| self.name(log)))
    }

    /// The name of a log, numbered where another one before it has the same.
    fn name(&self, log: &Prepared) -> String {
        let mut alike: Vec<&Prepared> = Vec::new();
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

    /// The runs of the log of this name.
    fn runs_of(&self, log: &str) -> impl Iterator<Item = &(&'a Prepared, &'a Chosen, &'a RunDoc)> {
        self.runs.iter().filter(move |(of, ..)| self.name(of) == log)
    }

    fn policies(&self) -> Vec<String> {
        distinct(self.runs.iter().map(|(_, policy, _)| policy.to_string()))
    }

    /// The runs' documents, each with the jobs of its window.
    fn results(&self) -> Result<Results, PrepareError> {
        let made: Vec<Result<(String, Axes, Value), PrepareError>> =
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

    fn result(&self, position: usize) -> Result<(String, Axes, Value), PrepareError> {
        let (log, policy, outcome) = self.runs[position];
        let key = position.to_string();
        let document = document(outcome);
        let window = match self.window {
            Some(window) => window,
            None => busiest(&document).map_or_else(|| fullest(log, policy), Ok)?,
        };
        let (mut jobs, mut matrix) = (Window::new(window[0], window[1]), matrix_watch(window));
        log.outcome(policy, true, &mut [&mut jobs, &mut matrix])?;
        let kept = Kept {
            key: &key,
            run: document,
            gantt_window: Some(window),
            gantt: Some(jobs.rows),
            matrix: matrix.record().as_ref().map(MatrixRows::of),
            longest_waits: None,
        };
        // Plain data: it has a JSON form.
        let kept = serde_json::to_value(&kept).unwrap_or_default();
        let axes = [("trace", self.name(log)), ("policy", policy.to_string())];
        let axes = axes.into_iter().map(|(axis, value)| (axis.to_owned(), value)).collect();
        Ok((key, axes, kept))
    }
}

/// Each name once, in the order in which they come.
fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

/// The day around the longest queue, in the log's seconds; `None` where nobody ever waits.
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

/// Where nobody waits, since jobs share processors by turns: the day around the instant with the most slots. Else the first day.
fn fullest(log: &Prepared, policy: &Chosen) -> Result<[i64; 2], PrepareError> {
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

/// The rows of the table of measures: name, path, decimals, what it is divided by.
const MEASURES: [(&str, &str, usize, f64); 19] = [
    ("jobs read", "jobs.read", 0, 1.0),
    ("  simulated", "jobs.simulated", 0, 1.0),
    ("  killed at the estimate", "jobs.killed_at_estimate", 0, 1.0),
    ("  measured", "jobs.measured", 0, 1.0),
    ("  placed at once", "jobs.placed_at_once", 0, 1.0),
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
            TableCell::number(value.map_or_else(|| "-".into(), |value| shown(value / unit, digits)))
        };
        std::iter::once(TableCell::text(name)).chain(documents.iter().map(cell)).collect()
    };
    let table = TableData { caption: None, header: vec![head], rows: MEASURES.iter().map(row).collect() };
    Section { heading: format!("{log}: measures"), blocks: vec![Block::Table(table)] }
}

/// A chart as a section; none where the runs do not have what it shows.
fn drawn(chart: &ChartFile, results: &Results) -> Option<Section> {
    let blocks = blocks(chart, results).ok()?;
    Some(Section { heading: chart.title.clone(), blocks })
}

/// The charts of a log.
fn charts(log: &str, overview: &Overview<'_>) -> Vec<ChartFile> {
    let blank = ChartFile {
        title: String::new(),
        note: None,
        kind: ChartKind::Steps,
        x: None,
        value: String::new(),
        unit: 1.0,
        x_label: String::new(),
        y_label: "share of the jobs".into(),
        x_scale: Scale::LogTime,
        y_scale: Scale::Linear,
        common: select([("trace", log)]),
        lines: overview.policies().iter().map(|policy| line(policy)).collect(),
    };
    let of = |title: &str, value: &str| ChartFile {
        title: format!("{log}: {title}"),
        value: value.into(),
        ..blank.clone()
    };
    let time = |title: &str, value: &str, y_label: &str| ChartFile {
        kind: ChartKind::Series,
        x_label: "time of the log".into(),
        y_label: y_label.into(),
        x_scale: Scale::Time,
        ..of(title, value)
    };
    let heat = |title: &str, value: &str| ChartFile {
        kind: ChartKind::Heat,
        x_label: "policy".into(),
        y_label: "category".into(),
        ..of(title, value)
    };
    let mut charts = vec![
        ChartFile { x_label: "wait".into(), ..of("how long jobs wait", "details.cdf.wait") },
        ChartFile {
            x_label: "bounded slowdown".into(),
            x_scale: Scale::Log,
            ..of("how much slower jobs are", "details.cdf.bounded_slowdown")
        },
        ChartFile {
            kind: ChartKind::Groups,
            x_label: "runtime".into(),
            y_label: "mean wait".into(),
            y_scale: Scale::LogTime,
            ..of("wait against runtime", "by.runtime-bin:metrics.wait.mean")
        },
        heat("mean bounded slowdown by category", "by.category:metrics.bounded_slowdown.mean"),
        heat(
            "95th percentile of the bounded slowdown by category",
            "by.category:metrics.bounded_slowdown.p95",
        ),
        heat("worst bounded slowdown by category", "by.category:metrics.bounded_slowdown.max"),
        heat("jobs by category", "by.category:jobs"),
    ];
    if overview.runs_of(log).any(|(.., outcome)| outcome.promises.made > 0) {
        charts.push(ChartFile {
            x_label: "promised wait / actual wait".into(),
            x_scale: Scale::Log,
            ..of("how good promises are as forecasts", "details.cdf.guarantees")
        });
    }
    charts.extend([time("busy processors", "busy", "processors"), time("jobs waiting", "waiting", "jobs")]);
    for policy in overview.policies() {
        charts.push(ChartFile {
            kind: ChartKind::Matrix,
            x_label: "processors".into(),
            y_label: "slot".into(),
            x_scale: Scale::Linear,
            lines: vec![line(&policy)],
            ..of(&format!("slots by processors, {policy}"), "matrix")
        });
        charts.push(ChartFile {
            kind: ChartKind::Gantt,
            x_label: "time of the log".into(),
            y_label: "processors".into(),
            x_scale: Scale::Time,
            lines: vec![line(&policy)],
            ..of(&format!("jobs on processors, {policy}"), "gantt")
        });
    }
    charts
}

fn line(policy: &str) -> Line {
    Line { label: policy.to_owned(), value: None, select: select([("policy", policy)]) }
}

fn select<const N: usize>(pairs: [(&str, &str); N]) -> Selector {
    pairs.into_iter().map(|(axis, value)| (axis.to_owned(), Scalar::Text(value.to_owned()))).collect()
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
