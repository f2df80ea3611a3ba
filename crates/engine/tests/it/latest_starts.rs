//! Jobs that are given up if they have not started by their latest start.

use miserly_api::model::{Failure, Judgement, Modification, Phase, Submission, TimeBound};
use miserly_engine::{Absence, Action, Attempt, AttemptOutcome, DaemonReply, DaemonRequest, Input};

use super::life::{Life, early, job, wall};

fn within(secs: u32, job: Submission) -> Submission {
    Submission { start_within: Some(secs.into()), ..job }
}

#[track_caller]
fn is_given_up(life: &mut Life, second: i64, job: i64, at: i64) {
    match life.job(second, job).phase {
        Phase::Failed { at: ended, why: Failure::NotInTime, message } => {
            assert_eq!(Life::second(ended), at);
            assert!(message.contains("had not started"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_behind_another_one_is_given_up_and_its_place_is_free() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, job(1, 20));
    let hasty = life.submit(2, within(5, job(1, 50)));
    let next = life.submit(3, job(1, 10));
    let view = life.job(3, hasty);
    assert_eq!((view.start_by, &view.phase), (Some(wall(7)), &Phase::Queued));
    assert_eq!(life.next_wakeup(), Some(super::life::seconds(7) + miserly_core::Span::TICK));
    life.turn(7, vec![]);
    assert_eq!(life.job(7, hasty).phase, Phase::Queued, "at that very instant it may still start");
    life.turn(8, vec![]);
    is_given_up(&mut life, 9, hasty, 7);
    let view = life.job(9, hasty);
    assert_eq!(view.judged.last().map(|judged| judged.judgement), Some(Judgement::Withdrawn));
    let promised = life.job(9, next).promise.unwrap().now.unwrap().start;
    assert_eq!(Life::second(promised), 22, "behind the first one, with its cleanup time");
    assert!(matches!(life.job(9, first).phase, Phase::Running(_)));
    assert_eq!(life.unkept(9), 0);
}

#[test]
fn a_later_earliest_start_moves_the_latest_one() {
    let mut life = Life::new(1, 1);
    life.submit(1, job(1, 20));
    let hasty = life.submit(2, within(5, job(1, 50)));
    let modify =
        |changes| DaemonRequest::Modify { job: hasty, changes: Box::new(changes), move_promises: false };
    life.ask(3, modify(Modification { begin: Some(wall(100)), ..Modification::default() })).unwrap();
    assert_eq!(life.job(3, hasty).start_by, Some(wall(105)));
    life.turn(8, vec![]);
    assert_eq!(life.job(9, hasty).phase, Phase::Queued);
    life.ask(10, modify(Modification { remove: vec![TimeBound::Begin], ..Modification::default() })).unwrap();
    life.turn(11, vec![]);
    is_given_up(&mut life, 11, hasty, 10);
}

#[test]
fn the_longest_wait_of_a_waiting_job_changes() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, job(1, 20));
    let hasty = life.submit(2, within(5, job(1, 50)));
    let modify =
        |changes| DaemonRequest::Modify { job: hasty, changes: Box::new(changes), move_promises: false };
    let wait = |secs| Modification { start_within: Some(secs), ..Modification::default() };
    life.ask(3, modify(wait(40.0))).unwrap();
    assert_eq!(life.job(3, hasty).start_by, Some(wall(42)), "from its submission");
    let problem = life.ask(4, modify(wait(1.0))).unwrap_err();
    assert_eq!(problem.field.as_deref(), Some("start_within"), "{problem}");
    life.ask(5, modify(wait(8.0))).unwrap();
    life.ask(6, modify(Modification { remove: vec![TimeBound::StartWithin], ..Modification::default() }))
        .unwrap();
    let longer = Modification { overrun_if_idle: Some(true), ..Modification::default() };
    life.ask(7, modify(longer)).unwrap();
    life.end(20, first);
    life.turn(30, vec![]);
    let view = life.job(30, hasty);
    assert!(matches!(view.phase, Phase::Running(_)), "{:?}", view.phase);
    assert!(view.overrun_if_idle);
}

#[test]
fn a_job_that_starts_in_time_keeps_its_run() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, job(1, 20));
    let hasty = life.submit(2, within(5, Submission { restartable: true, ..job(1, 50) }));
    // An end at that very instant is early enough.
    life.end(7, first);
    life.turn(30, vec![]);
    let view = life.job(30, hasty);
    assert!(matches!(view.phase, Phase::Running(_)), "{:?}", view.phase);
    assert_eq!(view.start_by, None);
    // Nor does the latest start count for another run.
    life.ask(31, DaemonRequest::Requeue { job: hasty, move_promises: false }).ok();
    life.turn(40, vec![]);
    assert!(!matches!(life.job(40, hasty).phase, Phase::Failed { .. }));
}

#[test]
fn the_wait_begins_with_the_earliest_start_and_covers_holds_and_dependencies() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, job(1, 100));
    let later = life.submit(1, within(5, Submission { begin: Some(wall(30)), ..job(1, 5) }));
    let held = life.submit(1, within(5, Submission { hold: true, ..job(1, 5) }));
    let behind = life.submit(1, within(9, Submission { after: vec![first], ..job(1, 5) }));
    life.turn(20, vec![]);
    is_given_up(&mut life, 20, held, 6);
    is_given_up(&mut life, 20, behind, 10);
    assert_eq!(life.job(20, later).start_by, Some(wall(35)));
    life.turn(40, vec![]);
    is_given_up(&mut life, 40, later, 35);
}

#[test]
fn no_wait_at_all_is_now_or_never() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, within(0, job(1, 20)));
    assert!(matches!(life.job(1, first).phase, Phase::Running(_)));
    let second = life.submit(2, within(0, job(1, 20)));
    life.turn(3, vec![]);
    is_given_up(&mut life, 3, second, 2);
    let wrong = within(1, job(1, 20));
    let wrong = Submission { start_within: Some(-1.0), ..wrong };
    let problem = life.ask(3, DaemonRequest::Submit(wrong)).unwrap_err();
    assert_eq!(problem.field.as_deref(), Some("start_within"));
}

#[test]
fn a_promise_that_was_missed_before_is_lost() {
    let mut life = Life::new(1, 1);
    // The first one does not end.
    life.submit(1, job(1, 20));
    let hasty = life.submit(2, within(30, job(1, 5)));
    assert_eq!(Life::second(life.job(2, hasty).promise.unwrap().promised.start), 22);
    life.turn(40, vec![]);
    is_given_up(&mut life, 40, hasty, 32);
    let judged = life.job(40, hasty).judged;
    assert_eq!(judged.last().map(|judged| judged.judgement), Some(Judgement::Lost));
}

#[test]
fn an_early_run_is_a_start() {
    let mut life = Life::new(1, 2);
    life.submit(1, job(1, 20));
    let ahead = life.submit(2, within(5, early(1, 50)));
    life.turn(12, vec![]);
    assert!(matches!(life.job(12, ahead).phase, Phase::Opportunistic { .. }));
}

#[test]
fn the_latest_start_passes_while_no_daemon_runs() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, job(1, 20));
    let hasty = life.submit(2, within(5, job(1, 50)));
    let attempt = Attempt { job: first, nth: 1 };
    let exit = miserly_api::model::Exit::Code(0);
    let ended = AttemptOutcome::Ended { at: super::life::seconds(15), exit, by: None };
    life.begin(18, &Absence { ended: vec![(attempt, ended)], ..Absence::default() });
    life.turn(19, vec![]);
    assert!(matches!(life.job(19, hasty).phase, Phase::Failed { why: Failure::NotInTime, .. }));
    assert!(life.actions(hasty).iter().all(|action| !matches!(action, Action::Launch(_))));
}

#[test]
fn a_start_that_was_lost_is_not_repeated_too_late() {
    let mut life = Life::new(1, 1);
    let hasty = life.submit(2, within(5, job(1, 50)));
    let attempt = Attempt { job: hasty, nth: 1 };
    life.turn(9, vec![Input::AttemptEnded(attempt, AttemptOutcome::NeverRan)]);
    is_given_up(&mut life, 9, hasty, 9);
    let next = life.submit(10, job(1, 5));
    assert!(matches!(life.job(10, next).phase, Phase::Running(_)));
}

#[test]
fn an_early_start_that_was_lost_is_not_repeated_too_late() {
    let mut life = Life::new(1, 2);
    life.submit(1, job(1, 20));
    let ahead = life.submit(2, within(5, early(1, 50)));
    let attempt = Attempt { job: ahead, nth: 1 };
    let lost = vec![(attempt, AttemptOutcome::NeverRan)];
    life.begin(9, &Absence { ended: lost, ..Absence::default() });
    is_given_up(&mut life, 9, ahead, 9);
    assert!(life.actions(ahead).iter().all(|action| !matches!(action, Action::Launch(_))));
}

#[test]
fn the_reply_has_the_latest_start() {
    let mut life = Life::new(1, 1);
    life.submit(1, job(1, 20));
    let reply = life.ask(2, DaemonRequest::Submit(within(5, job(1, 50)))).unwrap();
    let DaemonReply::Submitted(submitted) = reply else { panic!("{reply:?}") };
    assert_eq!(submitted.jobs[0].start_by, Some(wall(7)));
    assert!(submitted.jobs[0].promise.is_some_and(|window| window.start > wall(7)));
}
