//! `miserly simulate`: one policy on one log.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use miserly_experiments::{LogRuns, Recording};
use miserly_policies::PolicySpec;
use miserly_report::page::exported;
use miserly_report::{AtomicFile, Compared, CsvJobs, SwfJobs, run_sections, simulate_table};
use miserly_run::{RunDoc, RunSetup, SetupError};
use miserly_sim::{InOrder, Observer};
use miserly_workload::Estimates;

use crate::args::SimulateArgs;
use crate::commands::compare::verdict;
use crate::output::{print, print_json, refuse_the_input_itself};
use crate::page::{Shown, forget, groupings};
use crate::progress::Progress;
use crate::run_options::{prepare, prepare_another};
use crate::warnings::warn;

pub(crate) fn run(args: &SimulateArgs) -> anyhow::Result<()> {
    let format =
        args.jobs.as_deref().map(|path| Format::from_path(path).map(|format| (path, format))).transpose()?;
    if let Some((path, _)) = format {
        refuse_the_input_itself(&args.trace, "--jobs", path)?;
    }
    if args.feedback.feedback.is_some() && format.is_some_and(|(_, format)| format == Format::Swf) {
        bail!("--feedback: a .swf has the jobs in the order of the log; write --jobs to a .csv");
    }
    args.report.check()?;
    if let Some(option) = args.run.swept() {
        for (one, wanted) in [("--jobs", args.jobs.is_some()), ("--report", args.report.is_requested())] {
            ensure!(!wanted, "{one}: needs one value of {option}");
        }
    }
    let mut results: Vec<Simulated> = Vec::new();
    for run in &args.run.sweep_of(&args.trace)? {
        let setup = match results.first() {
            Some(other) => prepare_another(&other.prepared, run, Estimates::default())?,
            None => prepare(&args.trace, run, Estimates::default())?,
        };
        results.push(simulate(args, setup.with_feedback(args.feedback.feedback), format)?);
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
    let style = args.table.style();
    if let Some(format) = args.table.format() {
        let sections = results.iter().flat_map(|result| run_sections(&[&result.outcome], None, style));
        return print(&exported(&sections.collect::<Vec<_>>(), format));
    }
    let tables =
        results.iter().map(|result| simulate_table(&result.outcome, result.recorded.as_ref(), style));
    print(&tables.collect::<Vec<_>>().join("\n"))
}

/// A run with its setup.
struct Simulated {
    prepared: RunSetup,
    outcome: RunDoc,
    /// The recorded schedule, where it is shown.
    recorded: Option<RunDoc>,
}

/// Simulates the log of this setup.
fn simulate(
    args: &SimulateArgs,
    setup: RunSetup,
    format: Option<(&Path, Format)>,
) -> anyhow::Result<Simulated> {
    let prepared = setup.with_checksum(args.json || args.report.is_requested())?;
    let groups = args.report.is_requested().then(|| Shown::new(&prepared, &args.by)).transpose()?;
    let by = groups.as_ref().map_or_else(|| groupings(&prepared, &args.by), |shown| Ok(shown.by.clone()))?;
    let prepared = args.report.records(prepared, args.details, &by, groups.as_ref());
    let progress = Progress::new(prepared.survey.records);
    let mut watch = progress.watch();
    let shown = !args.json || args.report.is_requested();
    let kind = RunKind { policy: &args.policy, recorded: shown, drawn: args.report.is_requested() };
    let MadeRun { mut outcome, recorded, recording } = match format {
        None => kind.run(&prepared, false, &mut [&mut watch])?,
        Some((path, Format::Csv)) => kind.write_csv(&prepared, path, &mut watch)?,
        Some((path, Format::Swf)) => kind.write_swf(&prepared, path, &mut watch)?,
    };
    drop(progress);
    let runs = recording.iter().map(|recording| (&outcome, recording)).collect();
    let verdict = if args.report.is_requested() {
        let (runs, against) = (&[&outcome], outcome.policy.as_str());
        let compared = Compared { runs, against, groups: "", recorded: recorded.as_ref(), whole: None };
        verdict(&prepared, std::slice::from_ref(&args.policy), compared)?
    } else {
        None
    };
    let groups = groups.map(|shown| shown.heat.to_string()).unwrap_or_default();
    let verdict = verdict.map(|verdict| verdict.text);
    let names = by.iter().map(ToString::to_string).collect();
    let jobs = recorded.as_ref().filter(|_| args.report.is_requested());
    let jobs = jobs.map(|_| recorded_jobs(&prepared)).transpose()?;
    let log = LogRuns {
        recorded: recorded.as_ref(),
        recorded_jobs: jobs.as_ref(),
        verdict,
        by: names,
        groups: &groups,
        runs,
    };
    args.report.write(vec![log], None)?;
    forget(&mut outcome, args.details, &by);
    Ok(Simulated { prepared, outcome, recorded })
}

/// Returns the jobs of the recorded schedule.
pub(crate) fn recorded_jobs(setup: &RunSetup) -> anyhow::Result<Recording> {
    let jobs = setup.recorded_jobs()?.collect::<Result<Vec<_>, _>>()?;
    Ok(Recording::of_recorded(jobs))
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

/// A policy to run, whether the recorded schedule of the log is measured too, and whether the run is recorded for the
/// charts of a page.
#[derive(Clone, Copy)]
pub(crate) struct RunKind<'a> {
    pub(crate) policy: &'a PolicySpec,
    pub(crate) recorded: bool,
    pub(crate) drawn: bool,
}

/// A run that was made.
pub(crate) struct MadeRun {
    pub(crate) outcome: RunDoc,
    /// The recorded schedule of the log, if there is one.
    pub(crate) recorded: Option<RunDoc>,
    /// The recording for the charts of a page.
    pub(crate) recording: Option<Recording>,
}

impl RunKind<'_> {
    /// Runs the log.
    pub(crate) fn run(
        self,
        setup: &RunSetup,
        pes: bool,
        observers: &mut [&mut dyn Observer],
    ) -> Result<MadeRun, SetupError> {
        let mut recording = self.drawn.then(Recording::default);
        let mut all: Vec<&mut dyn Observer> = Vec::new();
        for observer in observers.iter_mut() {
            all.push(&mut **observer);
        }
        if let Some(recording) = &mut recording {
            all.push(recording);
        }
        let pes = pes || self.drawn;
        let (outcome, recorded) = if self.recorded {
            setup.outcome_and_recorded(self.policy, pes, &mut all)?
        } else {
            (setup.outcome(self.policy, pes, &mut all)?, None)
        };
        Ok(MadeRun { outcome, recorded, recording })
    }

    /// Runs the log and writes a row for each job.
    pub(crate) fn write_csv(
        self,
        setup: &RunSetup,
        path: &Path,
        watch: &mut dyn Observer,
    ) -> anyhow::Result<MadeRun> {
        let of_output = || format!("--jobs {}", path.display());
        let (file, output) = AtomicFile::create(path).with_context(of_output)?;
        let mut jobs = InOrder::new(CsvJobs::new(output, setup)?);
        let made = self.run(setup, true, &mut [&mut jobs, watch])?;
        commit(file, jobs.into_inner().into_inner(), &made.outcome).with_context(of_output)?;
        Ok(made)
    }

    /// Runs the log and writes the simulated jobs as a log.
    fn write_swf(self, setup: &RunSetup, path: &Path, watch: &mut dyn Observer) -> anyhow::Result<MadeRun> {
        let of_output = || format!("--jobs {}", path.display());
        let (file, output) = AtomicFile::create(path).with_context(of_output)?;
        let notes = notes(setup, self.policy)?;
        let mut jobs = InOrder::new(SwfJobs::new(output, &setup.survey.header, &notes, setup.records()?)?);
        let made = self.run(setup, false, &mut [&mut jobs, watch])?;
        commit(file, jobs.into_inner().into_inner(), &made.outcome).with_context(of_output)?;
        Ok(made)
    }
}

/// Puts the file of the jobs in its place, unless no job was simulated.
fn commit(file: AtomicFile, output: BufWriter<File>, outcome: &RunDoc) -> io::Result<()> {
    if outcome.jobs.simulated > 0 { file.commit(output) } else { Ok(()) }
}

/// Returns the notes in the header of a simulated log.
fn notes(setup: &RunSetup, policy: &PolicySpec) -> anyhow::Result<Vec<String>> {
    Ok(vec![
        format!("simulated by miserly {}, policy {policy}", env!("CARGO_PKG_VERSION")),
        format!("settings {}", serde_json::to_string(&setup.settings())?),
        "wait, run time, allocated processors and status are the simulation's (status 0: killed at the estimate)"
            .into(),
    ])
}
