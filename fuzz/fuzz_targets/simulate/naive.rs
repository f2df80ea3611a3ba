//! The same run, by the naive version of the policy.

use miserly_core::Time;
use miserly_oracle::{NaiveJob, NaivePolicy, schedule};

use crate::input::{Case, SEED};

/// The start of every job, if there is a naive version of the policy, and no plan of it reaches the end of time:
/// there, whether a job "ends by the shadow time" depends on how the sums are formed.
pub(crate) fn starts(case: &Case) -> Option<Vec<Time>> {
    case.jobs.iter().try_fold(0i64, |sum, job| sum.checked_add(job.request.planned().ticks()))?;
    let jobs = case.jobs.iter();
    let jobs: Vec<NaiveJob> =
        jobs.map(|job| NaiveJob { request: job.request.clone(), runtime: job.runtime }).collect();
    Some(schedule(case.procs, &jobs, NaivePolicy::written(&case.policy, SEED)?, case.instants))
}
