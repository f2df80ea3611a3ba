//! Submissions in seconds from runs of repeated jobs with Poisson arrivals, scaled to the requested
//! load.

use super::log::{GeneratedJob, load, work};
use super::{GenerateError, Shape};
use crate::swf::SECONDS_MAX;

/// A repeated submission of the same job.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobRun {
    pub(super) procs: u32,
    /// Runtime in seconds.
    pub(super) runtime: u64,
    /// Estimate in seconds.
    pub(super) estimate: u64,
    /// Number of submissions.
    pub(super) length: u32,
    pub(super) user: u32,
    /// Executable, if the model distinguishes the programs of runs.
    pub(super) executable: Option<u64>,
    /// Whether all its jobs are submitted at one instant.
    pub(super) together: bool,
}

/// The requested size and load of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadTarget {
    pub(super) jobs: usize,
    pub(super) procs: u32,
    pub(super) load: f64,
}

impl LoadTarget {
    pub(super) fn new(Shape { jobs, procs, load, .. }: Shape) -> LoadTarget {
        // Validation bounds the jobs.
        LoadTarget { jobs: usize::try_from(jobs).unwrap_or(usize::MAX), procs, load }
    }

    /// Returns the required time from the first submission to the last for this work, in seconds.
    fn span(&self, work: f64) -> Result<f64, GenerateError> {
        let span = work / (f64::from(self.procs) * self.load);
        if span > SECONDS_MAX as f64 {
            return Err(GenerateError::TooLong { load: self.load, span });
        }
        Ok(span)
    }
}

impl JobRun {
    fn made(&self, submit: f64) -> GeneratedJob {
        let submit = whole_seconds(submit);
        GeneratedJob {
            submit,
            runtime: self.runtime,
            estimate: self.estimate,
            procs: self.procs,
            memory: None,
            user: self.user,
            executable: self.executable,
            queue: None,
            after: None,
        }
    }
}

/// Generates one stream in which each repetition is an arrival, or a whole array of jobs. `gap`
/// returns the interarrival times in any unit.
pub(super) fn on_one_stream(
    target: LoadTarget,
    mut runs: impl FnMut() -> JobRun,
    mut gap: impl FnMut() -> f64,
) -> Result<Vec<GeneratedJob>, GenerateError> {
    let mut jobs = Vec::with_capacity(target.jobs);
    // The arrival of each job.
    let mut arrival_of = Vec::with_capacity(target.jobs);
    let mut arrivals = 0;
    while jobs.len() < target.jobs {
        let run = runs();
        let count = (target.jobs - jobs.len()).min(run.length as usize);
        jobs.extend(std::iter::repeat_n(run.made(0.0), count));
        arrival_of.extend((0..count).map(|again| arrivals + if run.together { 0 } else { again }));
        arrivals += if run.together { 1 } else { count };
    }
    let span = target.span(work(&jobs))?;
    let arrivals = cumulated(arrivals, &mut gap);
    let last = arrivals.last().copied().unwrap_or(0.0);
    let scale = if last > 0.0 { span / last } else { 0.0 };
    for (job, arrival) in jobs.iter_mut().zip(arrival_of) {
        job.submit = whole_seconds(arrivals[arrival] * scale);
    }
    Ok(jobs)
}

/// Generates a stream in which only the first job of a run is an arrival.
///
/// Each repetition is submitted at the end of the previous one, had that started at once. The log
/// consists of the first `jobs` submissions. The load depends on the scale in steps, because jobs
/// enter and leave the log at its end. Bisection finds the scale; the error of the load decreases
/// with the length of the log. A log of few jobs may be a single run, for which no scale changes
/// the load.
pub(super) fn after_the_end(
    target: LoadTarget,
    mut runs: impl FnMut() -> JobRun,
    mut gap: impl FnMut() -> f64,
) -> Result<Vec<GeneratedJob>, GenerateError> {
    let runs: Vec<_> = (0..target.jobs).map(|_| runs()).collect();
    let arrivals = cumulated(runs.len(), &mut gap);
    let at = |scale| first_jobs(target.jobs, &runs, &arrivals, scale);
    let too_dense = |jobs: &[GeneratedJob]| load(jobs, target.procs).is_none_or(|load| load > target.load);
    let span = target.span(work(&at(0.0)))?;
    // Bounds of the scale: `dense` exceeds the load, `sparse` does not.
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

/// Returns the first `count` submissions at a scale of the arrivals, each with its preceding job.
fn first_jobs(count: usize, runs: &[JobRun], arrivals: &[f64], scale: f64) -> Vec<GeneratedJob> {
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
        GeneratedJob { submit, after, ..runs[index].made(0.0) }
    });
    jobs.collect()
}

/// Returns the cumulated gaps, starting with 0.
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

/// Rounds to the nearest second, at least 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds of a log, bounded above"
)]
pub(super) fn whole_seconds(seconds: f64) -> u64 {
    seconds.round().max(0.0) as u64
}
