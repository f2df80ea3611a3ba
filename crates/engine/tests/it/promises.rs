//! Promises under faults: none is erased, and a late start is recorded with its cause.

use miserly_api::model::{LostBy, Phase, PromiseChangeReason, Submission};
use miserly_engine::{Absence, Action, Attempt, AttemptOutcome, Input, Launch};

use super::life::{Life, early, job, seconds, wall};

const POLICIES: [&str; 2] = ["miser", "conservative"];

/// Returns the only launch among some actions.
#[track_caller]
fn launch(actions: &[Action]) -> &Launch {
    let launches: Vec<&Launch> = actions
        .iter()
        .filter_map(|action| match action {
            Action::Launch(launch) => Some(&**launch),
            _ => None,
        })
        .collect();
    let [launch] = launches[..] else { panic!("one launch: {actions:?}") };
    launch
}

/// Returns what an absent daemon finds: this attempt was recorded and never launched.
fn never_ran(job: i64) -> Absence {
    Absence { ended: vec![(Attempt { job, nth: 1 }, AttemptOutcome::NeverRan)], begun: vec![] }
}

fn lost(job: i64, nth: u32) -> Input {
    Input::AttemptEnded(Attempt { job, nth }, AttemptOutcome::Lost(LostBy::Shim))
}

/// V1 of the audit: the daemon dies between the record of a start and the launch.
#[test]
fn the_window_of_a_job_that_was_never_launched_begins_with_it() {
    for policy in POLICIES {
        let mut life = Life::of_policy(policy, 1, 1);
        let first = life.submit(1, job(1, 20));
        let second = life.submit(2, job(1, 20));
        life.begin(6, never_ran(first));
        let end = launch(&life.actions(first)).end.unwrap();
        assert_eq!(end, seconds(26), "{policy}: its whole time");
        let view = life.job(7, first);
        assert!(matches!(view.phase, Phase::Running(_)), "{policy}");
        let late = view.late.unwrap();
        assert!((4.9..5.1).contains(&late.by), "{policy}: {late:?}");
        let promise = view.promise.unwrap();
        assert_eq!(promise.broken, Some(PromiseChangeReason::Away), "{policy}");
        assert_eq!(Life::second(promise.promised.start), 1, "{policy}: the first promise is kept on record");
        // The one behind it has lost as much, and the cause is known.
        let promise = life.job(7, second).promise.unwrap();
        assert_eq!(promise.broken, Some(PromiseChangeReason::Away), "{policy}");
        assert_eq!(Life::second(promise.now.unwrap().start), 27, "{policy}");
        let status = life.status(8);
        assert_eq!((status.promises, status.kept, status.broken, status.late), (2, 0, 2, 1), "{policy}");
    }
}

/// It happens while the daemon runs, too: the disk was full at the launch.
#[test]
fn a_launch_that_failed_for_lack_of_room_keeps_its_place() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, job(1, 20));
    let second = life.submit(2, job(1, 20));
    let given_up = Input::AttemptEnded(Attempt { job: first, nth: 1 }, AttemptOutcome::NeverRan);
    life.actions(first);
    life.turn(4, vec![given_up]);
    assert_eq!(launch(&life.actions(first)).end, Some(seconds(24)));
    life.end_attempt(10, Attempt { job: first, nth: 2 });
    assert!(matches!(life.job(11, second).phase, Phase::Running(_)));
    assert_eq!(life.job(11, first).promise.unwrap().broken, Some(PromiseChangeReason::Away));
}

/// The rest of the window is what a deadline leaves. A job that has none left is not run.
#[test]
fn no_window_goes_beyond_a_deadline() {
    let mut life = Life::new(1, 1);
    let due = |second| Submission { deadline: Some(wall(second)), ..job(1, 20) };
    let first = life.submit(1, due(23));
    life.begin(6, never_ran(first));
    assert_eq!(launch(&life.actions(first)).end, Some(seconds(23)));
    let mut life = Life::new(1, 1);
    let first = life.submit(1, due(23));
    life.begin(24, never_ran(first));
    assert!(life.actions(first).iter().all(|action| !matches!(action, Action::Launch(_))));
    let Phase::Failed { message, .. } = life.job(25, first).phase else { panic!("it is not run") };
    assert!(message.contains("deadline"), "{message}");
}

/// V2 of the audit: the daemon is stopped over a start.
#[test]
fn a_daemon_that_stalls_over_a_start_backdates_nothing() {
    for policy in ["miser", "conservative", "easy", "fcfs"] {
        for stall in [3, 40] {
            let mut life = Life::of_policy(policy, 1, 1);
            let first = life.submit(1, job(1, 9));
            let second = life.submit(1, job(1, 20));
            life.actions(second);
            // Without the stall, the second starts at 11, when the first has certainly ended.
            life.end(10, first);
            let third = life.submit(10, job(1, 20));
            assert!(matches!(life.job(10, second).phase, Phase::Running(_)), "{policy}");
            let now = Life::now(31 + stall);
            let ended = AttemptOutcome::Ended {
                at: seconds(30),
                exit: miserly_api::model::Exit::Code(0),
                by: None,
            };
            life.late_turn(now, vec![Input::AttemptEnded(Attempt { job: second, nth: 1 }, ended)]);
            let end = launch(&life.actions(third)).end.unwrap();
            assert_eq!((end - seconds(31 + stall + 20)).ticks().abs(), 0, "{policy}");
            let view = life.job(31 + stall, third);
            let Phase::Running(window) = view.phase else { panic!("{policy}: {:?}", view.phase) };
            assert_eq!(Life::second(window.start), 31 + stall, "{policy}");
            if POLICIES.contains(&policy) {
                assert_eq!(view.late.unwrap().why, PromiseChangeReason::Away, "{policy}");
            }
        }
    }
}

/// A short delay moves no window of others: the cleanup time absorbs it.
#[test]
fn a_short_delay_costs_a_job_nothing() {
    let mut life = Life::new(1, 1);
    let begin = Submission { begin: Some(wall(10)), ..job(1, 20) };
    let first = life.submit(1, begin);
    let second = life.submit(1, job(1, 20));
    let mut now = Life::now(10);
    now.ticks = seconds(10) + miserly_core::Span::from_ticks(200_000);
    life.late_turn(now, vec![]);
    assert_eq!(launch(&life.actions(first)).end, Some(seconds(30) + miserly_core::Span::from_ticks(200_000)));
    let [first, second] = [first, second].map(|job| life.job(11, job));
    assert!(first.late.is_none() && second.promise.unwrap().broken.is_none());
}

/// V6 of the audit: running ahead of its window costs a job nothing when its shim dies.
#[test]
fn a_restartable_job_that_ran_early_keeps_its_promise_when_its_shim_dies() {
    for parked in [false, true] {
        let mut life = Life::new(1, 2);
        let first = life.submit(1, job(1, 20));
        let restartable = Submission { restartable: true, ..early(1, 20) };
        let second = life.submit(1, restartable);
        let promised = life.job(1, second).promise.unwrap();
        assert!(matches!(life.job(2, second).phase, Phase::Opportunistic { .. }));
        let at = if parked { 20 } else { 5 };
        life.turn(at, vec![]);
        let phase = life.job(at, second).phase;
        assert!(matches!(phase, Phase::Opportunistic { parked: is, .. } if is == parked), "{phase:?}");
        life.actions(second);
        life.turn(at, vec![lost(second, 1)]);
        assert_eq!(life.job(at, second).promise.unwrap(), promised);
        if !parked {
            assert_eq!(launch(&life.actions(second)).end, None, "it runs early again");
        }
        life.end(21, first);
        let view = life.job(23, second);
        assert!(matches!(view.phase, Phase::Running(_)) && view.late.is_none(), "{view:?}");
        assert_eq!(life.status(23).broken, 0);
    }
}

/// It loses its window with its work. What it was promised stays on record.
#[test]
fn a_restartable_job_that_is_lost_in_its_window_is_promised_another() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, Submission { restartable: true, ..job(1, 20) });
    let second = life.submit(1, job(1, 20));
    life.turn(5, vec![lost(first, 1)]);
    let promise = life.job(6, first).promise.unwrap();
    assert_eq!(promise.broken, Some(PromiseChangeReason::Lost));
    assert_eq!(Life::second(promise.promised.start), 1);
    let status = life.status(6);
    assert_eq!((status.promises, status.kept, status.broken), (2, 1, 1));
    assert!(matches!(life.job(6, second).phase, Phase::Running(_)));
}
