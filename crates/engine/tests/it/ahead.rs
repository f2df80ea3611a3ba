//! Planned windows of opportunistic jobs, and windows that began without a daemon.

use miserly_api::model::{Exit, Phase, Submission};
use miserly_engine::{Absence, Action, Attempt, AttemptOutcome, BegunWindow, DaemonRequest, PlannedWindow};

use super::life::{CLEANUP, Life, job, seconds};

/// A job that may run ahead of its window.
fn early(cpus: u64, time: u32) -> Submission {
    Submission { no_opportunistic: false, ..job(cpus, time) }
}

/// The windows ahead that are in these.
fn windows(actions: Vec<Action>) -> Vec<PlannedWindow> {
    let window = |action| match action {
        Action::PlanWindow(ahead) => Some(ahead),
        Action::Launch(launch) => launch.planned_window,
        _ => None,
    };
    actions.into_iter().filter_map(window).collect()
}

/// A job until 50 s that has the pool of one processor, and one that runs ahead of its window on the machine's other one.
fn one_early() -> (Life, i64, i64) {
    let mut life = Life::new(1, 2);
    let first = life.submit(1, job(1, 49));
    let waits = life.submit(1, early(1, 20));
    (life, first, waits)
}

#[track_caller]
fn check_windows(actions: Vec<Action>, expect: (i64, i64, &[u32])) {
    let windows = windows(actions);
    let [PlannedWindow { start, end, cpus, .. }] = &windows[..] else { panic!("{windows:?}") };
    // A round takes a tick of its own.
    let near = |at: miserly_core::Time, second: i64| (at.ticks() - seconds(second).ticks()).abs() < 10;
    assert!(near(*start, expect.0) && near(*end, expect.1) && cpus == expect.2, "{windows:?}");
}

#[test]
fn a_job_is_launched_early_with_its_window() {
    let (life, _, waits) = one_early();
    let actions = life.actions(waits);
    assert!(matches!(&actions[..], [Action::Launch(launch)] if launch.end.is_none()), "{actions:?}");
    check_windows(actions, (50 + CLEANUP, 70 + CLEANUP, &[0]));
}

#[test]
fn a_window_that_does_not_move_is_not_told_again() {
    let (mut life, first, waits) = one_early();
    life.actions(waits);
    life.submit(5, job(1, 5));
    assert!(windows(life.actions(waits)).is_empty());
    life.ask(10, DaemonRequest::Extend { job: first, by: 0.0 }).expect_err("by nothing");
    assert!(windows(life.actions(waits)).is_empty());
    // It begins at once then, which is another action.
    life.end(20, first);
    let actions = life.actions(waits);
    assert!(matches!(&actions[..], [Action::BeginWindow { cpus, .. }] if *cpus == [0]), "{actions:?}");
}

#[test]
fn the_next_daemon_tells_it_again() {
    let (mut life, _, waits) = one_early();
    life.begin(10, &Absence::default());
    check_windows(life.actions(waits), (50 + CLEANUP, 70 + CLEANUP, &[0]));
}

#[test]
fn windows_that_follow_each_other_get_processors_that_are_free_by_then() {
    let mut life = Life::new(2, 4);
    life.submit(1, job(1, 99));
    life.submit(1, job(1, 49));
    let jobs = [early(1, 20), early(1, 20)].map(|submission| life.submit(1, submission));
    // Both after the second one, on its processor.
    check_windows(life.actions(jobs[0]), (50 + CLEANUP, 70 + CLEANUP, &[1]));
    check_windows(life.actions(jobs[1]), (70 + 2 * CLEANUP, 90 + 2 * CLEANUP, &[1]));
}

#[test]
fn a_window_that_began_with_no_daemon_kept_its_promise() {
    let (mut life, first, waits) = one_early();
    let behind = life.submit(2, job(1, 10));
    let promised = life.job(3, behind).promise.expect("miser promises").now.unwrap();
    let outcome = AttemptOutcome::Ended { at: seconds(50), exit: Exit::Code(0), by: None };
    let over = vec![(Attempt { job: first, nth: 1 }, outcome)];
    let attempt = Attempt { job: waits, nth: 1 };
    let end = seconds(70 + CLEANUP);
    let critical = vec![BegunWindow { attempt, cpus: vec![0], end }];
    life.begin(60, &Absence { ended: over, begun: critical, ..Absence::default() });
    let view = life.job(61, waits);
    let Phase::Running(holding) = view.phase else { panic!("{view:?}") };
    assert_eq!((Life::second(holding.end), holding.cpus), (70 + CLEANUP, vec![0]));
    let promise = view.promise.expect("miser promised");
    assert!(view.late.is_none() && promise.at_risk.is_none(), "{promise:?}");
    // Nor does anybody behind it suffer.
    let promise = life.job(62, behind).promise.expect("miser promises");
    assert!(promise.at_risk.is_none() && promise.now.unwrap().start <= promised.start, "{promise:?}");
    assert_eq!(life.unkept(63), 0);
}

#[test]
fn a_command_that_began_later_than_its_window_missed_its_promise() {
    let (mut life, first, waits) = one_early();
    let outcome = AttemptOutcome::Ended { at: seconds(50), exit: Exit::Code(0), by: None };
    let attempt = Attempt { job: waits, nth: 1 };
    let absence = Absence {
        ended: vec![(Attempt { job: first, nth: 1 }, outcome)],
        launched: vec![(attempt, seconds(58 + CLEANUP))],
        begun: vec![BegunWindow { attempt, cpus: vec![0], end: seconds(70 + CLEANUP) }],
        ..Absence::default()
    };
    life.begin(60 + CLEANUP, &absence);
    assert!(life.job(61 + CLEANUP, waits).late.is_some());
    assert_eq!(life.unkept(62 + CLEANUP), 1);
}

#[test]
fn a_job_that_is_in_its_window_on_record_is_as_it_was() {
    let mut life = Life::new(1, 1);
    let number = life.submit(1, job(1, 49));
    let attempt = Attempt { job: number, nth: 1 };
    life.begin(
        10,
        &Absence {
            begun: vec![BegunWindow { attempt, cpus: vec![0], end: seconds(50) }],
            ..Absence::default()
        },
    );
    let actions = life.actions(number);
    let [Action::BeginWindow { cpus, end }, Action::Continue] = &actions[..] else { panic!("{actions:?}") };
    assert!(*cpus == [0] && (end.ticks() - seconds(50).ticks()).abs() < 10, "{actions:?}");
    let Phase::Running(holding) = life.job(11, number).phase else { panic!("it runs") };
    assert_eq!(Life::second(holding.end), 50);
}
