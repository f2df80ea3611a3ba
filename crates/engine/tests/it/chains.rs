//! Long chains of jobs.

use miserly_api::model::Submission;
use miserly_engine::{DaemonReply, DaemonRequest};

use super::life::{Life, job, seconds};

/// The length of the chain.
const CHAIN: i64 = 200;

/// Returns a chain of jobs of 20 s on one processor.
fn chain(policy: &str) -> (Life, Vec<i64>) {
    let mut life = Life::of_policy(policy, 2, 2);
    let mut jobs = vec![life.submit(1, job(1, 20))];
    for _ in 1..CHAIN {
        let after = jobs.last().copied().into_iter().collect();
        jobs.push(life.submit(1, Submission { after, ..job(1, 20) }));
    }
    (life, jobs)
}

/// Returns the planned start of a job, in seconds, without a batch of the engine.
fn planned(life: &Life, job: i64) -> i64 {
    match life.read(&life.snapshot(), 5, &DaemonRequest::Job(job)).unwrap() {
        DaemonReply::Job(view) => Life::second(view.promise.unwrap().now.unwrap().start),
        other => panic!("{other:?}"),
    }
}

/// A batch of the engine moves only a part of the chain, so that others are served before the rest moves.
#[test]
fn the_end_of_the_first_job_moves_all_others_in_several_batches() {
    for policy in ["miser", "conservative"] {
        let (mut life, jobs) = chain(policy);
        let last = *jobs.last().unwrap();
        let before = planned(&life, last);
        life.end(5, jobs[0]);
        assert_eq!(planned(&life, last), before, "{policy}: not in the same batch");
        let other = life.submit(5, job(1, 20));
        assert_eq!(planned(&life, other), 5, "{policy}: another job starts meanwhile");
        let mut batches = 0;
        while life.next_wakeup().is_some_and(|due| due < seconds(6)) {
            life.late_turn(Life::now(5), vec![]);
            batches += 1;
        }
        assert!((2..=10).contains(&batches), "{policy}: {batches}");
        assert_eq!(before - planned(&life, last), 17, "{policy}");
    }
}
