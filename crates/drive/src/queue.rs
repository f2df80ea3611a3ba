//! The jobs of a driver, as its state has them.

use std::path::Path;

use miserly_core::Time;

use crate::instant::seconds;
use crate::scheduler::{DrivenJob, DrivenState, LikelyStart, Run, StoredJob};
use crate::{DriveError, StartRecord, store};

/// A job of the driver, for people. Its instants are in seconds since 1970 in JSON.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct QueuedJob {
    /// The job.
    pub job: String,
    /// Where it is: `waiting`, `opportunistic` (it runs on idle nodes ahead of its start), `placed`, `quantum` (it runs for a
    /// quantum), `running`, `suspended` (for the quantum of another job) or `unplanned`.
    pub stage: &'static str,
    /// Why it is not planned.
    pub why: Option<String>,
    /// Its first promise.
    #[serde(with = "seconds::optional")]
    pub first: Option<Time>,
    /// Its last promise.
    #[serde(with = "seconds::optional")]
    pub latest: Option<Time>,
    /// The start that the policy plans. It is no promise.
    #[serde(with = "seconds::optional")]
    pub planned: Option<Time>,
    /// The median of its start in simulated futures.
    #[serde(with = "seconds::optional")]
    pub likely: Option<Time>,
    /// The start by which it starts in 95 % of the simulated futures.
    #[serde(with = "seconds::optional")]
    pub by_95: Option<Time>,
    /// Why a promise was broken.
    pub broken: Option<String>,
}

/// Returns the jobs of a driver by the state in its folder, and the starts so far.
///
/// # Errors
/// If there is no state, or it cannot be read.
pub fn queue(folder: &Path) -> Result<(Vec<QueuedJob>, Vec<StartRecord>), DriveError> {
    let (stored, starts) = store::read(folder)?;
    let mut jobs: Vec<_> = stored.jobs.into_iter().collect();
    jobs.sort_by_key(|(_, stored)| stored.job.number);
    let known = |at: Time| Some(at).filter(|at| *at < Time::MAX);
    let job = |(id, StoredJob { job, entry }): (String, StoredJob)| QueuedJob {
        stage: stage(&job),
        job: id,
        why: job.unplanned().map(|unplanned| unplanned.why.clone()),
        first: job.promise.as_ref().and_then(|promise| known(promise.first)),
        latest: job.promise.as_ref().and_then(|promise| known(promise.latest)),
        planned: entry.and_then(|entry| entry.planned).and_then(known),
        likely: job.likely.and_then(|LikelyStart { median, .. }| known(median)),
        by_95: job.likely.and_then(|LikelyStart { by_95, .. }| known(by_95)),
        broken: job.promise.and_then(|promise| promise.broken),
    };
    Ok((jobs.into_iter().map(job).collect(), starts))
}

fn stage(job: &DrivenJob) -> &'static str {
    match job.state() {
        DrivenState::Running(Run::Suspended { .. }) => "suspended",
        DrivenState::Running(Run::Quantum { .. }) => "quantum",
        DrivenState::Running(Run::Ordinary { .. }) => "running",
        DrivenState::Assigned { .. } | DrivenState::Placed { .. } => "placed",
        DrivenState::Waiting(_)
            if job.opportunistic().is_some_and(|early| early.start_of(None).is_some()) =>
        {
            "opportunistic"
        }
        DrivenState::Waiting(_) if job.unplanned().is_some() => "unplanned",
        DrivenState::Waiting(_) => "waiting",
    }
}
