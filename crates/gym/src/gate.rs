//! The gate of the score: a policy decides by what is known at that time, and by nothing else.
//!
//! Two small logs differ in a fact that is hidden at first, such as a runtime.
//! Until the fact shows itself, a policy must start the same jobs at the same instants on both.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use miserly_run::{Log, RunOptions, RunSetup};
use miserly_sim::JobColumns;
use miserly_workload::Trace;

use crate::log::JobLog;
use crate::score::WindowSet;
use crate::study::StudyError;

/// Submission, runtime, processors and estimate of a job.
pub type GateJob = (i64, i64, u32, i64);

/// Whether a policy is written in the language of policies, or is a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    /// It is a written form, such as `easy(order=f1)`.
    Written,
    /// It is a program. Its decisions may not depend on the numbers of jobs, which a table of runtimes by number would need.
    Program,
}

/// Two logs that differ in a hidden fact.
#[derive(Clone, Debug)]
pub struct GateCase {
    /// The hidden fact, as an explanation of a failure.
    pub hidden: String,
    /// The processors of the machine.
    pub procs: u32,
    /// The jobs of both logs. Jobs at the same position are the same ones.
    pub logs: [Vec<GateJob>; 2],
}

/// A job that holds six of ten processors, and one that needs all of them.
const HOLDER: GateJob = (100, 100, 6, 100);
const WIDE: GateJob = (101, 50, 10, 50);

/// The jobs of the cases that are windows of the model. They arrive faster than in the model, and on a smaller machine.
const WINDOW: usize = 160;
const FASTER: i64 = 16;
const SMALLER: u32 = 4;

/// The first job that differs in such a case.
const FIRST_DIFFERENT: [usize; 5] = [25, 40, 70, 100, 130];

impl GateCase {
    /// Returns the cases: some of three jobs, and windows of the workload model.
    ///
    /// # Errors
    /// None that is known: the cases are constants.
    pub fn all() -> Result<Vec<GateCase>, StudyError> {
        let small = |hidden: &str, one: &[GateJob], other: &[GateJob]| GateCase {
            hidden: hidden.to_owned(),
            procs: 10,
            logs: [one.to_vec(), other.to_vec()],
        };
        let narrow = (102, 98, 4, 98);
        let mut cases = vec![
            small(
                "the end of the running job 1",
                &[(100, 50, 6, 100), WIDE, narrow],
                &[HOLDER, WIDE, narrow],
            ),
            small(
                "the runtime of the waiting job 3",
                &[HOLDER, WIDE, (102, 20, 4, 1000)],
                &[HOLDER, WIDE, (102, 1000, 4, 1000)],
            ),
            small(
                "the arrival of job 3 at 150",
                &[HOLDER, (102, 500, 4, 500), (150, 10, 10, 10)],
                &[HOLDER, (102, 500, 4, 500)],
            ),
        ];
        let log = WindowSet::Training.logs()?.swap_remove(0);
        let log = JobLog::read(&log.trace)?;
        let (begin, procs) = (log.jobs[0].submit, log.procs / SMALLER);
        // At a high load jobs wait, so that a policy has something to decide.
        let jobs: Vec<GateJob> = (2_i64..)
            .zip(&log.jobs[..WINDOW])
            .map(|(n, job)| {
                let submit = begin + (job.submit - begin) / FASTER;
                (submit, job.runtime, job.procs.min(procs), job.runtime.saturating_mul(n % 5 + 2))
            })
            .collect();
        for first in FIRST_DIFFERENT {
            let later = |n: usize, (submit, runtime, procs, estimate): GateJob| {
                let runtime = if n >= first { estimate - runtime / 2 } else { runtime };
                (submit, runtime, procs, estimate)
            };
            let changed = jobs.iter().enumerate().map(|(n, job)| later(n, *job)).collect();
            cases.push(GateCase {
                hidden: format!("the runtimes of the jobs from {} on", first + 1),
                procs,
                logs: [jobs.clone(), changed],
            });
            cases.push(GateCase {
                hidden: format!("the arrivals of the jobs from {} on", first + 1),
                procs,
                logs: [jobs.clone(), jobs[..first].to_vec()],
            });
        }
        Ok(cases)
    }
}

/// The jobs of a run, by position.
type Times = BTreeMap<usize, JobTimes>;

struct JobTimes {
    start: f64,
    end: f64,
    /// Whether `start` is not the first start, so that it says nothing about the first decision.
    restarted: bool,
}

/// How the jobs of a run are numbered: the job at position 0 is `first`, and the next ones have this distance.
#[derive(Clone, Copy)]
struct Numbers {
    first: i64,
    step: i64,
}

const PLAIN: Numbers = Numbers { first: 1, step: 1 };
const OTHER: Numbers = Numbers { first: 100_003, step: 7 };

/// Refuses a policy that is not deterministic, that remembers an earlier run, or that decides by what is not known yet.
///
/// `run` runs the policy on a log.
///
/// # Errors
/// [`StudyError::Peeks`], or the error of a run.
pub fn check<E: From<StudyError>>(
    policy: &str,
    kind: PolicyKind,
    run: &mut impl FnMut(&Arc<RunSetup>) -> Result<JobColumns, E>,
) -> Result<(), E> {
    let refuse = |why: String| Err(StudyError::Peeks(format!("{policy}: {why}")).into());
    let mut cases = vec![];
    for case in GateCase::all()? {
        let [one, _] = &case.logs;
        let times = times(&case, one, PLAIN, run)?;
        let again = self::times(&case, one, PLAIN, run)?;
        if let Some((job, start, differs)) = difference(&times, &again, f64::INFINITY) {
            return refuse(format!(
                "it is not deterministic, or it remembers an earlier run: job {} starts {}, and {} when the run is repeated",
                job + 1,
                written(start),
                written(differs),
            ));
        }
        cases.push((case, times));
    }
    // A policy that decides by chance may decide the same in one case, and would seem to peek in the next one.
    for (case, times) in cases {
        let [one, other] = &case.logs;
        let changed = self::times(&case, other, PLAIN, run)?;
        let visible = visible_at(&case, &times, &changed);
        if let Some((job, start, differs)) = difference(&times, &changed, visible) {
            return refuse(format!(
                "it peeks: job {} starts {} or {}, and the difference is {}, which is hidden until {visible}",
                job + 1,
                written(start),
                written(differs),
                case.hidden,
            ));
        }
        if kind == PolicyKind::Program {
            let renumbered = self::times(&case, one, OTHER, run)?;
            if let Some((job, start, differs)) = difference(&times, &renumbered, f64::INFINITY) {
                return refuse(format!(
                    "it decides by the numbers of jobs: job {} starts {}, and {} when the jobs have other numbers in the same order",
                    job + 1,
                    written(start),
                    written(differs),
                ));
            }
        }
    }
    Ok(())
}

fn written(start: Option<f64>) -> String {
    start.map_or_else(|| "never".to_owned(), |start| format!("at {start}"))
}

/// Returns the first position whose start differs before an instant, with both starts.
fn difference(one: &Times, other: &Times, before: f64) -> Option<(usize, Option<f64>, Option<f64>)> {
    let jobs: BTreeSet<&usize> = one.keys().chain(other.keys()).collect();
    jobs.into_iter().find_map(|job| {
        let both = [one.get(job), other.get(job)];
        if both.iter().flatten().any(|times| times.restarted) {
            return None;
        }
        let [first, second] = both.map(|times| times.map(|times| times.start));
        let early = [first, second].into_iter().flatten().any(|start| start < before);
        (early && first.map(f64::to_bits) != second.map(f64::to_bits)).then_some((*job, first, second))
    })
}

/// Returns the instant at which the runs may begin to differ.
///
/// It is the first end of a job whose runtimes differ, or the first submission of a job that is in one log only.
fn visible_at(case: &GateCase, one: &Times, other: &Times) -> f64 {
    let [first, second] = &case.logs;
    let of_job = |job: usize| match (first.get(job), second.get(job)) {
        (Some(job), None) | (None, Some(job)) => job.0 as f64,
        (Some(one_job), Some(other_job)) if one_job.1 != other_job.1 => {
            let end = |times: &Times| times.get(&job).map_or(f64::INFINITY, |job| job.end);
            end(one).min(end(other))
        }
        _ => f64::INFINITY,
    };
    (0..first.len().max(second.len())).map(of_job).fold(f64::INFINITY, f64::min)
}

fn times<E: From<StudyError>>(
    case: &GateCase,
    jobs: &[GateJob],
    numbers: Numbers,
    run: &mut impl FnMut(&Arc<RunSetup>) -> Result<JobColumns, E>,
) -> Result<Times, E> {
    let mut text = format!("; MaxProcs: {}\n", case.procs);
    for ((submit, runtime, procs, estimate), position) in jobs.iter().zip(0..) {
        let number = numbers.first + numbers.step * position;
        let _ = writeln!(
            text,
            "{number} {submit} -1 {runtime} {procs} -1 -1 {procs} {estimate} -1 1 1 1 -1 -1 -1 -1 -1"
        );
    }
    let log = Log::load(Trace::memory("a case of the gate", text.into_bytes()))
        .map_err(|error| StudyError::Log(error.into()))?;
    let options = RunOptions { warmup: Some(0), ..RunOptions::default() };
    let setup = RunSetup::shared(&log, options).map_err(StudyError::from)?;
    let columns = run(&Arc::new(setup))?;
    let position = |number: i64| usize::try_from((number - numbers.first) / numbers.step).unwrap_or(0);
    let job = |row: usize| {
        let times =
            JobTimes { start: columns.start[row], end: columns.end[row], restarted: columns.restarted[row] };
        (position(columns.number[row]), times)
    };
    Ok((0..columns.number.len()).map(job).collect())
}
