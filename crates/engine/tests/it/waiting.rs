//! Shims that wait for the windows of promised jobs.

use miserly_api::model::{Exit, KilledBy, Phase, PromiseChangeReason};
use miserly_core::Span;
use miserly_engine::{
    Absence, Action, Attempt, AttemptOutcome, BegunWindow, DaemonRequest, Input, WaitingShimLimits,
};

use super::life::{CLEANUP, Life, job, seconds};

/// A job until 50 s that has both processors, and three of 20 s behind it. Shims wait for two windows on each processor.
fn waiting() -> (Life, [i64; 4]) {
    let mut life = Life::new(2, 2);
    life.setup.waiting_shims = WaitingShimLimits { most: 256, per_cpu: 2 };
    life.begin(0, &Absence::default());
    let jobs = [49, 20, 20, 20].map(|time| life.submit(1, job(2, time)));
    (life, jobs)
}

#[track_caller]
fn check_launch(life: &Life, job: i64, start: i64, after: i64) {
    let actions = life.actions(job);
    let [Action::Launch(launch)] = &actions[..] else { panic!("{actions:?}") };
    let window = launch.planned_window.as_ref().expect("a window");
    assert!(launch.waits && launch.end.is_none() && launch.cpus.is_empty(), "{launch:?}");
    assert!((window.start.ticks() - seconds(start).ticks()).abs() < 10, "{window:?}");
    assert_eq!((&window.cpus[..], &window.after[..]), (&[0, 1][..], &[Attempt { job: after, nth: 1 }][..]));
}

#[test]
fn shims_wait_for_the_next_windows_of_each_processor() {
    let (mut life, [first, one, two, three]) = waiting();
    check_launch(&life, one, 50 + CLEANUP, first);
    check_launch(&life, two, 70 + 2 * CLEANUP, one);
    assert!(life.actions(three).is_empty());
    let status = life.status(2);
    assert_eq!(status.waiting_shims, 2);
    assert_eq!(status.needs_daemon_from.map(Life::second), Some(90 + 3 * CLEANUP));
    let view = life.job(2, one);
    assert_eq!((view.phase, view.attempts), (Phase::Queued, 0));
}

#[test]
fn the_window_of_a_waiting_shim_begins_as_its_first_attempt() {
    let (mut life, [first, one, _, three]) = waiting();
    life.actions(one);
    life.end(30, first);
    let actions = life.actions(one);
    assert!(matches!(&actions[..], [Action::BeginWindow { cpus, .. }] if *cpus == [0, 1]), "{actions:?}");
    let view = life.job(31, one);
    assert!(matches!(view.phase, Phase::Running(_)) && view.attempts == 1, "{view:?}");
    // The next one gets its shim.
    assert!(
        life.actions(three).iter().any(|action| matches!(action, Action::Launch(launch) if launch.waits))
    );
}

#[test]
fn a_window_that_began_without_a_daemon_is_that_of_its_job() {
    let (mut life, [first, one, two, _]) = waiting();
    let (attempt, started) = (Attempt { job: one, nth: 1 }, seconds(50 + CLEANUP));
    let ended = AttemptOutcome::Ended { at: seconds(50), exit: Exit::Code(0), by: None };
    let meanwhile = Absence {
        ended: vec![(Attempt { job: first, nth: 1 }, ended)],
        launched: vec![(attempt, started)],
        begun: vec![BegunWindow { attempt, cpus: vec![0, 1], end: seconds(70 + CLEANUP) }],
        ..Absence::default()
    };
    life.begin(60, &meanwhile);
    let Phase::Running(holding) = life.job(60, one).phase else { panic!("it runs") };
    assert_eq!(Life::second(holding.start), 50 + CLEANUP);
    assert!(matches!(life.job(60, two).phase, Phase::Queued));
    assert_eq!(life.unkept(60), 0);
}

/// Whether a daemon is there makes no difference: the shim woke up late.
#[test]
fn a_window_that_began_late_without_a_daemon_has_the_launch_as_its_cause() {
    for (micros, cause) in [(3_000, PromiseChangeReason::Launch), (3_000_000, PromiseChangeReason::Away)] {
        for has_ended in [false, true] {
            let (mut life, [first, one, ..]) = waiting();
            let promised = life.job(2, one).promise.expect("a promise").promised.start;
            let attempt = Attempt { job: one, nth: 1 };
            let started = seconds(50 + CLEANUP) + Span::from_ticks(micros);
            let ended = |at, job| {
                let ended = AttemptOutcome::Ended { at: seconds(at), exit: Exit::Code(0), by: None };
                (Attempt { job, nth: 1 }, ended)
            };
            let begun = BegunWindow { attempt, cpus: vec![0, 1], end: seconds(70 + CLEANUP) };
            let meanwhile = Absence {
                ended: [ended(50, first)].into_iter().chain(has_ended.then(|| ended(58, one))).collect(),
                launched: vec![(attempt, started)],
                begun: if has_ended { vec![] } else { vec![begun] },
                ..Absence::default()
            };
            life.begin(60, &meanwhile);
            let view = life.job(60, one);
            let late = view.late.expect("the promise has no slack");
            assert_eq!(late.why, cause, "{has_ended}: promised by {promised}, {late:?}");
        }
    }
}

/// The number of shims is bounded, and not the time until their windows begin: an early end is cheap.
#[test]
fn an_early_end_sends_each_waiting_shim_one_window_at_most() {
    let mut life = Life::new(8, 8);
    life.setup.waiting_shims = WaitingShimLimits { most: 256, per_cpu: 2 };
    life.begin(0, &Absence::default());
    let running = [50, 51, 52, 53, 54, 55, 56, 57].map(|time| life.submit(1, job(1, time)));
    let waiting: Vec<i64> = (20..36).map(|time| life.submit(1, job(1, time))).collect();
    for job in &waiting {
        life.actions(*job);
    }
    assert_eq!(life.status(2).waiting_shims, 16);
    life.end(10, running[0]);
    let sent: Vec<usize> = waiting.iter().map(|job| life.actions(*job).len()).collect();
    assert!(sent.iter().all(|sent| *sent <= 1) && sent.iter().sum::<usize>() > 1, "{sent:?}");
}

#[test]
fn held_starts_withdraw_the_shims_until_the_next_daemon() {
    let (mut life, [_, one, two, _]) = waiting();
    for job in [one, two] {
        life.actions(job);
    }
    life.ask(2, DaemonRequest::HoldStarts(true)).unwrap();
    for job in [one, two] {
        let actions = life.actions(job);
        assert!(matches!(actions[0], Action::Withdraw), "{actions:?}");
        life.turn(3, vec![Input::AttemptEnded(Attempt { job, nth: 1 }, AttemptOutcome::NeverRan)]);
    }
    assert_eq!(life.status(4).waiting_shims, 0);
    assert_eq!(life.status(4).needs_daemon_from.map(Life::second), Some(50 + CLEANUP));
    life.begin(5, &Absence::default());
    assert_eq!(life.status(5).waiting_shims, 2);
}

#[test]
fn a_job_whose_shims_fail_gets_no_more_of_them() {
    let (mut life, [_, one, ..]) = waiting();
    for nth in 1..=3 {
        assert!(life.actions(one).iter().any(|action| matches!(action, Action::Launch(_))), "{nth}");
        let second = 1 + i64::from(nth);
        life.turn(second, vec![Input::AttemptEnded(Attempt { job: one, nth }, AttemptOutcome::NeverRan)]);
    }
    assert!(!life.actions(one).iter().any(|action| matches!(action, Action::Launch(_))));
    assert_eq!(life.status(5).needs_daemon_from.map(Life::second), Some(50 + CLEANUP));
}

#[test]
fn a_command_that_a_withdrawn_shim_began_is_a_start_of_its_job_only_if_it_ends_by_itself() {
    for by in [None, Some(KilledBy::User)] {
        let (mut life, [first, one, two, three]) = waiting();
        for other in [two, three] {
            life.ask(2, DaemonRequest::Cancel { job: other, array: false }).unwrap();
        }
        life.ask(2, DaemonRequest::Hold { job: one, move_promises: true }).unwrap();
        let shim = Attempt { job: one, nth: 1 };
        life.turn(3, vec![Input::Launched(shim, seconds(3))]);
        let outcome = AttemptOutcome::Ended { at: seconds(4), exit: Exit::Code(0), by };
        life.turn(4, vec![Input::AttemptEnded(shim, outcome)]);
        let started = if by.is_none() {
            3
        } else {
            assert_eq!(life.job(5, one).phase, Phase::Held);
            life.end(6, first);
            life.ask(7, DaemonRequest::Release(one)).unwrap();
            7
        };
        assert_eq!(life.job(8, one).phase.started().map(Life::second), Some(started));
    }
}
