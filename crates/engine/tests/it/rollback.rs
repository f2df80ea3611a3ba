//! A journal without space: nothing happens, requesters are informed, and the ends of attempts are applied later.

use miserly_api::model::{Exit, Filter, Phase, ProblemCode, PromiseChangeReason, Submission};
use miserly_engine::{Absence, Action, Attempt, AttemptOutcome, DaemonReply, DaemonRequest, Input};

use super::life::{Life, job, seconds};
use super::support::request;

#[test]
fn a_submission_that_cannot_be_stored_is_rejected_and_launches_nothing() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, job(1, 20));
    life.actions(first);
    life.journal.set_full(true);
    let problem = life.ask(2, DaemonRequest::Submit(job(1, 20))).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Storage);
    assert_eq!(life.actions(first + 1).len(), 0);
    life.journal.set_full(false);
    let second = life.submit(3, job(1, 20));
    assert_eq!(second, first + 1, "the number was not used");
    assert!(matches!(&life.actions(second)[..], [Action::Launch(_)]));
}

#[test]
fn reads_are_answered_from_the_durable_state_without_space() {
    let mut life = Life::new(1, 1);
    let [first, waits] = [1, 2].map(|at| life.submit(at, job(1, 20)));
    life.journal.set_full(true);
    let outcome = AttemptOutcome::Ended { at: seconds(5), exit: Exit::Code(3), by: None };
    let end = Input::AttemptEnded(Attempt { job: first, nth: 1 }, outcome);
    let (submit, submitted) = request(DaemonRequest::Submit(job(1, 20)));
    let (show, shown) = request(DaemonRequest::Job(first));
    let (list, listed) = request(DaemonRequest::Jobs(Filter { all: true, ..Filter::default() }));
    life.turn(5, vec![end, submit, show, list]);
    assert_eq!(submitted.recv().unwrap().unwrap_err().code, ProblemCode::Storage);
    let Ok(DaemonReply::Job(view)) = shown.recv().unwrap() else { panic!("it can be read") };
    assert!(matches!(view.phase, Phase::Running(_)), "its end is not durable: {:?}", view.phase);
    let Ok(DaemonReply::Jobs(views)) = listed.recv().unwrap() else { panic!("they can be read") };
    assert_eq!(views.iter().map(|view| view.number).collect::<Vec<_>>(), [first, waits]);
}

#[test]
fn a_request_that_is_refused_is_refused_without_space_too() {
    let mut life = Life::new(1, 1);
    life.journal.set_full(true);
    let problem = life.ask(1, DaemonRequest::Hold { job: 7, move_promises: false }).unwrap_err();
    assert_eq!(problem.code, ProblemCode::NotFound);
}

#[test]
fn the_end_of_an_attempt_is_applied_once_there_is_space() {
    let mut life = Life::new(1, 1);
    let [first, waits] = [1, 2].map(|at| life.submit(at, job(1, 20)));
    life.journal.set_full(true);
    let outcome = AttemptOutcome::Ended { at: seconds(5), exit: Exit::Code(3), by: None };
    life.turn(5, vec![Input::AttemptEnded(Attempt { job: first, nth: 1 }, outcome)]);
    assert_eq!(life.actions(waits).len(), 0, "nothing is dispatched before it is durable");
    assert_eq!(life.next_wakeup(), Some(seconds(6)), "one second later");
    life.turn(6, vec![]);
    assert_eq!(life.actions(waits).len(), 0);
    life.journal.set_full(false);
    life.turn(7, vec![]);
    assert!(matches!(&life.actions(waits)[..], [Action::Launch(_)]));
    assert!(matches!(life.job(8, first).phase, Phase::Done { exit: Exit::Code(3), .. }));
}

#[test]
fn a_setup_that_cannot_be_stored_is_not_used() {
    let mut life = Life::of_policy("easy", 2, 2);
    life.setup.queues[0].policy = "fcfs".parse().unwrap();
    life.journal.set_full(true);
    assert_eq!(life.set_up(1).unwrap_err().code, ProblemCode::Storage);
    life.journal.set_full(false);
    assert_eq!(life.status(2).queues[0].policy, "easy");
    life.set_up(3).unwrap();
    assert_eq!(life.status(4).queues[0].policy, "fcfs");
}

#[test]
fn a_daemon_that_cannot_store_its_beginning_can_begin_again() {
    let mut life = Life::new(1, 1);
    let number = life.submit(1, job(1, 20));
    let mut engine = life.opened(5).unwrap();
    life.journal.set_full(true);
    assert!(engine.begin(Life::now(5), &Absence::default()).is_err());
    assert_eq!(life.actions(number).len(), 0);
    life.journal.set_full(false);
    engine.begin(Life::now(6), &Absence::default()).unwrap();
    assert_eq!(life.actions(number).len(), 2);
}

#[test]
fn a_batch_without_changes_is_not_committed() {
    let mut life = Life::new(1, 1);
    life.submit(1, job(1, 20));
    let before = life.journal.contents().commits;
    life.turn(2, vec![]);
    life.status(3);
    assert_eq!(life.journal.contents().commits, before);
}

/// The wake-ups of policies are in no record of a job.
#[test]
fn a_rollback_keeps_the_wake_ups_of_policies() {
    let mut life = Life::new(1, 1);
    let begin = Some(Life::now(100).wall);
    let waits = life.submit(1, Submission { begin, ..job(1, 20) });
    let due = life.next_wakeup();
    assert!(due.is_some(), "it starts by itself");
    life.journal.set_full(true);
    life.ask(2, DaemonRequest::Submit(job(1, 20))).unwrap_err();
    life.journal.set_full(false);
    life.turn(4, vec![]);
    assert_eq!(life.next_wakeup(), due);
    life.turn(101, vec![]);
    assert!(matches!(&life.actions(waits)[..], [Action::Launch(_)]));
}

/// The rollback of another request must not make the daemon forget that a job is due.
#[test]
fn what_is_due_without_space_starts_as_soon_as_there_is_some_and_is_late_for_that() {
    let mut life = Life::new(1, 1);
    let begin = Some(Life::now(5).wall);
    let number = life.submit(1, Submission { begin, ..job(1, 20) });
    life.journal.set_full(true);
    assert_eq!(life.ask(4, DaemonRequest::Submit(job(1, 20))).unwrap_err().code, ProblemCode::Storage);
    life.turn(8, vec![]);
    assert_eq!(life.actions(number).len(), 0);
    life.journal.set_full(false);
    life.submit(9, job(1, 20));
    assert!(life.actions(number).iter().any(|action| matches!(action, Action::Launch(_))));
    let late = life.job(9, number).late.expect("it is late");
    assert!(late.why == PromiseChangeReason::Away && late.by >= 3.0, "{late:?}");
}

#[test]
fn a_late_launch_that_cannot_be_stored_moves_the_window_once_there_is_space() {
    let mut life = Life::new(1, 1);
    let number = life.submit(1, job(1, 20));
    life.journal.set_full(true);
    life.turn(5, vec![Input::Launched(Attempt { job: number, nth: 1 }, seconds(5))]);
    life.journal.set_full(false);
    life.turn(6, vec![]);
    let moved = |action: &Action| matches!(action, Action::EndAt(end) if *end == seconds(25));
    assert!(life.actions(number).iter().any(moved), "{:?}", life.actions(number));
}
