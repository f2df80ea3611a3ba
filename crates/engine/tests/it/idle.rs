//! Jobs that use almost no processor time, as their shims report.

use miserly_api::model::{Condition, Exit, KilledBy, Phase, Submission, When};
use miserly_core::Span;
use miserly_engine::{Absence, Action, Attempt, AttemptOutcome, IdleTerms, Input};

use super::life::{Life, job, seconds, wall};

fn attempt(job: i64, nth: u32) -> Attempt {
    Attempt { job, nth }
}

#[test]
fn an_idle_job_is_shown_until_it_works_again() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, job(1, 100));
    life.turn(40, vec![Input::Idle(attempt(first, 2), Some(seconds(10)))]);
    assert_eq!(life.job(40, first).idle_since, None, "another attempt");
    life.turn(41, vec![Input::Idle(attempt(first, 1), Some(seconds(10)))]);
    assert_eq!(life.job(41, first).idle_since, Some(wall(10)));
    life.begin(42, &Absence::default());
    assert_eq!(life.job(42, first).idle_since, Some(wall(10)), "also for the next daemon");
    life.turn(50, vec![Input::Idle(attempt(first, 1), None)]);
    assert_eq!(life.job(50, first).idle_since, None);
}

#[test]
fn the_terms_of_the_queue_go_to_the_shim() {
    let mut life = Life::new(1, 1);
    let terms = IdleTerms { after: Span::from_ticks(5), ends: true };
    life.setup.queues[0].terms.idle = Some(terms);
    life.set_up(1).unwrap();
    let first = life.submit(2, job(1, 100));
    let actions = life.actions(first);
    let [Action::Launch(launch)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(launch.idle, Some(terms));
    life.begin(3, &Absence::default());
    assert_eq!(life.setup.queues[0].terms.idle, Some(terms));
}

#[test]
fn a_job_that_is_ended_because_it_is_idle_has_failed() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, job(1, 100));
    let after = Condition { when: When::Ok, job: Some(first), ..Condition::default() };
    let next = life.submit(1, Submission { conditions: vec![after], ..job(1, 5) });
    let (exit, by) = (Exit::Signal(15), Some(KilledBy::Idle));
    life.turn(
        50,
        vec![Input::AttemptEnded(attempt(first, 1), AttemptOutcome::Ended { at: seconds(50), exit, by })],
    );
    assert!(matches!(life.job(50, first).phase, Phase::Killed { by: KilledBy::Idle, .. }));
    match life.job(51, next).phase {
        Phase::Failed { message, .. } => assert!(message.contains("because it was idle"), "{message}"),
        other => panic!("{other:?}"),
    }
}
