//! From runs of like jobs on a Poisson stream to submissions in seconds, at the load that was asked for.

use super::GenerateError;
use super::log::{Made, load, work};
use crate::swf::SECONDS_MAX;

/// The same job, submitted again and again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) procs: u32,
    /// In seconds; the estimate is the same.
    pub(super) runtime: u64,
    /// How many times.
    pub(super) length: u32,
    pub(super) user: u32,
    /// What is run, if the model tells that of one run from that of another.
    pub(super) executable: Option<u64>,
}

/// What is asked of the whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) jobs: usize,
    pub(super) procs: u32,
    pub(super) load: f64,
}

impl Target {
    /// How many seconds there are to be from the first submission to the last, for this work.
    fn span(&self, work: f64) -> Result<f64, GenerateError> {
        let span = work / (f64::from(self.procs) * self.load);
        if span > SECONDS_MAX as f64 {
            return Err(GenerateError::TooLong { load: self.load, span });
        }
        Ok(span)
    }
}

impl Run {
    fn made(&self, submit: f64) -> Made {
        let submit = whole_seconds(submit);
        Made {
            submit,
            runtime: self.runtime,
            estimate: self.runtime,
            procs: self.procs,
            memory: None,
            user: self.user,
            executable: self.executable,
            queue: None,
            after: None,
        }
    }
}

/// One stream: every repetition is an arrival of its own. `gaps` are the times between arrivals, in any unit.
pub(super) fn on_one_stream(
    target: Target,
    mut runs: impl FnMut() -> Run,
    mut gap: impl FnMut() -> f64,
) -> Result<Vec<Made>, GenerateError> {
    let mut jobs = Vec::with_capacity(target.jobs);
    while jobs.len() < target.jobs {
        let run = runs();
        let left = target.jobs - jobs.len();
        jobs.extend(std::iter::repeat_n(run.made(0.0), left.min(run.length as usize)));
    }
    let span = target.span(work(&jobs))?;
    let arrivals = cumulated(jobs.len(), &mut gap);
    let last = arrivals.last().copied().unwrap_or(0.0);
    let scale = if last > 0.0 { span / last } else { 0.0 };
    for (job, arrival) in jobs.iter_mut().zip(arrivals) {
        job.submit = whole_seconds(arrival * scale);
    }
    Ok(jobs)
}

/// Only the first of a run is an arrival: each repetition is submitted when the one before it would end, had
/// it started at once. The log is the first so many submissions.
///
/// Here the load hangs on the scale in steps, as jobs enter and leave the log at its end; the scale is found
/// by bisection, and the load comes out near, the nearer the longer the log. A log of few jobs may be all one
/// run, whose load no scale changes.
pub(super) fn after_the_end(
    target: Target,
    mut runs: impl FnMut() -> Run,
    mut gap: impl FnMut() -> f64,
) -> Result<Vec<Made>, GenerateError> {
    let runs: Vec<_> = (0..target.jobs).map(|_| runs()).collect();
    let arrivals = cumulated(runs.len(), &mut gap);
    let at = |scale| first_jobs(target.jobs, &runs, &arrivals, scale);
    let too_dense = |jobs: &[Made]| load(jobs, target.procs).is_none_or(|load| load > target.load);
    let span = target.span(work(&at(0.0)))?;
    // A scale at which the jobs lie too densely, one at which they do not.
    let (mut dense, mut sparse) = (0.0, (span / runs.len() as f64).max(1.0));
    while too_dense(&at(sparse)) && sparse < SECONDS_MAX as f64 {
        (dense, sparse) = (sparse, sparse * 2.0);
    }
    for _ in 0..40 {
        let middle = f64::midpoint(dense, sparse);
        if too_dense(&at(middle)) { dense = middle } else { sparse = middle }
    }
    let jobs = at(sparse);
    match jobs.last() {
        Some(last) if last.submit > SECONDS_MAX.unsigned_abs() => {
            Err(GenerateError::TooLong { load: target.load, span: last.submit as f64 })
        }
        _ => Ok(jobs),
    }
}

/// The first `count` submissions, at a scale of the arrivals, each told which it waited for.
fn first_jobs(count: usize, runs: &[Run], arrivals: &[f64], scale: f64) -> Vec<Made> {
    let mut submissions = Vec::with_capacity(2 * count);
    for (index, (run, arrival)) in runs.iter().zip(arrivals).enumerate() {
        let start = whole_seconds(arrival * scale);
        let repetitions = 0..u64::from(run.length);
        submissions.extend(repetitions.map(|again| (start + again * run.runtime, index, again)));
    }
    submissions.select_nth_unstable(count - 1);
    submissions.truncate(count);
    submissions.sort_unstable();
    let mut latest = vec![None; runs.len()];
    let jobs = (1..).zip(submissions).map(|(number, (submit, index, _))| {
        let after = latest[index].replace(number);
        Made { submit, after, ..runs[index].made(0.0) }
    });
    jobs.collect()
}

/// The first at 0, the others after it by the gaps.
fn cumulated(count: usize, gap: &mut impl FnMut() -> f64) -> Vec<f64> {
    let mut now = 0.0;
    let next = |index| {
        if index > 0 {
            now += gap();
        }
        now
    };
    (0..count).map(next).collect()
}

/// Rounded to the nearest second; no less than 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds of a log, bounded above"
)]
pub(super) fn whole_seconds(seconds: f64) -> u64 {
    seconds.round().max(0.0) as u64
}
