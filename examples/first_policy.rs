//! A policy in one file, registered and compared with EASY: `cargo run --example first_policy`.

use miserly_core::{Desk, Event, JobId, Ledger, Machine, Policy, Reason, Time, Violation};
use miserly_policies::{Params, PolicyDescriptor, PolicySpec, Registry};
use miserly_run::{RunOptions, RunSetup};
use miserly_workload::Trace;

static BY_WIDTH: PolicyDescriptor = PolicyDescriptor::new("by-width", "the narrowest first", |params| {
    Ok(Box::new(ByWidth { widest: params.flag("widest", false, "the widest first")? }))
});

#[derive(Clone, Copy, Debug)]
struct ByWidth {
    widest: bool,
}

impl Params for ByWidth {
    fn build(&self, _machine: &Machine) -> Box<dyn Policy> {
        Box::new(*self)
    }
}

impl Policy for ByWidth {
    fn name(&self) -> &str {
        BY_WIDTH.name
    }
    fn rebuild(&mut self, _now: Time, _ledger: &Ledger) {}
    fn event(&mut self, _now: Time, _event: Event, _ledger: &Ledger) {}
    fn pass(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let mut waiting: Vec<JobId> = desk.ledger().waiting().collect();
        waiting.sort_by_key(|job| desk.ledger().request(*job).procs());
        if self.widest {
            waiting.reverse();
        }
        for job in waiting {
            if let Some(placement) = desk.ledger().fit_request(job) {
                desk.start(job, placement, Reason::Reserved)?;
            }
        }
        Ok(())
    }
}

/// Runs three policies on four jobs: number, submission, wait, runtime, processors.
pub(crate) fn run() -> anyhow::Result<String> {
    let jobs = ["1 0 -1 100 6", "2 1 -1 50 10", "3 2 -1 100 4", "4 3 -1 100 2"];
    let log = jobs.map(|job| format!("{job} -1 -1 -1 100 -1 1 -1 -1 -1 -1 -1 -1 -1\n")).concat();
    let registry = Registry::built_in().with(&BY_WIDTH);
    let options = RunOptions { procs: Some(10), ..RunOptions::default() };
    let setup = RunSetup::new(Trace::memory("example", log.into()), options)?;
    let line = |text: &str| {
        let outcome = setup.outcome(&PolicySpec::parse(text, &registry)?, false, &mut [])?;
        Ok(format!("{text}: mean wait {} s\n", outcome.metrics.wait.mean.unwrap_or_default()))
    };
    ["easy", "by-width", "by-width(widest=true)"].into_iter().map(line).collect()
}

fn main() -> anyhow::Result<()> {
    run().map(|text| print!("{text}"))
}
