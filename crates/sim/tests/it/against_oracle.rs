//! The policies against deliberately naive ones, which share no code with them but the types.

use miserly_core::{Instants, Span, Time};
use miserly_oracle::{NaiveJob, NaiveOrder, NaivePolicy, schedule};
use miserly_workload::Job;
use proptest::prelude::*;

use crate::support::{BOTH, Quad, crowd, policies, run, tick_jobs, workload};

/// The oracle's name for a policy of ours.
fn naive(policy: &str) -> NaivePolicy {
    let order = |parameter: &str| {
        let value = policy.split_once(&format!("{parameter}=")).map_or("arrival", |(_, rest)| rest);
        match value.trim_end_matches([')']).split(',').next().unwrap() {
            "arrival" => NaiveOrder::Arrival,
            "shortest" => NaiveOrder::Shortest,
            "longest" => NaiveOrder::Longest,
            "narrowest" => NaiveOrder::Narrowest,
            "widest" => NaiveOrder::Widest,
            other => panic!("{other}"),
        }
    };
    match policy.split_once('(').map_or(policy, |(name, _)| name) {
        "fcfs" => NaivePolicy::Fcfs { order: order("order") },
        "easy" => NaivePolicy::Easy { order: order("order"), backfill: order("backfill") },
        "conservative" => NaivePolicy::Conservative { order: order("order") },
        other => panic!("{other}"),
    }
}

fn naive_starts(procs: u64, jobs: &[Job], policy: &str, instants: Instants) -> Vec<Time> {
    let jobs: Vec<NaiveJob> =
        jobs.iter().map(|job| NaiveJob { request: job.request.clone(), runtime: job.runtime }).collect();
    schedule(procs, &jobs, naive(policy), instants)
}

fn agree(procs: u64, quads: &[Quad]) -> Result<(), TestCaseError> {
    let jobs = tick_jobs(quads);
    for policy in policies() {
        for instants in BOTH {
            let ours: Vec<Time> =
                run(procs, &jobs, &policy, instants).0.iter().map(|job| job.start).collect();
            let theirs = naive_starts(procs, &jobs, &policy, instants);
            prop_assert_eq!(ours, theirs, "{}, {}", policy, instants);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_same_start_for_every_job((procs, quads) in workload(false)) {
        agree(procs, &quads)?;
    }

    #[test]
    fn the_same_start_for_every_job_under_overruns((procs, quads) in workload(true)) {
        agree(procs, &quads)?;
    }

    #[test]
    fn exact_estimates_make_every_conservative_order_one((procs, quads) in workload(false)) {
        // A job of no length holds its processors for a tick of the plan, and so ends early.
        let exact = |&(submit, run, procs, _): &Quad| (submit, run.max(1), procs, run.max(1));
        let exact: Vec<Quad> = quads.iter().map(exact).collect();
        let jobs = tick_jobs(&exact);
        for instants in BOTH {
            let first = run(procs, &jobs, "conservative", instants).decisions();
            for order in ["shortest", "longest", "narrowest", "widest"] {
                let other = run(procs, &jobs, &format!("conservative(order={order})"), instants).decisions();
                prop_assert_eq!(&first, &other, "{}, {}", order, instants);
            }
        }
    }

    #[test]
    fn promises_are_kept((procs, quads) in workload(false)) {
        let jobs = tick_jobs(&quads);
        for instants in BOTH {
            for policy in policies() {
                for job in run(procs, &jobs, &policy, instants).0 {
                    prop_assert!(!job.broken);
                    prop_assert!(job.promised.is_none_or(|promised| job.start <= promised), "{}", policy);
                    prop_assert!(job.promised.is_some() || !policy.starts_with("conservative"));
                    prop_assert!(job.start >= job.request.submit);
                    prop_assert_eq!(job.end - job.start, job.runtime);
                    prop_assert!(job.wait() >= Span::ZERO);
                }
            }
        }
    }
}

/// Not a property of proptest's: the naive policies take seconds for each of these.
#[test]
fn the_same_start_for_every_job_of_a_crowd() {
    for seed in 1..=3 {
        let (procs, quads) = crowd(seed);
        let jobs = tick_jobs(&quads);
        for policy in
            ["fcfs(order=shortest)", "easy", "easy(backfill=shortest)", "conservative(order=widest)"]
        {
            for instants in BOTH {
                let ours: Vec<Time> =
                    run(procs, &jobs, policy, instants).0.iter().map(|job| job.start).collect();
                assert_eq!(
                    ours,
                    naive_starts(procs, &jobs, policy, instants),
                    "{policy}, {instants}, {seed}"
                );
            }
        }
    }
}
