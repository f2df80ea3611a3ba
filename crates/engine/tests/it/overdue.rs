//! Attempts that do not end, and those that end without their fault.

use miserly_api::model::{Exit, KilledBy, Overdue, OverdueCause, Phase, Submission};
use miserly_engine::{Absence, Action, Attempt, AttemptOutcome, Input};

use super::life::{Life, job, seconds, wall};

fn attempt(job: i64, nth: u32) -> Attempt {
    Attempt { job, nth }
}

/// A job of 10 s on the only processor, which is overdue from second 12 on, and one behind it.
fn overdue() -> (Life, i64, i64) {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, job(1, 10));
    let next = life.submit(1, job(1, 10));
    life.actions(first);
    life.turn(12, vec![]);
    (life, first, next)
}

#[test]
fn an_overdue_job_is_ended_by_force_once_and_by_the_next_daemon_again() {
    let (mut life, first, _) = overdue();
    assert!(matches!(life.actions(first)[..], [Action::EndOverdue { by_running_time: false }]));
    life.turn(13, vec![]);
    assert!(life.actions(first).is_empty());
    life.begin(14, &Absence::default());
    assert!(matches!(life.actions(first)[..], [Action::EndOverdue { by_running_time: false }]));
}

#[test]
fn a_job_that_takes_turns_is_left_to_the_count_of_its_shim() {
    let mut life = Life::of_policy("gang", 1, 1);
    let number = life.submit(1, job(1, 10));
    life.actions(number);
    life.turn(12, vec![]);
    assert!(matches!(life.actions(number)[..], [Action::EndOverdue { by_running_time: true }]));
    life.begin(14, &Absence::default());
    let actions = life.actions(number);
    let [Action::Move(_), Action::RunFor(_), Action::EndOverdue { by_running_time: true }] = &actions[..]
    else {
        panic!("{actions:?}")
    };
}

#[test]
fn a_job_does_not_start_on_the_processors_of_an_overdue_one() {
    let (mut life, first, next) = overdue();
    assert!(life.actions(next).is_empty());
    assert_eq!(life.job(100, next).phase, Phase::Queued);
    let outcome = AttemptOutcome::Ended { at: seconds(101), exit: Exit::Signal(9), by: Some(KilledBy::Time) };
    life.turn(101, vec![Input::AttemptEnded(attempt(first, 1), outcome)]);
    assert!(matches!(life.actions(next)[..], [Action::Launch(_)]));
}

/// All plans move with each instant then. Each request would adjust all dependent jobs, as often as there are some.
#[test]
fn the_starts_of_dependent_jobs_stay_behind_an_overdue_one() {
    let (mut life, _, next) = overdue();
    let dependent = (0..6).map(|_| life.submit(13, Submission { after: vec![next], ..job(1, 10) }));
    let dependent: Vec<i64> = dependent.collect();
    let before = life.lines().len();
    life.submit(14, job(1, 10));
    let lines = life.lines().len() - before;
    assert!(lines <= 3, "{lines} lines for a request");
    let starts = dependent.iter().map(|number| life.job(15, *number).promise.unwrap().now.unwrap().start);
    assert!(starts.map(Life::second).all(|start| start >= 14 + 11), "none before the job that it waits for");
}

#[test]
fn the_cause_is_shown_and_stored() {
    let (mut life, first, _) = overdue();
    let since = wall(12);
    assert_eq!(life.job(13, first).overdue, Some(Overdue { since, cause: OverdueCause::Ending }));
    let cause = OverdueCause::Processes { pids: vec![7] };
    // That of another attempt is not its own.
    life.turn(14, vec![Input::Overdue(attempt(first, 2), OverdueCause::ShimStopped)]);
    life.turn(14, vec![Input::Overdue(attempt(first, 1), cause.clone())]);
    life.begin(15, &Absence::default());
    assert_eq!(life.job(16, first).overdue, Some(Overdue { since, cause }));
}

/// Ends the first attempt of a job by a shutdown.
fn shut_down(restartable: bool) -> (Life, i64) {
    let mut life = Life::new(1, 1);
    let number = life.submit(1, Submission { restartable, ..job(1, 10) });
    life.actions(number);
    let outcome =
        AttemptOutcome::Ended { at: seconds(3), exit: Exit::Signal(15), by: Some(KilledBy::Shutdown) };
    life.turn(3, vec![Input::AttemptEnded(attempt(number, 1), outcome)]);
    (life, number)
}

#[test]
fn a_restartable_job_runs_again_after_a_shutdown_and_another_one_does_not() {
    let (life, number) = shut_down(true);
    assert!(matches!(life.actions(number)[..], [Action::Forget, Action::Launch(_)]));
    let (mut life, number) = shut_down(false);
    let phase = life.job(4, number).phase;
    assert!(
        matches!(phase, Phase::Killed { by: KilledBy::Shutdown, exit: Some(Exit::Signal(15)), .. }),
        "{phase:?}"
    );
}

#[test]
fn only_an_attempt_after_one_that_ran_appends_to_the_output() {
    let mut life = Life::new(1, 1);
    let number = life.submit(1, Submission { restartable: true, ..job(1, 10) });
    let appends = |life: &mut Life| match &life.actions(number)[..] {
        [.., Action::Launch(launch)] => launch.append,
        other => panic!("{other:?}"),
    };
    assert!(!appends(&mut life));
    life.turn(2, vec![Input::AttemptEnded(attempt(number, 1), AttemptOutcome::NeverRan)]);
    assert!(!appends(&mut life));
    let lost = AttemptOutcome::Lost(miserly_api::model::LostBy::Shim);
    life.turn(3, vec![Input::AttemptEnded(attempt(number, 2), lost)]);
    assert!(appends(&mut life));
    life.turn(4, vec![Input::AttemptEnded(attempt(number, 3), AttemptOutcome::NeverRan)]);
    assert!(appends(&mut life));
}
