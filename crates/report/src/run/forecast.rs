//! The audit of the forecasts of a log.

use serde::Serialize;

use super::layout::{Quantity, TableStyle, TextTable};
use crate::numbers::count;

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
    text.push_str("\nkept: waits within the bound, of the jobs that did not start at once\n");
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
            share(class.level_80.coverage_of_waiting),
            share(class.level_95.coverage_of_waiting),
            share(near.map(|near| near[0])),
            share(near.map(|near| near[1])),
            share(near.map(|near| near[2])),
        ]
    };
    let header = ["processors", "jobs", "at once", "80 % kept", "95 % kept", "median: 1m", "10m", "1h"]
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
