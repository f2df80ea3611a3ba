//! Reads a log in the standard workload format, runs a policy and prints metrics:
//! `cargo run -p miserly-run --example simulate_log -- tests/data/L1.swf 'easy(backfill=shortest)'`.

use std::path::Path;

use anyhow::Context;
use miserly_core::Span;
use miserly_policies::PolicySpec;
use miserly_run::{RunOptions, RunSetup};
use miserly_sim::Metrics;
use miserly_workload::Trace;

/// Returns the metrics of a log under a policy, in lines.
pub(crate) fn run(log: &Path, policy: &str) -> anyhow::Result<String> {
    let setup = RunSetup::new(Trace::open(log)?, RunOptions::default())?;
    let policy: PolicySpec = policy.parse()?;

    let mut metrics = Metrics::new(setup.procs(), Span::ZERO);
    setup.simulation(&policy)?.run(&mut setup.jobs()?, &mut [&mut metrics])?;

    let (jobs, wait) = (metrics.simulated(), metrics.measures.wait.summary().mean.unwrap_or_default());
    let utilization = metrics.utilization().unwrap_or_default();
    Ok(format!("jobs         {jobs}\nmean wait    {wait:.1} s\nutilization  {utilization:.3}\n"))
}

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let (log, policy) = (args.next().context("give a log")?, args.next().unwrap_or_else(|| "easy".into()));
    run(Path::new(&log), &policy).map(|text| print!("{text}"))
}
