//! The jobs of a driver, as its state has them.

use std::path::Path;

use miserly_core::Time;

use crate::desk::{Stage, StoredJob};
use crate::{DriveError, StartRecord, store};

/// A job of the driver, for people.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct QueuedJob {
    /// The job.
    pub job: String,
    /// Where it is: `waiting`, `opportunistic` (it runs on idle nodes ahead of its start), `placed`, `quantum` (it runs for a
    /// quantum), `running`, `suspended` (for the quantum of another job) or `aside`.
    pub stage: &'static str,
    /// Why it is aside.
    pub why: Option<String>,
    /// Its first promise, seconds since 1970.
    pub first: Option<i64>,
    /// Its last promise, seconds since 1970.
    pub latest: Option<i64>,
    /// The start that the policy plans, seconds since 1970. It is no promise.
    pub planned: Option<i64>,
    /// The median of its start in simulated futures, seconds since 1970.
    pub likely: Option<i64>,
    /// The start by which it starts in 95 % of the simulated futures, seconds since 1970.
    pub by_95: Option<i64>,
    /// Why a promise was broken.
    pub broken: Option<String>,
}

/// Returns the jobs of a driver by the state in its folder, and the starts so far.
///
/// # Errors
/// If there is no state, or it cannot be read.
pub fn queue(folder: &Path) -> Result<(Vec<QueuedJob>, Vec<StartRecord>), DriveError> {
    let (stored, starts) = store::look(folder)?;
    let seconds = |ticks: i64| Some(Time::from_ticks(ticks)).filter(|at| *at < Time::MAX).map(Time::secs);
    let mut jobs: Vec<_> = stored.jobs.into_iter().collect();
    jobs.sort_by_key(|(_, job)| job.number);
    let job = |(job, StoredJob { facts, entry, .. }): (String, StoredJob)| QueuedJob {
        stage: match (&facts.stage, &facts.aside) {
            (Stage::Waiting, _)
                if facts.opportunistic.as_ref().is_some_and(|job| job.start_of(None).is_some()) =>
            {
                "opportunistic"
            }
            (Stage::Running, _) if facts.suspension.is_some() => "suspended",
            (Stage::Running, _) if facts.quantum.is_some() => "quantum",
            (Stage::Running, _) => "running",
            (Stage::Placed { .. }, _) => "placed",
            (Stage::Waiting, Some(_)) => "aside",
            (Stage::Waiting, None) => "waiting",
        },
        job,
        why: facts.aside.map(|aside| aside.why),
        first: facts.promised.and_then(|(first, _)| seconds(first)),
        latest: facts.promised.and_then(|(_, latest)| seconds(latest)),
        planned: entry.and_then(|entry| entry.planned).map(Time::ticks).and_then(seconds),
        likely: facts.likely.and_then(|(median, _)| seconds(median)),
        by_95: facts.likely.and_then(|(_, by_95)| seconds(by_95)),
        broken: facts.broken,
    };
    Ok((jobs.into_iter().map(job).collect(), starts))
}
