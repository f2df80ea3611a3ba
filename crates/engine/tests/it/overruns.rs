//! Jobs that run on past their time limits while no other job needs their places.

use miserly_api::model::{Condition, Exit, JobView, KilledBy, Phase, Submission};
use miserly_core::Time;
use miserly_engine::{Absence, Action, Attempt, AttemptOutcome, DaemonRequest, Input};

use super::life::{Life, job, seconds};

fn soft(cpus: u64, time: u32) -> Submission {
    Submission { overrun_if_idle: true, ..job(cpus, time) }
}

/// Returns the end of the window of a running job, in seconds.
#[track_caller]
fn end(view: &JobView) -> i64 {
    match &view.phase {
        Phase::Running(allocation) => Life::second(allocation.end),
        other => panic!("{other:?}"),
    }
}

/// Returns the last end that an attempt was sent.
fn sent_end(life: &Life, job: i64) -> Option<Time> {
    let ends = life.actions(job).into_iter().filter_map(|action| match action {
        Action::EndAt(end) => Some(end),
        _ => None,
    });
    ends.last()
}

fn out_of_time(life: &mut Life, second: i64, job: i64) {
    let outcome =
        AttemptOutcome::Ended { at: seconds(second), exit: Exit::Signal(15), by: Some(KilledBy::Time) };
    life.turn(second, vec![Input::AttemptEnded(Attempt { job, nth: 1 }, outcome)]);
}

#[test]
fn an_idle_place_is_kept_step_by_step() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, soft(1, 80));
    assert_eq!(end(&life.job(2, first)), 81);
    // Half a step of 10 s and the grace period before its end.
    life.turn(74, vec![]);
    assert_eq!(end(&life.job(74, first)), 81);
    life.turn(76, vec![]);
    let view = life.job(76, first);
    assert_eq!((end(&view), view.overrun, view.time), (91, Some(10.0), 80.0));
    assert_eq!(sent_end(&life, first), Some(seconds(91)));
    life.turn(200, vec![]);
    assert!(end(&life.job(200, first)) > 200);
    assert!(end(&life.job(200, first)) <= 217, "never more than a step and the lead ahead");
    assert_eq!(life.unkept(200), 0);
}

#[test]
fn a_promise_ends_the_overrun_and_does_not_move() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, soft(1, 80));
    life.turn(200, vec![]);
    let until = end(&life.job(200, first));
    let next = life.submit(200, job(1, 30));
    let promised = life.job(200, next).promise.unwrap().promised.start;
    assert_eq!(Life::second(promised), until + super::life::CLEANUP);
    life.turn(until, vec![]);
    assert_eq!(end(&life.job(until, first)), until, "its window does not grow any more");
    out_of_time(&mut life, until, first);
    assert!(matches!(life.job(until, first).phase, Phase::Killed { by: KilledBy::Time, .. }));
    assert!(matches!(life.job(until, next).phase, Phase::Running(_)));
    assert_eq!(life.unkept(until), 0);
}

#[test]
fn it_goes_on_beside_jobs_that_do_not_need_its_place() {
    let mut life = Life::new(3, 3);
    let first = life.submit(1, soft(1, 80));
    let wide = life.submit(1, job(2, 300));
    let next = life.submit(1, job(2, 30));
    let before = life.job(1, next).promise.unwrap().promised.start;
    life.turn(200, vec![]);
    assert!(end(&life.job(200, first)) > 200);
    assert_eq!(life.job(200, next).promise.unwrap().now.unwrap().start, before);
    // But two of them together would be in the way of a third one.
    life.end(205, wide);
    life.end(206, next);
    let second = life.submit(207, soft(2, 80));
    let all = life.submit(208, job(3, 10));
    let promised = life.job(208, all).promise.unwrap().promised.start;
    life.turn(Life::second(promised) - 2, vec![]);
    assert!(end(&life.job(Life::second(promised) - 2, second)) <= Life::second(promised));
    assert_eq!(life.job(Life::second(promised) - 2, all).promise.unwrap().now.unwrap().start, promised);
}

#[test]
fn a_waiting_job_without_a_plan_or_a_place_ends_it() {
    let mut life = Life::of_policy("fcfs", 1, 1);
    let first = life.submit(1, soft(1, 80));
    life.submit(2, job(1, 10));
    life.turn(81, vec![]);
    assert_eq!(end(&life.job(81, first)), 81);

    let mut life = Life::new(2, 2);
    let first = life.submit(1, soft(1, 80));
    let after = Condition { job: Some(first), ..Condition::default() };
    life.submit(2, Submission { conditions: vec![after], ..job(1, 10) });
    life.turn(81, vec![]);
    assert_eq!(end(&life.job(81, first)), 81, "another job waits for its end");
}

#[test]
fn the_signal_comes_before_the_real_end() {
    let mut life = Life::new(1, 1);
    let signal = miserly_api::submit::early_signal("USR1@30").unwrap();
    let first = life.submit(1, Submission { signal: Some(signal), ..soft(1, 80) });
    life.turn(50, vec![]);
    assert!(end(&life.job(50, first)) > 81 + 5, "decided before the signal is due, which is at 51");
}

#[test]
fn what_was_given_is_stored_and_taken_back_for_another_run() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, Submission { restartable: true, ..soft(1, 80) });
    life.turn(100, vec![]);
    let until = end(&life.job(100, first));
    life.begin(101, &Absence::default());
    assert_eq!(end(&life.job(101, first)), until);
    life.turn(140, vec![]);
    assert!(end(&life.job(140, first)) > 140, "also under the next daemon");
    life.ask(141, DaemonRequest::Requeue { job: first, move_promises: false }).unwrap();
    let outcome =
        AttemptOutcome::Ended { at: seconds(142), exit: Exit::Signal(15), by: Some(KilledBy::User) };
    life.turn(142, vec![Input::AttemptEnded(Attempt { job: first, nth: 1 }, outcome)]);
    let view = life.job(142, first);
    assert_eq!((view.time, view.overrun), (80.0, None));
}

#[test]
fn queues_that_take_running_jobs_off_their_processors_refuse_it() {
    for policy in ["gang", "eqspatial", "ss", "immediate(policy=fcfs-backfill)"] {
        let mut life = Life::of_policy(policy, 1, 1);
        let problem = life.ask(1, DaemonRequest::Submit(soft(1, 80))).unwrap_err();
        assert_eq!(problem.field.as_deref(), Some("overrun_if_idle"), "{policy}");
        assert!(problem.message.contains("another queue"), "{}", problem.message);
    }
}
