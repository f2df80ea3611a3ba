//! `miserly matrix`: the jobs in each slot at an instant of a run.

use anyhow::bail;
use miserly_core::{Span, Time};
use miserly_report::MatrixDoc;
use miserly_sim::MatrixWatch;
use miserly_workload::Estimates;

use crate::args::MatrixArgs;
use crate::output::{print, print_json, width};
use crate::run_options::prepare;

pub(crate) fn run(args: &MatrixArgs) -> anyhow::Result<()> {
    let prepared = prepare(&args.trace, &args.run, Estimates::default())?;
    let mut simulation = prepared.simulation(&args.policy)?;
    if simulation.system().queues().iter().all(|queue| queue.ledger().matrix().is_none()) {
        bail!(
            "{}: this policy has no slots; choose a policy with time slices, such as gang (miserly policies gang)",
            args.policy
        );
    }
    let at = Time::from_secs(args.time).unwrap_or(Time::MAX);
    let mut watch = MatrixWatch::new(at, at + Span::TICK, usize::MAX);
    let mut jobs = prepared.jobs()?.peekable();
    while !watch.is_over() && simulation.step(&mut jobs, &mut [&mut watch])?.is_some() {}
    let Some(record) = watch.record() else { bail!("{}: no job was simulated", prepared.trace.name()) };
    let matrix = MatrixDoc::new(&record, args.policy.to_string());
    if args.json { print_json(&matrix) } else { print(&matrix.text(Some(width()))) }
}
