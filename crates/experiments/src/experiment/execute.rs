//! Execution of a plan on all cores. Each result is stored when its run is done.

use miserly_core::Span;
use miserly_report::{AtomicFile, CsvJobs};
use miserly_sim::{InOrder, Observer};
use rayon::prelude::*;

use super::axes::Axes;
use super::error::ExperimentError;
use super::plan::{Plan, PlannedRun};
use super::store::Store;
use crate::recording::Recording;
use crate::run_result::{LongestWaits, RunResult, document};
use miserly_run::{RunDoc, RunSetup, SetupError};

/// A receiver of the progress of the runs.
pub trait Watcher: Sync {
    /// Returns an observer of one run.
    fn observer(&self) -> Box<dyn Observer + '_>;
}

/// The numbers of runs of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Runs that were made.
    pub made: usize,
    /// Runs that were stored before.
    pub kept: usize,
}

/// Makes the runs of the plan that are not in the store yet.
///
/// The results do not depend on the number of threads, nor on those stored before.
///
/// # Errors
/// The first failure in the order of the plan. The runs that were done are kept.
pub fn execute(plan: &Plan, store: &Store, watcher: &dyn Watcher) -> Result<Executed, ExperimentError> {
    let distinct = plan.distinct();
    let all = distinct.len();
    let open = open(distinct, store);
    make_all(&open, store, watcher)?;
    Ok(Executed { made: open.len(), kept: all - open.len() })
}

/// Makes the runs of a part of the plan that are not in the store yet.
///
/// # Errors
/// As [`execute`].
pub fn execute_part(
    plan: &Plan,
    store: &Store,
    part: Part,
    watcher: &dyn Watcher,
) -> Result<Executed, ExperimentError> {
    let of_part = part.select(plan.distinct());
    let all = of_part.len();
    let open = open(of_part, store);
    make_all(&open, store, watcher)?;
    Ok(Executed { made: open.len(), kept: all - open.len() })
}

fn open<'a>(runs: Vec<&'a PlannedRun>, store: &Store) -> Vec<&'a PlannedRun> {
    runs.into_iter().filter(|run| !store.has(&run.key, run.record.jobs)).collect()
}

fn make_all(open: &[&PlannedRun], store: &Store, watcher: &dyn Watcher) -> Result<(), ExperimentError> {
    let done: Vec<Result<(), ExperimentError>> =
        open.par_iter().map(|run| make(run, store, watcher)).collect();
    done.into_iter().collect::<Result<Vec<()>, _>>().map(drop)
}

/// A part of the runs of a plan: the `number`-th of `count` parts, the first of which is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    number: usize,
    count: usize,
}

impl Part {
    /// Returns that part, if there is one.
    pub fn new(number: usize, count: usize) -> Option<Part> {
        (1..=count).contains(&number).then_some(Part { number, count })
    }

    /// Returns the runs of the part. Every run is in one part.
    fn select<T>(self, runs: Vec<T>) -> Vec<T> {
        runs.into_iter().skip(self.number - 1).step_by(self.count).collect()
    }
}

/// Returns the parts, of `count`, that have runs that are not stored yet.
pub fn open_parts(plan: &Plan, store: &Store, count: usize) -> Vec<usize> {
    let is_open = |number: &usize| {
        let part = Part { number: *number, count };
        !open(part.select(plan.distinct()), store).is_empty()
    };
    (1..=count).filter(is_open).collect()
}

/// Returns the number of jobs to simulate in the runs that are not stored yet.
pub fn open_jobs(plan: &Plan, store: &Store) -> u64 {
    let open = open(plan.distinct(), store);
    open.into_iter().filter_map(|run| run.setup.as_ref()).map(|setup| setup.survey.records).sum()
}

fn make(run: &PlannedRun, store: &Store, watcher: &dyn Watcher) -> Result<(), ExperimentError> {
    let Some(setup) = &run.setup else { return Ok(()) };
    let mut progress = watcher.observer();
    let mut recording = run.record.gantt.map(Recording::of_window);
    let mut observers: Vec<&mut dyn Observer> = vec![&mut *progress];
    if let Some(recording) = &mut recording {
        observers.push(recording);
    }
    let warmup = Span::from_secs(setup.settings().warmup).unwrap_or(Span::MAX);
    let mut waits = run.record.longest_waits.map(|share| LongestWaits::new(share, warmup));
    if let Some(waits) = &mut waits {
        observers.push(waits);
    }
    let outcome = if run.record.jobs {
        with_jobs(run, setup, store, &mut observers)
    } else {
        setup.outcome(&run.policy, run.record.gantt.is_some(), &mut observers)
    };
    let outcome =
        outcome.map_err(|error| ExperimentError::Run { run: name(&run.axes), error: Box::new(error) })?;
    let result = RunResult {
        key: &run.key,
        run: document(&outcome),
        schedule: run.record.gantt.zip(recording).map(|(window, recording)| recording.schedule(window)),
        longest_waits: waits.map(LongestWaits::pairs),
    };
    store.write_json(Store::run(&run.key), &result)
}

/// Returns the name of a run, for messages.
fn name(axes: &Axes) -> String {
    let value = |axis: &str| axes.get(axis).map_or("", String::as_str);
    format!(
        "{} under {}, estimates {}, seed {}",
        value("trace"),
        value("policy"),
        value("estimates"),
        value("seed")
    )
}

/// Makes a run, and writes one row per job.
fn with_jobs(
    run: &PlannedRun,
    setup: &RunSetup,
    store: &Store,
    others: &mut [&mut dyn Observer],
) -> Result<RunDoc, SetupError> {
    let path = store.path(Store::jobs(&run.key));
    std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
    let (file, output) = AtomicFile::create(&path)?;
    let mut jobs = InOrder::new(CsvJobs::new(output, setup)?);
    let mut observers: Vec<&mut dyn Observer> = vec![&mut jobs];
    for other in others.iter_mut() {
        observers.push(&mut **other);
    }
    let outcome = setup.outcome(&run.policy, true, &mut observers)?;
    file.commit(jobs.into_inner().into_inner())?;
    Ok(outcome)
}
