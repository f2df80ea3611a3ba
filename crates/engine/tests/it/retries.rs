//! Jobs that run again after a failure.

use miserly_api::model::{Condition, Exit, KilledBy, Phase, PromiseChangeReason, Retry, Submission, When};
use miserly_engine::{Absence, Action, Attempt, AttemptOutcome, DaemonRequest, Input};

use super::life::{Life, early, job, seconds};

fn retries(limit: u32, codes: &[i32]) -> Submission {
    Submission { retry: Some(Retry { limit, codes: codes.to_vec() }), ..job(1, 20) }
}

fn ended(second: i64, job: i64, nth: u32, exit: Exit, by: Option<KilledBy>) -> (Attempt, AttemptOutcome) {
    (Attempt { job, nth }, AttemptOutcome::Ended { at: seconds(second), exit, by })
}

fn exits(life: &mut Life, second: i64, job: i64, nth: u32, code: i32) {
    let (attempt, outcome) = ended(second, job, nth, Exit::Code(code), None);
    life.turn(second, vec![Input::AttemptEnded(attempt, outcome)]);
}

fn launches(life: &Life, job: i64) -> usize {
    life.actions(job).iter().filter(|action| matches!(action, Action::Launch(_))).count()
}

#[test]
fn a_failed_job_runs_again_with_a_new_promise() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, retries(2, &[]));
    let other = life.submit(1, job(1, 30));
    exits(&mut life, 5, first, 1, 3);
    // Behind the other one, which started.
    let view = life.job(5, first);
    assert_eq!((&view.phase, &view.retried, view.attempts), (&Phase::Queued, &vec![3], 1));
    let promise = view.promise.unwrap();
    assert_eq!((promise.at_risk, promise.history.last().unwrap().why), (None, PromiseChangeReason::Retried));
    assert!(matches!(life.job(5, other).phase, Phase::Running(_)));
    life.end(10, other);
    exits(&mut life, 12, first, 2, 4);
    exits(&mut life, 14, first, 3, 5);
    let view = life.job(14, first);
    assert!(matches!(view.phase, Phase::Done { exit: Exit::Code(5), .. }), "{:?}", view.phase);
    assert_eq!((view.retried, view.attempts), (vec![3, 4], 3));
    assert_eq!((life.unkept(14), launches(&life, first)), (0, 3));
}

#[test]
fn other_ends_are_final() {
    let signal = Exit::Signal(9);
    for (exit, by) in [
        (Exit::Code(0), None),
        (Exit::Code(1), None),
        (signal, None),
        (Exit::Code(75), Some(KilledBy::Time)),
        (Exit::Code(75), Some(KilledBy::Memory)),
    ] {
        let mut life = Life::new(1, 1);
        let first = life.submit(1, retries(2, &[75]));
        let (attempt, outcome) = ended(5, first, 1, exit, by);
        life.turn(5, vec![Input::AttemptEnded(attempt, outcome)]);
        assert!(life.job(5, first).phase.ended().is_some(), "{exit:?} {by:?}");
    }
}

#[test]
fn a_cancelled_job_does_not_run_again() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, retries(2, &[]));
    life.ask(2, DaemonRequest::Cancel { job: first, array: false }).unwrap();
    exits(&mut life, 3, first, 1, 143);
    assert!(matches!(life.job(3, first).phase, Phase::Killed { by: KilledBy::User, .. }));
}

#[test]
fn others_wait_for_the_last_attempt() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, retries(1, &[75]));
    let condition = Condition { when: When::Ok, job: Some(first), ..Condition::default() };
    let second = life.submit(1, Submission { conditions: vec![condition], ..job(1, 10) });
    exits(&mut life, 5, first, 1, 75);
    assert_eq!(life.job(5, second).after_ok, [first]);
    exits(&mut life, 8, first, 2, 0);
    assert!(matches!(life.job(8, second).phase, Phase::Running(_)));
}

#[test]
fn an_attempt_ahead_of_the_window_keeps_the_promise() {
    let mut life = Life::new(1, 2);
    life.submit(1, job(1, 30));
    let first = life.submit(1, Submission { retry: retries(1, &[]).retry, ..early(1, 10) });
    let promised = life.job(2, first).promise.unwrap().now;
    exits(&mut life, 5, first, 1, 1);
    let view = life.job(5, first);
    assert_eq!((view.promise.unwrap().now, view.retried, view.attempts), (promised, vec![1], 2));
    assert!(matches!(view.phase, Phase::Opportunistic { .. }));
}

#[test]
fn the_failures_outlive_the_daemon() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, retries(1, &[]));
    exits(&mut life, 5, first, 1, 1);
    let end = ended(7, first, 2, Exit::Code(2), None);
    life.begin(9, &Absence { ended: vec![end], ..Absence::default() });
    let view = life.job(9, first);
    assert!(matches!(view.phase, Phase::Done { exit: Exit::Code(2), .. }), "{:?}", view.phase);
    assert_eq!(view.retried, [1]);
}

#[test]
fn the_number_of_attempts_is_limited() {
    let mut life = Life::new(1, 1);
    for limit in [0, 101] {
        let problem = life.ask(1, DaemonRequest::Submit(retries(limit, &[]))).unwrap_err();
        assert_eq!(problem.field.as_deref(), Some("retry"));
    }
}
