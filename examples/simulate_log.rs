//! Reads a log in the standard workload format, runs a policy and prints metrics:
//! `cargo run --example simulate_log -- tests/data/L1.swf 'easy(backfill=shortest)'`.

use std::path::Path;

use anyhow::Context;
use miserly_core::{Instants, Machine, Span};
use miserly_policies::PolicySpec;
use miserly_sim::{Metrics, Simulation};
use miserly_workload::{JobOptions, Jobs, Trace};

/// Returns the metrics of a log under a policy, in lines.
pub(crate) fn run(log: &Path, policy: &str) -> anyhow::Result<String> {
    let trace = Trace::open(log)?;
    let survey = trace.survey()?;
    let procs = survey.header.procs().context("the header of the log names no processors")?;

    let machine = Machine::plain(procs.into());
    let policy = policy.parse::<PolicySpec>()?.build(&machine, 1)?;
    let mut jobs = Jobs::new(&trace, survey.in_order, JobOptions { procs, ..JobOptions::default() })?;
    let mut metrics = Metrics::new(procs.into(), Span::ZERO);
    Simulation::new(machine, policy, Instants::Batch).run(&mut jobs, &mut [&mut metrics])?;

    let (jobs, wait) = (metrics.simulated(), metrics.measures.wait.mean().unwrap_or_default());
    let utilization = metrics.utilization().unwrap_or_default();
    Ok(format!("jobs         {jobs}\nmean wait    {wait:.1} s\nutilization  {utilization:.3}\n"))
}

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let (log, policy) = (args.next().context("give a log")?, args.next().unwrap_or_else(|| "easy".into()));
    print!("{}", run(Path::new(&log), &policy)?);
    Ok(())
}
