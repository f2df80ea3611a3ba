//! The page of a few runs that were not planned as an experiment: `simulate --report` and `compare --report`.

use std::collections::BTreeMap;

use miserly_core::Time;
use miserly_policies::PolicySpec;
use miserly_report::chart::Ramp;
use miserly_report::page::{Block, Page, Section};
use miserly_report::{group_blocks, summary_blocks, verdict};
use miserly_sim::MostSlots;
use rayon::prelude::*;
use serde_json::Value;

use crate::category::{CATEGORY, CategoryGrid};
use crate::chart_request::{AxisRequest, ChartKind, ChartRequest, LineRequest, Scale};
use crate::difference::{Difference, Starts, default_pair};
use crate::experiment::{Axes, Index, IndexedRun};
use crate::looks::Looks;
use crate::present::{blocks, chart_id, number_charts};
use crate::results::{Results, at};
use crate::run_result::{MatrixRows, RunResult, Window, document, matrix_watch};
use crate::selector::Selector;
use miserly_run::{GroupDoc, RunDoc, RunSetup, SetupError};

/// How long the window of the Gantt charts is where none is given, seconds.
const WINDOW: f64 = 86_400.0;

/// The content of the page.
pub struct Overview<'a> {
    /// The command that makes it.
    pub command: String,
    /// The runs, made with details: the setup, the policy, and the result.
    pub runs: Vec<(&'a RunSetup, &'a PolicySpec, &'a RunDoc)>,
    /// The recorded schedules of logs that have one.
    pub recorded: Vec<(&'a RunSetup, &'a RunDoc)>,
    /// The breakdowns to show as tables.
    pub by: Vec<String>,
    /// The two policies whose schedules are compared job by job; else EASY and the best one.
    pub difference: Option<[String; 2]>,
    /// The window of the Gantt charts, in the log's seconds; else the day of the longest queue.
    pub window: Option<[i64; 2]>,
}

/// Returns the page of some runs. Each is made once more for its Gantt chart.
///
/// # Errors
/// If a run fails.
pub fn overview(overview: &Overview<'_>) -> Result<Page, SetupError> {
    let logs = overview.logs();
    let results = overview.results(&logs)?;
    let parts = |log: &String| parts(log, overview, &results);
    let (lead, mut sections) = if let [log] = &logs[..] {
        (overview.verdict(log), parts(log)?)
    } else {
        let section = |log: &String| Ok(joined(log, overview.verdict(log), parts(log)?));
        (None, logs.iter().map(section).collect::<Result<_, SetupError>>()?)
    };
    number_charts(&mut sections);
    Ok(Page { title: overview.title(&logs), lead, sections, provenance: provenance(overview) })
}

/// Returns the parts of the page of several logs that one log has, as one section.
fn joined(log: &str, verdict: Option<String>, parts: Vec<Section>) -> Section {
    let part = |part: Section| std::iter::once(Block::Heading(part.heading)).chain(part.blocks);
    let verdict = verdict.map(Block::Text).into_iter();
    Section { heading: log.to_owned(), blocks: verdict.chain(parts.into_iter().flat_map(part)).collect() }
}

/// Returns the sections of a log.
fn parts(log: &str, overview: &Overview<'_>, results: &Results) -> Result<Vec<Section>, SetupError> {
    let outcomes = overview.outcomes(log);
    let summary = Section { heading: "Summary".into(), blocks: summary_blocks(&outcomes) };
    let charts = charts(log, overview).into_iter().filter_map(|(heading, charts)| {
        let drawn: Vec<Block> =
            charts.iter().flat_map(|chart| drawn(chart, log, overview, results)).collect();
        (!drawn.is_empty()).then(|| Section { heading: heading.into(), blocks: drawn })
    });
    let tables = overview.breakdowns().into_iter().filter_map(|by| {
        let blocks = group_blocks(&by, &outcomes);
        (!blocks.is_empty()).then(|| Section { heading: format!("By {}", by.replace('-', " ")), blocks })
    });
    let difference = difference(log, overview, results)?;
    let grids = category_grids(&overview.runs_of(log).map(|(.., outcome)| *outcome).collect::<Vec<_>>());
    Ok(std::iter::once(summary).chain(grids).chain(charts).chain(difference).chain(tables).collect())
}

/// Returns the bounded slowdown of a single run by category. Several runs have heat maps with a column each.
fn category_grids(outcomes: &[&RunDoc]) -> Option<Section> {
    let [run] = outcomes else { return None };
    let groups = run.by.get(CATEGORY)?;
    let values: [fn(&GroupDoc) -> Option<f64>; 3] = [
        |group| group.metrics.bounded_slowdown.mean,
        |group| group.metrics.bounded_slowdown.p95,
        |group| group.metrics.bounded_slowdown.max,
    ];
    let chart = |(row, value): (&Row, _)| {
        let grid = CategoryGrid::new(groups, value)?;
        Some(Block::Chart(grid.chart(&chart_id(row.0), row.0, None, Ramp::Log)))
    };
    let blocks: Vec<Block> = CATEGORIES.iter().zip(values).filter_map(chart).collect();
    (!blocks.is_empty()).then(|| Section { heading: BY_CATEGORY_HEADING.into(), blocks })
}

/// Returns the difference of two schedules of a log; nothing with a single policy.
fn difference(log: &str, overview: &Overview<'_>, results: &Results) -> Result<Option<Section>, SetupError> {
    let Some(pair) = overview.pair(log) else { return Ok(None) };
    let starts = |(setup, policy, _): &(&RunSetup, &PolicySpec, &RunDoc)| {
        let mut starts = Starts::default();
        setup.outcome(policy, false, &mut [&mut starts])?;
        Ok(starts)
    };
    let starts: Vec<Starts> = pair.par_iter().map(starts).collect::<Result<_, SetupError>>()?;
    let Ok(starts) = <[Starts; 2]>::try_from(starts) else { return Ok(None) };
    let of_b = request(&SCHEDULES[1], log, SCHEDULES[1].0, &[pair[1].1.to_string()]);
    let schedule = drawn(&of_b, log, overview, results).into_iter().find_map(|block| match block {
        Block::Chart(chart) => Some(chart),
        _ => None,
    });
    let blocks = Difference::new(pair.map(|(.., outcome)| outcome), starts).blocks(schedule);
    Ok(Some(Section { heading: "Difference of two schedules".into(), blocks }))
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

    /// Returns the schedules of a log: the recorded one, if there is one, and its runs.
    fn outcomes(&self, log: &str) -> Vec<&'a RunDoc> {
        let recorded = self.recorded_of(log);
        recorded.into_iter().chain(self.runs_of(log).map(|(.., outcome)| *outcome)).collect()
    }

    fn recorded_of(&self, log: &str) -> Option<&'a RunDoc> {
        self.recorded.iter().find(|(of, _)| self.name(of) == log).map(|(_, recorded)| *recorded)
    }

    /// Returns the two runs of a log whose schedules are compared.
    fn pair(&self, log: &str) -> Option<[(&'a RunSetup, &'a PolicySpec, &'a RunDoc); 2]> {
        let runs: Vec<_> = self.runs_of(log).copied().collect();
        let outcomes: Vec<&RunDoc> = runs.iter().map(|(.., outcome)| *outcome).collect();
        let default = || default_pair(&outcomes).map(|pair| pair.map(str::to_owned));
        let [a, b] = self.difference.clone().or_else(default)?;
        let run = |name: &str| runs.iter().find(|(_, policy, _)| policy.to_string() == name).copied();
        Some([run(&a)?, run(&b)?])
    }

    fn verdict(&self, log: &str) -> Option<String> {
        let runs: Vec<&RunDoc> = self.runs_of(log).map(|(.., outcome)| *outcome).collect();
        verdict(self.recorded_of(log), &runs)
    }

    /// Returns the title: the policies, or their number if they are many.
    fn title(&self, logs: &[String]) -> String {
        let policies = self.policies();
        let policies = match policies.len() {
            0..=2 => policies.join(" and "),
            number => format!("{number} policies"),
        };
        format!("{policies} on {}", logs.join(", "))
    }

    /// Returns the breakdowns that are tables. A single run has no heat maps of its categories.
    fn breakdowns(&self) -> Vec<String> {
        let category = (self.policies().len() == 1).then(|| CATEGORY.to_owned());
        distinct(self.by.iter().cloned().chain(category))
    }

    /// Returns the window of all Gantt charts of a log: the given one, or the day of the longest queue.
    ///
    /// Of several policies, the one with the shortest such queue decides. The others have jobs waiting then, too.
    fn window(&self, log: &str) -> Result<[i64; 2], SetupError> {
        if let Some(window) = self.window {
            return Ok(window);
        }
        let longest = self.runs_of(log).filter_map(|(.., outcome)| busiest(&document(outcome)));
        if let Some((_, day)) = longest.min_by(|(one, _), (other, _)| one.total_cmp(other)) {
            return Ok(day);
        }
        let sliced = self.runs_of(log).find(|(.., outcome)| outcome.slicing.is_some());
        sliced.map_or(Ok(day_around(0.0)), |(log, policy, _)| fullest(log, policy))
    }

    /// Returns the results of the runs, each with the jobs of the window of its log.
    fn results(&self, logs: &[String]) -> Result<Results, SetupError> {
        let windows: BTreeMap<&str, [i64; 2]> = logs
            .iter()
            .map(|log| Ok((log.as_str(), self.window(log)?)))
            .collect::<Result<_, SetupError>>()?;
        let result = |at: usize| {
            let window = windows.get(self.name(self.runs[at].0).as_str()).copied();
            self.result(at, window.unwrap_or_default())
        };
        let made: Vec<Result<(String, Axes, Value), SetupError>> =
            (0..self.runs.len()).into_par_iter().map(result).collect();
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

    fn result(&self, position: usize, window: [i64; 2]) -> Result<(String, Axes, Value), SetupError> {
        let (log, policy, outcome) = self.runs[position];
        let key = position.to_string();
        let document = document(outcome);
        let (mut jobs, mut matrix) = (Window::new(window[0], window[1]), matrix_watch(window));
        log.outcome(policy, true, &mut [&mut jobs, &mut matrix])?;
        let (jobs, queue) = jobs.into_rows();
        let result = RunResult {
            key: &key,
            run: document,
            gantt_window: Some(window),
            gantt: Some(jobs),
            gantt_queue: Some(queue),
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

/// Returns the longest queue and the day around it, in the seconds of the log; `None` if no job ever waits.
fn busiest(document: &Value) -> Option<(f64, [i64; 2])> {
    let series = at(document, "details.series");
    let number = |name: &str| series.and_then(|series| series.get(name)).and_then(Value::as_f64);
    let (first, step) = (number("from").unwrap_or_default(), number("step").unwrap_or(1.0));
    let waiting = series.and_then(|series| series.get("waiting")).and_then(Value::as_array);
    let longest =
        waiting.into_iter().flatten().enumerate().filter_map(|(at, value)| Some((at, value.as_f64()?)));
    let (longest, most) = longest.fold((0, 0.0), |most, one| if one.1 > most.1 { one } else { most });
    (most > 0.0).then(|| (most, day_around(first + (longest as f64 + 0.5) * step)))
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

/// Returns a chart in the looks of a page of runs; nothing if the runs do not have its figure.
fn drawn(chart: &ChartRequest, log: &str, overview: &Overview<'_>, results: &Results) -> Vec<Block> {
    let looks = Looks { policies: overview.policies(), outcomes: overview.outcomes(log) };
    let mut blocks = blocks(chart, results).unwrap_or_default();
    for block in &mut blocks {
        if let Block::Chart(drawn) = block {
            looks.apply(drawn, chart);
        }
    }
    blocks
}

/// A chart of a log: its title, its kind, its figure, and the labels and scales of its axes.
type Row = (&'static str, ChartKind, &'static str, [(&'static str, Scale); 2]);

const SHARE: (&str, Scale) = ("share of the jobs", Scale::Linear);
const BY_CATEGORY: [(&str, Scale); 2] = [("policy", Scale::LogTime), (CATEGORY, Scale::Linear)];
const TIME: (&str, Scale) = ("time of the log", Scale::Time);

/// The charts of distributions, with a line for each policy.
const DISTRIBUTIONS: [Row; 3] = [
    ("Wait", ChartKind::Steps, "details.cdf.wait", [("wait", Scale::LogTime), SHARE]),
    (
        "Bounded slowdown",
        ChartKind::Steps,
        "details.cdf.bounded_slowdown",
        [("bounded slowdown", Scale::Log), SHARE],
    ),
    (
        "Wait against runtime",
        ChartKind::Groups,
        "by.runtime-bin:metrics.wait.mean",
        [("runtime", Scale::LogTime), ("mean wait", Scale::LogTime)],
    ),
];

/// The heading of the charts by category.
const BY_CATEGORY_HEADING: &str = "Bounded slowdown by category";

/// The heat maps, with a column for each policy.
const CATEGORIES: [Row; 3] = [
    ("Mean bounded slowdown", ChartKind::Heat, "by.category:metrics.bounded_slowdown.mean", BY_CATEGORY),
    (
        "95th percentile of the bounded slowdown",
        ChartKind::Heat,
        "by.category:metrics.bounded_slowdown.p95",
        BY_CATEGORY,
    ),
    ("Worst bounded slowdown", ChartKind::Heat, "by.category:metrics.bounded_slowdown.max", BY_CATEGORY),
];

/// The chart of promises, if there are any.
const PROMISES: Row = (
    "Quality of promises as forecasts",
    ChartKind::Steps,
    "details.cdf.guarantees",
    [("promised wait / actual wait", Scale::Log), SHARE],
);

/// The charts over time, with a line for each policy.
const OVER_TIME: [Row; 2] = [
    ("Busy processors", ChartKind::Series, "busy", [TIME, ("processors", Scale::Linear)]),
    ("Jobs waiting", ChartKind::Series, "waiting", [TIME, ("jobs", Scale::Linear)]),
];

/// The charts of each single policy.
const SCHEDULES: [Row; 2] = [
    (
        "Slots by processors",
        ChartKind::Matrix,
        "matrix",
        [("processors", Scale::Linear), ("slot", Scale::Linear)],
    ),
    ("Jobs on processors", ChartKind::Gantt, "gantt", [TIME, ("processors", Scale::Linear)]),
];

/// Returns the charts of a log, by heading.
fn charts(log: &str, overview: &Overview<'_>) -> Vec<(&'static str, Vec<ChartRequest>)> {
    let policies = overview.policies();
    let promised = overview.runs_of(log).any(|(.., outcome)| outcome.promises.made > 0);
    let of_all =
        |rows: &[Row]| rows.iter().map(|row| request(row, log, row.0, &policies)).collect::<Vec<_>>();
    let mut distributions = of_all(&DISTRIBUTIONS);
    distributions.extend(promised.then(|| request(&PROMISES, log, PROMISES.0, &policies)));
    // A single column has nothing to compare.
    let categories = if policies.len() > 1 { of_all(&CATEGORIES) } else { Vec::new() };
    let of_one = policies.iter().flat_map(|policy| {
        let title = move |row: &Row| format!("{}, {policy}", row.0);
        SCHEDULES.iter().map(move |row| request(row, log, &title(row), std::slice::from_ref(policy)))
    });
    vec![
        ("Waits and slowdowns", distributions),
        (BY_CATEGORY_HEADING, categories),
        ("Over time", of_all(&OVER_TIME)),
        ("Schedules", of_one.collect()),
    ]
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
        title: title.to_owned(),
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
