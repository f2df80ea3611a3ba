//! The policies against reference implementations, which share no code with them but the types.

use miserly_core::{EventOrder, Span, Time};
use miserly_oracle::{NaiveJob, NaivePolicy, NaivePrediction, schedule, schedule_predicted};
use miserly_policies::{PolicySpec, Promises};
use miserly_sim::Job;
use proptest::prelude::*;

use crate::support::{
    BOTH, LIMITED, ORDERS, Quad, SEED, crowd, jobs_for, run, some_policies, tick_jobs, workload,
};

fn naive_starts(procs: u64, jobs: &[Job], policy: &str, instants: EventOrder) -> Vec<Time> {
    let jobs: Vec<NaiveJob> =
        jobs.iter().map(|job| NaiveJob { request: job.request.clone(), runtime: job.runtime }).collect();
    let naive = NaivePolicy::written(policy, SEED).expect("a naive version");
    match NaivePrediction::written(policy) {
        Some(prediction) => schedule_predicted(procs, &jobs, naive, prediction, instants),
        None => schedule(procs, &jobs, naive, instants),
    }
}

fn agree(procs: u64, quads: &[Quad], policies: &[String]) -> Result<(), TestCaseError> {
    for policy in policies {
        let jobs = jobs_for(policy, quads);
        for instants in BOTH {
            let ours: Vec<Time> = run(procs, &jobs, policy, instants).0.iter().map(|job| job.start).collect();
            let theirs = naive_starts(procs, &jobs, policy, instants);
            prop_assert_eq!(ours, theirs, "{}, {}", policy, instants);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_same_start_for_every_job((procs, quads) in workload(false), policies in some_policies()) {
        agree(procs, &quads, &policies)?;
    }

    #[test]
    fn the_same_start_under_limits_of_running_jobs((procs, quads) in workload(true)) {
        let narrow = |&(submit, runtime, procs, estimate): &Quad| (submit, runtime, procs.min(4), estimate);
        let quads: Vec<Quad> = quads.iter().map(narrow).collect();
        agree(procs, &quads, &LIMITED.map(str::to_owned))?;
    }

    #[test]
    fn the_same_start_for_every_job_under_overruns(
        (procs, quads) in workload(true),
        policies in some_policies(),
    ) {
        agree(procs, &quads, &policies)?;
    }

    #[test]
    fn exact_estimates_make_every_conservative_order_one((procs, quads) in workload(false)) {
        // A job of no length holds its processors for a tick of the plan, and so ends early.
        let exact = |&(submit, run, procs, _): &Quad| (submit, run.max(1), procs, run.max(1));
        let exact: Vec<Quad> = quads.iter().map(exact).collect();
        for instants in BOTH {
            for order in ORDERS {
                let jobs = jobs_for(order, &exact);
                let first = run(procs, &jobs, "conservative", instants).decisions();
                let other = run(procs, &jobs, &format!("conservative({order})"), instants).decisions();
                prop_assert_eq!(&first, &other, "{}, {}", order, instants);
            }
        }
    }

    #[test]
    fn in_the_order_of_arrival_the_head_is_held_anyway((procs, quads) in workload(true)) {
        let jobs = tick_jobs(&quads);
        for instants in BOTH {
            let plain = run(procs, &jobs, "easy(backfill=shortest)", instants).decisions();
            let held = run(procs, &jobs, "easy(backfill=shortest, hold_head=true)", instants).decisions();
            prop_assert_eq!(plain, held);
        }
    }

    #[test]
    fn one_shadow_interval_of_exact_estimates_is_conservative((procs, quads) in workload(false)) {
        let exact = |&(submit, run, procs, _): &Quad| (submit, run.max(1), procs, run.max(1));
        let jobs = tick_jobs(&quads.iter().map(exact).collect::<Vec<_>>());
        for instants in BOTH {
            let conservative: Vec<Time> =
                run(procs, &jobs, "conservative", instants).0.iter().map(|job| job.start).collect();
            let sorted: Vec<Time> = run(procs, &jobs, "sorted", instants).0.iter().map(|job| job.start).collect();
            prop_assert_eq!(conservative, sorted);
        }
    }

    #[test]
    fn promises_are_kept((procs, quads) in workload(false), policies in some_policies()) {
        for policy in &policies {
            let jobs = jobs_for(policy, &quads);
            for instants in BOTH {
                for job in run(procs, &jobs, policy, instants).0 {
                    prop_assert!(!job.broken);
                    prop_assert!(job.promised.is_none_or(|promised| job.start <= promised), "{}", policy);
                    let promising = policy.parse::<PolicySpec>().unwrap().promises() == Promises::EveryJob;
                    prop_assert!(job.promised.is_some() || !promising);
                    prop_assert!(job.start >= job.request.submit);
                    prop_assert_eq!(job.end - job.start, job.runtime);
                    prop_assert!(job.wait() >= Span::ZERO);
                }
            }
        }
    }
}

/// Not a property of proptest: the reference implementations take seconds for each of these.
#[test]
fn the_same_start_for_every_job_of_a_crowd() {
    for seed in 1..=3 {
        let (procs, quads) = crowd(seed);
        let jobs = tick_jobs(&quads);
        for policy in [
            "fcfs(order=shortest)",
            "easy",
            "easy(backfill=shortest)",
            "easy(order=random, draw=pass)",
            "conservative(order=widest)",
            "easy(order=shortest, hold_head=true)",
            "conservative(order=random, draw=pass)",
            "conservative(order=shortest, keep_reservations=false)",
            "sorted(guarantee=2)",
            "sorted(guarantee=2, late=head)",
            "selective-backfill",
            "selective-backfill(threshold=1.2, order=shortest)",
        ] {
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
