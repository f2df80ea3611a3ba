//! A policy in one file, registered and compared with EASY:
//! `cargo run -p miserly-run --example first_policy`.

use miserly_core::{Context, Event, JobId, Ledger, Machine, Policy, Procs, StartReason, Time, Violation};
use miserly_policies::{Params, PolicyDescriptor, PolicySpec, Registry};
use miserly_report::{TableStyle, compare_tables};
use miserly_run::{RunDoc, RunOptions, RunSetup, SetupError};
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
    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let mut waiting: Vec<JobId> = context.ledger().waiting().collect();
        let procs = |job: &JobId| context.ledger().request(*job).procs();
        waiting.sort_by_key(|job| if self.widest { Procs::MAX - procs(job) } else { procs(job) });
        for job in waiting {
            if let Some(placement) = context.ledger().fit_request(job) {
                context.start(job, placement, StartReason::Reserved)?;
            }
        }
        Ok(())
    }
}

/// Compares three policies on four jobs: number, submission, wait, runtime, processors.
pub(crate) fn run() -> anyhow::Result<String> {
    let jobs = ["1 0 -1 100 10", "2 1 -1 50 6", "3 2 -1 100 4", "4 3 -1 100 2"];
    let lines = jobs.map(|job| format!("{job} -1 -1 -1 100 -1 1 -1 -1 -1 -1 -1 -1 -1\n")).concat();
    let registry = Registry::built_in().with(&BY_WIDTH);
    let trace = Trace::memory("log", format!("; MaxProcs: 10\n{lines}").into());
    let setup = RunSetup::new(trace, RunOptions::default())?;
    let outcome = |text: &str| -> Result<RunDoc, SetupError> {
        setup.outcome(&PolicySpec::parse(text, &registry)?, false, &mut [])
    };
    let outcomes = [outcome("easy")?, outcome("by-width")?, outcome("by-width(widest=true)")?];
    let style = TableStyle { seconds: true, ..TableStyle::default() };
    Ok(compare_tables(&outcomes.each_ref(), style))
}

fn main() -> anyhow::Result<()> {
    run().map(|text| print!("{text}"))
}
