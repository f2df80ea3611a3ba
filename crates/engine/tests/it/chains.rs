//! Long chains of jobs.

use miserly_api::model::{Exit, PromiseChangeReason, Submission};
use miserly_core::Span;
use miserly_engine::{Absence, Attempt, AttemptOutcome, DaemonReply, DaemonRequest};

use super::life::{Life, cause, job, seconds};

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

/// Returns an absence in which a job has ended at this second.
fn absence(job: i64, second: i64) -> Absence {
    let ended = AttemptOutcome::Ended { at: seconds(second), exit: Exit::Code(0), by: None };
    Absence { ended: vec![(Attempt { job, nth: 1 }, ended)], ..Absence::default() }
}

/// Lets the engine do what it does without further inputs.
fn rest(life: &mut Life, second: i64) {
    while life.next_wakeup().is_some_and(|due| due < seconds(second + 1)) {
        life.late_turn(Life::now(second), vec![]);
    }
}

/// Another configuration makes the tracker of dependencies anew.
#[test]
fn a_chain_moves_after_a_start_with_another_configuration() {
    let (mut life, jobs) = chain("conservative");
    let last = *jobs.last().unwrap();
    let before = planned(&life, last);
    life.setup.grace = Span::from_ticks(1_500_000);
    life.begin(5, &absence(jobs[0], 5));
    rest(&mut life, 5);
    assert_eq!(before - planned(&life, last), 17);
}

/// Nobody is promised a start from a plan that is known to move to a later instant.
#[test]
fn a_chain_that_moves_to_later_instants_moves_before_the_next_request() {
    for changed in [false, true] {
        let (mut life, jobs) = chain("conservative");
        if changed {
            life.setup.grace = Span::from_ticks(1_500_000);
        }
        life.begin(100, &absence(jobs[0], 15));
        let after = jobs.last().copied().into_iter().collect();
        let new = life.submit(100, Submission { after, ..job(1, 20) });
        let promised = planned(&life, new);
        rest(&mut life, 100);
        assert_eq!(planned(&life, new), promised);
        for number in &jobs[1..] {
            let view = life.job(100, *number);
            assert_eq!(cause(&view), Some(PromiseChangeReason::Away), "{changed}, job {number}");
        }
    }
}
