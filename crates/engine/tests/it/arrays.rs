//! Arrays: lists of indexes, and the limit of jobs that run at the same time.

use miserly_api::model::{Array, Condition, Exit, IndexRange, KilledBy, Phase, Submission, WaitReason, When};
use miserly_engine::{Absence, Attempt, AttemptOutcome, DaemonReply, DaemonRequest, Input};

use super::life::{Life, job, seconds, wall};

fn limited(last: u32, limit: u32) -> Submission {
    Submission { array: Some(Array { limit: Some(limit), ..Array::range(0, last, 1) }), ..job(1, 20) }
}

fn running(life: &mut Life, second: i64, jobs: std::ops::Range<i64>) -> Vec<i64> {
    let runs = |job: &i64| matches!(life.job(second, *job).phase, Phase::Running(_));
    jobs.filter(runs).collect()
}

fn refused(life: &mut Life, submission: Submission, says: &str) {
    let problem = life.ask(1, DaemonRequest::Submit(submission)).unwrap_err();
    assert!(problem.message.contains(says), "{problem:?}");
}

#[test]
fn a_list_of_indexes() {
    let mut life = Life::new(2, 2);
    let more = vec![IndexRange { first: 5, last: 9, step: 2 }, IndexRange { first: 1, last: 3, step: 1 }];
    let array = Array { more, ..Array::range(3, 3, 1) };
    let first = life.submit(1, Submission { array: Some(array), ..job(1, 20) });
    let indexes: Vec<_> = (first..first + 6).map(|job| life.job(1, job).index.unwrap()).collect();
    assert_eq!(indexes, [1, 2, 3, 5, 7, 9], "each index once, in order");
    let range = |first, last, step| IndexRange { first, last, step };
    for (more, says) in [
        (range(5, 1, 1), "1 to 10000 jobs"),
        (range(0, 9999, 1), "1 to 10000 jobs"),
        (range(0, u32::MAX, 1), "1 to 10000 jobs"),
        (range(0, 9, 0), "step"),
    ] {
        let array = Array { more: vec![more], ..Array::range(3, 3, 1) };
        refused(&mut life, Submission { array: Some(array), ..job(1, 20) }, says);
    }
    refused(&mut life, limited(3, 0), "at least one job");
}

#[test]
fn no_more_than_the_limit_run_at_the_same_time() {
    let mut life = Life::new(4, 4);
    let first = life.submit(1, limited(4, 2));
    assert_eq!(running(&mut life, 1, first..first + 5), [first, first + 1]);
    for later in first + 2..first + 5 {
        let view = life.job(1, later);
        assert_eq!((view.promise, view.reasons), (None, vec![WaitReason::ArrayLimit { limit: 2 }]));
    }
    // The second ends before the first.
    life.end(3, first + 1);
    assert_eq!(running(&mut life, 3, first..first + 5), [first, first + 2]);
    life.end(4, first);
    life.end(5, first + 2);
    assert_eq!(running(&mut life, 5, first..first + 5), [first + 3, first + 4]);
}

#[test]
fn the_jobs_with_a_place_have_promises() {
    let mut life = Life::new(2, 2);
    life.submit(1, job(2, 50));
    let first = life.submit(2, limited(3, 2));
    let promised =
        |life: &mut Life| (first..first + 4).filter(|job| life.job(2, *job).promise.is_some()).count();
    assert_eq!(promised(&mut life), 2);
    let Ok(DaemonReply::Quote(quote)) = life.ask(2, DaemonRequest::Quote(limited(3, 2))) else {
        panic!("no quote")
    };
    assert_eq!(quote.windows.iter().flatten().count(), 2);
    // A withdrawn job leaves its place, and so does a held one.
    life.ask(3, DaemonRequest::Cancel { job: first, array: false }).unwrap();
    life.ask(4, DaemonRequest::Hold { job: first + 1, move_promises: true }).unwrap();
    for job in [first + 2, first + 3] {
        assert!(life.job(4, job).promise.is_some(), "{job}");
    }
    // There is no place for the released one.
    life.ask(5, DaemonRequest::Release(first + 1)).unwrap();
    assert_eq!(life.job(5, first + 1).reasons, [WaitReason::ArrayLimit { limit: 2 }]);
    life.ask(6, DaemonRequest::Cancel { job: first, array: true }).unwrap();
    assert!((first..first + 4).all(|job| life.job(6, job).phase.ended().is_some()));
}

#[test]
fn a_requeued_job_keeps_its_place() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, limited(2, 1));
    life.ask(2, DaemonRequest::Requeue { job: first, move_promises: true }).unwrap();
    let outcome = AttemptOutcome::Ended { at: seconds(3), exit: Exit::Signal(15), by: Some(KilledBy::User) };
    life.turn(3, vec![Input::AttemptEnded(Attempt { job: first, nth: 1 }, outcome)]);
    assert_eq!(running(&mut life, 4, first..first + 3), [first]);
}

#[test]
fn the_limit_outlives_the_daemon() {
    let mut life = Life::new(4, 4);
    let first = life.submit(1, limited(4, 2));
    life.begin(2, &Absence::default());
    assert_eq!(running(&mut life, 2, first..first + 5), [first, first + 1]);
    let outcome = AttemptOutcome::Ended { at: seconds(3), exit: Exit::Code(0), by: None };
    let ended = vec![(Attempt { job: first, nth: 1 }, outcome)];
    life.begin(5, &Absence { ended, ..Absence::default() });
    assert_eq!(running(&mut life, 5, first..first + 5), [first + 1, first + 2]);
}

/// The job with index 2 is ready before the others of its array, which do not keep it from its place.
#[test]
fn a_place_goes_to_a_job_that_can_run() {
    let mut life = Life::new(6, 6);
    let first = life.submit(1, Submission { array: Some(Array::range(0, 2, 1)), ..job(1, 20) });
    let condition = Condition { when: When::EachOk, job: Some(first), ..Condition::default() };
    let each = life.submit(1, Submission { conditions: vec![condition], ..limited(2, 1) });
    life.end(3, first + 2);
    assert_eq!(running(&mut life, 3, each..each + 3), [each + 2]);
    life.end(4, first);
    assert_eq!(running(&mut life, 4, each..each + 3), [each + 2]);
    life.end(5, each + 2);
    assert_eq!(running(&mut life, 5, each..each + 3), [each]);
}

#[test]
fn a_limited_array_waits_for_another_job_with_promises() {
    let mut life = Life::new(4, 4);
    let other = life.submit(1, job(1, 20));
    let first = life.submit(1, Submission { after: vec![other], ..limited(3, 2) });
    for (job, promised) in (first..).zip([true, true, false, false]) {
        assert_eq!(life.job(1, job).promise.is_some(), promised, "{job}");
    }
    life.end(5, other);
    assert_eq!(running(&mut life, 5, first..first + 4), [first, first + 1]);
}

#[test]
fn a_deadline_needs_a_window_for_each_job() {
    let mut life = Life::new(4, 4);
    refused(&mut life, Submission { deadline: Some(wall(500)), ..limited(3, 2) }, "only 2 jobs");
    life.submit(2, Submission { deadline: Some(wall(500)), ..limited(3, 4) });
}

/// Without earliest starts and promises, the limit holds as well.
#[test]
fn the_limit_holds_under_any_policy() {
    let mut life = Life::of_policy("easy", 4, 4);
    let first = life.submit(1, limited(3, 2));
    assert_eq!(running(&mut life, 1, first..first + 4), [first, first + 1]);
    life.end(3, first);
    assert_eq!(running(&mut life, 3, first..first + 4), [first + 1, first + 2]);
}
