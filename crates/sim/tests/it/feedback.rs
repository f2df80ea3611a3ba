//! Jobs that are submitted after the end of another one.

use std::collections::BTreeMap;

use miserly_core::{EventOrder, JobNumber, Machine, Span, Time};
use miserly_policies::PolicySpec;
use miserly_sim::{FeedbackJobs, Job, Simulation};
use proptest::prelude::*;

use crate::support::{Quad, SEED, Schedule, in_order, jobs, tick_jobs};

/// Submission, start and end in ticks of each job, by its number.
type Times = BTreeMap<JobNumber, [i64; 3]>;

/// Runs jobs of which some follow another one, by number, after a think time in seconds.
fn times(policy: &str, jobs: &[Job], follows: &BTreeMap<JobNumber, (JobNumber, i64)>) -> Times {
    let machine = Machine::plain(10);
    let policy = policy.parse::<PolicySpec>().unwrap().build(&machine, SEED).unwrap();
    let mut simulation = Simulation::new(machine, policy, EventOrder::Batched);
    let (mut first, mut later) = (Vec::new(), FeedbackJobs::default());
    for job in jobs {
        match follows.get(&job.request.number) {
            None => first.push(job.clone()),
            Some((before, think)) => later.add(*before, Span::from_secs(*think).unwrap(), job.clone()),
        }
    }
    simulation.add_feedback(later);
    let mut schedule = Schedule::default();
    simulation.run(&mut in_order(&first), &mut [&mut schedule]).unwrap();
    let ticks = |time: Time| time.ticks();
    let of = |job: &miserly_sim::Finished| [ticks(job.request.submit), ticks(job.start), ticks(job.end)];
    schedule.0.iter().map(|job| (job.request.number, of(job))).collect()
}

/// Ten processors. Job 1 runs from 0 to 100 and job 2 from 100 to 150. Job 3 comes 20 s after the end of job
/// 2, and job 4 at the end of job 3; the submissions of the log, 5 and 6, do not count.
#[test]
fn a_job_comes_after_the_simulated_end_of_another_one() {
    let jobs = jobs(&[(0, 100, 10, 100), (1, 50, 10, 50), (5, 30, 10, 30), (6, 10, 1, 10)]);
    let follows = BTreeMap::from([(3, (2, 20)), (4, (3, 0))]);
    let seconds: Vec<[i64; 3]> = times("fcfs", &jobs, &follows)
        .into_values()
        .map(|times| times.map(|ticks| ticks / 1_000_000))
        .collect();
    assert_eq!(seconds, [[0, 0, 100], [1, 100, 150], [170, 170, 200], [200, 200, 210]]);
}

fn loops() -> impl Strategy<Value = Vec<(Quad, Option<(u32, i64)>)>> {
    let quad = (0..3_000_000_i64, 0..600_000_i64, 1..11_u64, 0..300_000_i64)
        .prop_map(|(submit, runtime, procs, more)| (submit, runtime, procs, runtime + more));
    prop::collection::vec((quad, prop::option::of((any::<u32>(), 0..2_i64))), 1..25)
}

proptest! {
    /// Against the definition: each submission is the end of the other job and the think time, and a run of
    /// jobs with just these submissions is the same schedule.
    #[test]
    fn the_schedule_is_that_of_a_log_with_the_resulting_submissions(
        all in loops(), policy in prop::sample::select(vec!["fcfs", "easy", "conservative", "easy(backfill=shortest)"])
    ) {
        let quads: Vec<Quad> = all.iter().map(|(quad, _)| *quad).collect();
        let mut jobs = tick_jobs(&quads);
        let mut follows = BTreeMap::new();
        for (number, (_, after)) in (1..).zip(&all) {
            if let Some((drawn, think)) = after.filter(|_| number > 1) {
                follows.insert(number, (1 + i64::from(drawn) % (number - 1), think));
            }
        }
        let closed = times(policy, &jobs, &follows);
        prop_assert_eq!(closed.len(), jobs.len());
        for (number, (before, think)) in &follows {
            prop_assert_eq!(closed[number][0], closed[before][2] + think * 1_000_000);
        }
        for job in &mut jobs {
            job.request.submit = Time::from_ticks(closed[&job.request.number][0]);
        }
        // Of one instant, the jobs of the log come first; ties among the others are left out.
        let mut of_instant = BTreeMap::<i64, usize>::new();
        for job in &jobs {
            *of_instant.entry(job.request.submit.ticks()).or_default() += 1;
        }
        prop_assume!(of_instant.values().all(|&jobs| jobs == 1));
        prop_assert_eq!(times(policy, &jobs, &BTreeMap::new()), closed);
    }
}
