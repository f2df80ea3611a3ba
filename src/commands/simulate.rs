//! `miserly simulate`: one policy on one log.

use std::fs::File;
use std::io::{self, BufWriter};
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use anyhow::{Context, bail, ensure};
use miserly_policies::PolicySpec;
use miserly_report::{AtomicFile, CsvJobs, RunDoc, SwfJobs, simulate_table};
use miserly_run::RunSetup;
use miserly_sim::{InOrder, Observer};
use miserly_workload::Estimates;

use crate::args::{RunArgs, SimulateArgs};
use crate::output::{print, print_json, refuse_the_input_itself};
use crate::page::forget;
use crate::progress::Progress;
use crate::run_options::{open, prepare};
use crate::warnings::warn;

pub(crate) fn run(args: &SimulateArgs) -> anyhow::Result<()> {
    let format =
        args.jobs.as_deref().map(|path| Format::from_path(path).map(|format| (path, format))).transpose()?;
    if let Some((path, _)) = format {
        refuse_the_input_itself(&args.trace, "--jobs", path)?;
    }
    args.report.check()?;
    if let Some(option) = args.run.swept() {
        for (one, wanted) in [("--jobs", args.jobs.is_some()), ("--report", args.report.is_requested())] {
            ensure!(!wanted, "{one}: needs one value of {option}");
        }
    }
    let mut results = Vec::new();
    for run in &args.run.sweep_of(&args.trace)? {
        results.push(simulate(args, run, format)?);
    }
    let warned = warn(results.iter().map(|result| &result.outcome));
    if args.json {
        let documents: Vec<&RunDoc> = results.iter().map(|result| &result.outcome).collect();
        if let [one] = documents[..] {
            print_json(one)?;
        } else {
            print_json(&documents)?;
        }
        return warned;
    }
    warned?;
    let tables = results.into_iter().map(|Simulated { prepared, mut outcome, recorded }| {
        prepared.name_groups(&mut outcome);
        simulate_table(&outcome, recorded.as_ref(), args.table.style())
    });
    print(&tables.collect::<Vec<_>>().join("\n"))
}

/// A run with its setup.
struct Simulated {
    prepared: RunSetup,
    outcome: RunDoc,
    /// The recorded schedule, where it is shown.
    recorded: Option<RunDoc>,
}

/// Simulates the log with these options.
fn simulate(
    args: &SimulateArgs,
    run: &RunArgs,
    format: Option<(&Path, Format)>,
) -> anyhow::Result<Simulated> {
    let prepared = prepare(open(&args.trace)?, run, Estimates::default())?;
    let prepared = prepared.with_checksum(args.json || args.report.is_requested())?;
    let prepared = args.report.records(prepared, args.details, &args.by);
    let progress = Progress::new(prepared.survey.records);
    let mut watch = progress.watch();
    let shown = !args.json || args.report.is_requested();
    let (outcome, recorded) = thread::scope(|scope| {
        let recorded = shown.then(|| scope.spawn(|| prepared.recorded()));
        let outcome = match format {
            None => prepared.outcome(&args.policy, false, &mut [&mut watch]).map_err(Into::into),
            Some((path, format)) => with_jobs(&prepared, args, path, format, &mut watch),
        };
        (outcome, recorded.map(|recorded| recorded.join().unwrap_or_else(|panic| resume_unwind(panic))))
    });
    let (mut outcome, recorded) = (outcome?, recorded.transpose()?.flatten());
    drop(progress);
    let of_log = recorded.iter().map(|recorded| (&prepared, recorded)).collect();
    args.report.write(vec![(&prepared, &args.policy, &outcome)], of_log, &args.by, None)?;
    forget(&mut outcome, args.details, &args.by);
    Ok(Simulated { prepared, outcome, recorded })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    Swf,
}

impl Format {
    fn from_path(path: &Path) -> anyhow::Result<Format> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => Ok(Format::Csv),
            Some("swf") => Ok(Format::Swf),
            _ => {
                bail!("--jobs {}: the name must end in .csv or .swf, which gives the format", path.display())
            }
        }
    }
}

/// Runs the log and writes a row for each job.
pub(crate) fn write_csv(
    path: &Path,
    setup: &RunSetup,
    policy: &PolicySpec,
    watch: &mut dyn Observer,
) -> anyhow::Result<RunDoc> {
    let of_output = || format!("--jobs {}", path.display());
    let (file, output) = AtomicFile::create(path).with_context(of_output)?;
    let mut jobs = InOrder::new(CsvJobs::new(output, setup.trace.stem())?);
    let outcome = setup.outcome(policy, true, &mut [&mut jobs, watch])?;
    commit(file, jobs.into_inner().into_inner(), &outcome).with_context(of_output)?;
    Ok(outcome)
}

/// Puts the file of the jobs in its place, unless no job was simulated.
fn commit(file: AtomicFile, output: BufWriter<File>, outcome: &RunDoc) -> io::Result<()> {
    if outcome.jobs.simulated > 0 { file.commit(output) } else { Ok(()) }
}

/// Runs the log and writes the simulated jobs.
fn with_jobs(
    prepared: &RunSetup,
    args: &SimulateArgs,
    path: &Path,
    format: Format,
    watch: &mut dyn Observer,
) -> anyhow::Result<RunDoc> {
    if format == Format::Csv {
        return write_csv(path, prepared, &args.policy, watch);
    }
    let of_output = || format!("--jobs {}", path.display());
    let (file, output) = AtomicFile::create(path).with_context(of_output)?;
    let notes = notes(prepared, args)?;
    let records = prepared.records()?;
    let mut jobs = InOrder::new(SwfJobs::new(output, &prepared.survey.header, &notes, records)?);
    let outcome = prepared.outcome(&args.policy, false, &mut [&mut jobs, watch])?;
    commit(file, jobs.into_inner().into_inner(), &outcome).with_context(of_output)?;
    Ok(outcome)
}

/// Returns the notes in the header of a simulated log.
fn notes(prepared: &RunSetup, args: &SimulateArgs) -> anyhow::Result<Vec<String>> {
    Ok(vec![
        format!("simulated by miserly {}, policy {}", env!("CARGO_PKG_VERSION"), args.policy),
        format!("settings {}", serde_json::to_string(&prepared.settings())?),
        "wait, run time, allocated processors and status are the simulation's (status 0: killed at the estimate)"
            .into(),
    ])
}
