//! The same run, by the naive version of the policy.

use miserly_core::Time;
use miserly_oracle::{NaiveJob, NaiveOrder, NaivePolicy, schedule};

use crate::input::Case;

/// The start of every job, if there is a naive version of the policy, and no plan of it reaches the end of time:
/// there, whether a job "ends by the shadow time" depends on how the sums are formed.
pub(crate) fn starts(case: &Case) -> Option<Vec<Time>> {
    case.jobs.iter().try_fold(0i64, |sum, job| sum.checked_add(job.request.planned().ticks()))?;
    let jobs = case.jobs.iter();
    let jobs: Vec<NaiveJob> =
        jobs.map(|job| NaiveJob { request: job.request.clone(), runtime: job.runtime }).collect();
    Some(schedule(case.procs, &jobs, policy(&case.policy)?, case.instants))
}

/// The naive version of a policy that is written with all its parameters.
fn policy(written: &str) -> Option<NaivePolicy> {
    let (name, args) = written.trim_end_matches(')').split_once('(')?;
    let order = |wanted: &str| {
        let mut args = args.split(", ").filter_map(|arg| arg.split_once('='));
        order(args.find(|(name, _)| *name == wanted)?.1)
    };
    match name {
        "fcfs" => Some(NaivePolicy::Fcfs { order: order("order")? }),
        "easy" => Some(NaivePolicy::Easy { order: order("order")?, backfill: order("backfill")? }),
        "conservative" => Some(NaivePolicy::Conservative { order: order("order")? }),
        _ => None,
    }
}

fn order(value: &str) -> Option<NaiveOrder> {
    match value {
        "arrival" => Some(NaiveOrder::Arrival),
        "shortest" => Some(NaiveOrder::Shortest),
        "longest" => Some(NaiveOrder::Longest),
        "narrowest" => Some(NaiveOrder::Narrowest),
        "widest" => Some(NaiveOrder::Widest),
        _ => None,
    }
}
