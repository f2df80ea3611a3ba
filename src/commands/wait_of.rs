//! `miserly wait-of`: the wait of a hypothetical job, by policy.

use anyhow::{bail, ensure};
use miserly_core::{Span, Time};
use miserly_policies::PolicySpec;
use miserly_report::{PolicyWaitDoc, WaitOfDoc, count, wait_of_table};
use miserly_run::{Probe, Probes, SetupError};
use miserly_workload::Estimates;
use rayon::prelude::*;

use crate::args::WaitOfArgs;
use crate::commands::compare::policies_or_default;
use crate::commands::live::wait_of as ask_daemon;
use crate::output::{print, print_json};
use crate::progress::Progress;
use crate::run_options::prepare;

pub(crate) fn run(args: &WaitOfArgs) -> anyhow::Result<()> {
    if let Some(job) = &args.daemon {
        return ask_daemon(args, job);
    }
    for (option, given) in [("--memory", args.memory.is_some()), ("--socket", args.socket.is_some())] {
        ensure!(!given, "{option}: needs --daemon");
    }
    let (Some(trace), Some(procs), Some(time)) = (&args.trace, args.size, args.time) else {
        bail!("give a log, a size and a time, or --daemon with a size and a time");
    };
    let setup = prepare(trace, &args.run, Estimates::default())?;
    let probe = Probe { procs, time };
    let machine = setup.procs();
    ensure!(probe.procs <= machine, "a job of {} processors: the machine has {machine}", probe.procs);
    let policies = policies_or_default(&args.policy)?;
    let probes = setup.probes()?;
    let times = probes.times(args.samples);
    ensure!(!times.is_empty(), "{}: no job of the log is in the run", setup.trace.name());
    let waits = waits(&probes, &policies, probe, &times)?;
    let of_policy =
        |(policy, waits): (&PolicySpec, &[Option<Span>])| PolicyWaitDoc::new(policy.to_string(), waits);
    let document = WaitOfDoc {
        version: env!("CARGO_PKG_VERSION"),
        trace: setup.name().to_owned(),
        procs: probe.procs.get(),
        time: probe.time.as_secs_f64(),
        samples: args.samples,
        policies: policies.iter().zip(waits.chunks(times.len())).map(of_policy).collect(),
    };
    if args.json {
        return print_json(&document);
    }
    let machine = format!("{} processors", count(machine.get()));
    print(&wait_of_table(&document, &machine, args.table.style()))
}

/// Returns the wait at each submit time: those of the first policy first.
fn waits(
    probes: &Probes<'_>,
    policies: &[PolicySpec],
    probe: Probe,
    times: &[Time],
) -> Result<Vec<Option<Span>>, SetupError> {
    let runs: Vec<(&PolicySpec, Time)> =
        policies.iter().flat_map(|policy| times.iter().map(move |time| (policy, *time))).collect();
    let progress = Progress::with_unit("simulations", runs.len() as u64);
    let wait = |(policy, submit): (&PolicySpec, Time)| {
        let wait = probes.wait(policy, probe, submit);
        progress.add(1);
        wait
    };
    runs.into_par_iter().map(wait).collect()
}
