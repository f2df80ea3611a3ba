//! `miserly compare`: several policies on the same logs.

use miserly_policies::PolicySpec;
use miserly_report::{DifferenceDoc, RunDoc, compare_tables, differences};
use miserly_run::{RunSetup, SetupError};
use miserly_workload::generate::{Feitelson96, Model};
use miserly_workload::{Estimates, Trace};
use rayon::prelude::*;
use serde::Serialize;

use crate::args::CompareArgs;
use crate::output::{print, print_json, width};
use crate::page::forget;
use crate::progress::Progress;
use crate::run::{open, prepare};

/// The default set of policies.
const DEFAULT_POLICIES: [&str; 6] = [
    "fcfs",
    "easy",
    "easy(backfill=shortest)",
    "easy(order=shortest)",
    "conservative",
    "conservative(order=shortest)",
];

/// The error of the estimates of the embedded workload. Backfilling depends on it.
const EMBEDDED_ESTIMATES: &str = "uniform:5";

/// The runs of a comparison, as `--json` prints them.
#[derive(Serialize)]
struct Comparison {
    version: &'static str,
    runs: Vec<RunDoc>,
    differences: Vec<DifferenceDoc>,
}

pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<()> {
    args.report.check()?;
    let policies = policies(args)?;
    let logs = logs(args)?;
    let jobs: u64 = logs.iter().map(|log| log.survey.records).sum();
    let progress = Progress::new(jobs * policies.len() as u64);
    let runs: Vec<(&RunSetup, &PolicySpec)> =
        logs.iter().flat_map(|log| policies.iter().map(move |policy| (log, policy))).collect();
    let finished: Vec<Result<RunDoc, SetupError>> = runs
        .into_par_iter()
        .map(|(log, policy)| log.outcome(policy, false, &mut [&mut progress.watch()]))
        .collect();
    drop(progress);
    // The first error in the order of the runs, not in the order of time.
    let mut outcomes: Vec<RunDoc> = finished.into_iter().collect::<Result<_, _>>()?;
    let of_runs = logs.iter().flat_map(|log| policies.iter().map(move |policy| (log, policy)));
    args.report
        .write(of_runs.zip(&outcomes).map(|((log, policy), outcome)| (log, policy, outcome)).collect())?;
    for outcome in &mut outcomes {
        forget(outcome, false, &args.by);
    }
    if args.json {
        let differences = outcomes
            .chunks(policies.len())
            .flat_map(|of_log| differences(&of_log.iter().collect::<Vec<_>>()))
            .collect();
        return print_json(&Comparison { version: env!("CARGO_PKG_VERSION"), runs: outcomes, differences });
    }
    let tables = outcomes
        .chunks(policies.len())
        .map(|of_log| compare_tables(&of_log.iter().collect::<Vec<_>>(), width()));
    print(&tables.collect::<Vec<_>>().join("\n"))
}

fn policies(args: &CompareArgs) -> anyhow::Result<Vec<PolicySpec>> {
    if args.policy.is_empty() {
        return Ok(DEFAULT_POLICIES.iter().map(|policy| policy.parse()).collect::<Result<_, _>>()?);
    }
    Ok(args.policy.clone())
}

fn logs(args: &CompareArgs) -> anyhow::Result<Vec<RunSetup>> {
    let viewed = |log: RunSetup| -> anyhow::Result<RunSetup> {
        Ok(args.report.records(log.with_checksum(args.json || args.report.is_requested())?, false, &args.by))
    };
    if args.traces.is_empty() {
        let log = prepare(embedded()?, &args.run, EMBEDDED_ESTIMATES.parse()?)?;
        return Ok(vec![viewed(log)?]);
    }
    let prepare = |path: &std::path::PathBuf| -> anyhow::Result<RunSetup> {
        viewed(prepare(open(path)?, &args.run, Estimates::default())?)
    };
    args.traces.iter().map(prepare).collect()
}

/// Returns the workload that needs no download: the output of `miserly workload generate` without
/// parameters.
fn embedded() -> anyhow::Result<Trace> {
    let log = Feitelson96::with_shape(Feitelson96::SHAPE).generate()?;
    Ok(log.into_trace("embedded (miserly workload generate)"))
}
