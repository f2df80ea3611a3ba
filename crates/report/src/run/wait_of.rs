//! The wait of a hypothetical job, by policy.

use miserly_core::Span;
use miserly_sim::{Distribution, Summary};
use serde::Serialize;

use super::layout::{Quantity, TableStyle, TextTable};
use crate::numbers::count;

/// The waits of a hypothetical job. Times are in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct WaitOfDoc {
    /// Version of the program.
    pub version: &'static str,
    /// File name of the log.
    pub trace: String,
    /// Processors of the job.
    pub procs: u64,
    /// Time limit and runtime of the job.
    pub time: f64,
    /// Submit times, at equal distances over the log.
    pub samples: u32,
    /// The waits under each policy.
    pub policies: Vec<PolicyWaitDoc>,
}

/// The waits under one policy, over the submit times at which the policy accepted the job.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyWaitDoc {
    /// Policy in its written form.
    pub policy: String,
    /// Submit times at which the policy refused the job.
    pub refused: u64,
    /// Share of the submit times at which the job started at once, 0 to 1.
    pub started_at_once: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Nearest-rank median.
    pub median: Option<f64>,
    /// Nearest-rank 95th percentile.
    pub p95: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
}

impl PolicyWaitDoc {
    /// Summarises the waits at all submit times; `None` is a refusal.
    pub fn new(policy: String, waits: &[Option<Span>]) -> PolicyWaitDoc {
        let mut distribution = Distribution::of_spans();
        for wait in waits.iter().flatten() {
            distribution.add_span(*wait);
        }
        let Summary { mean, median, p95, max, .. } = distribution.summary();
        let accepted = distribution.count();
        let at_once = waits.iter().flatten().filter(|wait| **wait == Span::ZERO).count();
        let started_at_once = (accepted > 0).then(|| at_once as f64 / accepted as f64);
        PolicyWaitDoc {
            policy,
            refused: waits.len() as u64 - accepted,
            started_at_once,
            mean,
            median,
            p95,
            max,
        }
    }
}

/// Formats the waits as a table, one row a policy. `machine` describes the machine.
pub fn wait_of_table(document: &WaitOfDoc, machine: &str, style: TableStyle) -> String {
    let time = |value| style.figure(Quantity::Time, value);
    let job = format!("{} processors for {}", count(document.procs), time(Some(document.time)));
    let samples = format!("{} submit times, at equal distances over the log", count(document.samples.into()));
    let heading = [("log", format!("{}, {machine}", document.trace)), ("job", job), ("samples", samples)];
    let mut text: String = heading.iter().map(|(name, value)| style.entry(name, value)).collect();
    let label = |name| style.label(Quantity::Time, name);
    let header = [
        String::new(),
        "at once".into(),
        label("wait, median"),
        label("95 %"),
        label("longest"),
        label("mean"),
        "refused".into(),
    ];
    let row = |waits: &PolicyWaitDoc| {
        vec![
            waits.policy.clone(),
            style.figure(Quantity::Share, waits.started_at_once),
            time(waits.median),
            time(waits.p95),
            time(waits.max),
            time(waits.mean),
            count(waits.refused),
        ]
    };
    let mut table = TextTable { header: header.into(), rows: document.policies.iter().map(row).collect() };
    if document.policies.iter().all(|waits| waits.refused == 0) {
        table.header.pop();
        table.rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    text.push_str(&format!("\n{}\n", table.table(style.width)));
    text
}
