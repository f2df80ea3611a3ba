//! Promises under faults: none is erased, and a late start is recorded with its cause.

use jiff::tz::TimeZone;
use miserly_api::model::{Exit, Judgement, LostBy, Phase, ProblemCode, PromiseChangeReason, Submission};
use miserly_engine::{Absence, Action, Attempt, AttemptOutcome, DaemonRequest, Input, Launch, Now};

use super::life::{Life, cause, early, job, seconds, wall};

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
    Absence { ended: vec![(Attempt { job, nth: 1 }, AttemptOutcome::NeverRan)], ..Absence::default() }
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
        life.begin(6, &never_ran(first));
        let end = launch(&life.actions(first)).end.unwrap();
        assert_eq!(end, seconds(26), "{policy}: its whole time");
        let view = life.job(7, first);
        assert!(matches!(view.phase, Phase::Running(_)), "{policy}");
        let late = view.late.unwrap();
        assert!((4.9..5.1).contains(&late.by), "{policy}: {late:?}");
        let promise = view.promise.unwrap();
        assert_eq!(Life::second(promise.promised.start), 1, "{policy}: the promise stays on record");
        // The one behind it has lost as much, and the cause is known.
        let view = life.job(7, second);
        assert_eq!(cause(&view), Some(PromiseChangeReason::Away), "{policy}");
        let promise = view.promise.unwrap();
        assert_eq!(Life::second(promise.now.unwrap().start), 27, "{policy}");
        let status = life.status(8);
        assert_eq!((status.promises, status.kept, status.late, status.at_risk), (2, 0, 1, 1), "{policy}");
    }
}

/// The second daemon dies at the same step as the first.
#[test]
fn a_job_that_was_not_launched_twice_is_planned_for_its_time_only() {
    for policy in POLICIES {
        let mut life = Life::of_policy(policy, 1, 1);
        let first = life.submit(1, job(1, 20));
        let second = life.submit(2, job(1, 20));
        life.begin(6, &never_ran(first));
        let again = vec![(Attempt { job: first, nth: 2 }, AttemptOutcome::NeverRan)];
        life.actions(first);
        life.begin(9, &Absence { ended: again, ..Absence::default() });
        assert_eq!(launch(&life.actions(first)).end, Some(seconds(29)), "{policy}");
        let promise = life.job(10, second).promise.unwrap();
        assert_eq!(Life::second(promise.now.unwrap().start), 30, "{policy}");
    }
}

/// The daemon was stopped between the record of a start and the launch, and then killed.
#[test]
fn a_late_start_counts_as_late_although_the_job_ended_without_a_daemon() {
    let mut life = Life::new(1, 1);
    let first = Attempt { job: life.submit(1, job(1, 20)), nth: 1 };
    let outcome = AttemptOutcome::Ended { at: seconds(12), exit: Exit::Code(0), by: None };
    let (ended, launched) = (vec![(first, outcome)], vec![(first, seconds(6))]);
    life.begin(15, &Absence { ended, launched, ..Absence::default() });
    let view = life.job(16, first.job);
    assert_eq!(view.phase.started().map(Life::second), Some(6));
    assert_eq!(view.judged.last().map(|judged| judged.judgement), Some(Judgement::Late));
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
    assert_eq!(cause(&life.job(11, first)), Some(PromiseChangeReason::Away));
}

/// The rest of the window is what a deadline leaves. A job that has none left is not run.
#[test]
fn no_window_goes_beyond_a_deadline() {
    let mut life = Life::new(1, 1);
    let due = |second| Submission { deadline: Some(wall(second)), ..job(1, 20) };
    let first = life.submit(1, due(23));
    life.begin(6, &never_ran(first));
    assert_eq!(launch(&life.actions(first)).end, Some(seconds(23)));
    let mut life = Life::new(1, 1);
    let first = life.submit(1, due(23));
    life.begin(24, &never_ran(first));
    assert!(life.actions(first).iter().all(|action| !matches!(action, Action::Launch(_))));
    let Phase::Failed { message, .. } = life.job(25, first).phase else { panic!("it is not run") };
    assert!(message.contains("deadline"), "{message}");
}

/// A job that is not run because its deadline passed leaves its processors to the next ones.
#[test]
fn a_deadline_that_passed_frees_the_processors() {
    for policy in POLICIES {
        let mut life = Life::of_policy(policy, 2, 2);
        let first = life.submit(1, job(2, 10));
        let due = life.submit(1, Submission { deadline: Some(wall(40)), ..job(2, 20) });
        let ended = AttemptOutcome::Ended { at: seconds(11), exit: Exit::Code(0), by: None };
        let first = Attempt { job: first, nth: 1 };
        life.late_turn(Life::now(50), vec![Input::AttemptEnded(first, ended)]);
        assert!(matches!(life.job(50, due).phase, Phase::Failed { .. }), "{policy}");
        let next = [51, 52].map(|second| life.submit(second, job(1, 20)));
        let cpus = next.map(|number| launch(&life.actions(number)).cpus.clone());
        assert_eq!(cpus, [[0], [1]], "{policy}");
    }
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
            let ended = AttemptOutcome::Ended { at: seconds(30), exit: Exit::Code(0), by: None };
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
    assert!(first.late.is_none() && second.promise.unwrap().at_risk.is_none());
}

/// Without slack the launch alone makes a start late. That is no absence of the daemon, up to a quarter of a second.
#[test]
fn a_start_that_only_its_launch_delays_has_that_cause() {
    for policy in POLICIES {
        for (micros, cause) in [
            (0, None),
            (3_000, Some(PromiseChangeReason::Launch)),
            (250_000, Some(PromiseChangeReason::Launch)),
            (250_001, Some(PromiseChangeReason::Away)),
        ] {
            let mut life = Life::of_policy(policy, 1, 1);
            let number = life.submit(1, job(1, 20));
            let launched = seconds(1) + miserly_core::Span::from_ticks(micros);
            life.turn(2, vec![Input::Launched(Attempt { job: number, nth: 1 }, launched)]);
            let late = life.job(3, number).late;
            assert_eq!(late.map(|late| late.why), cause, "{policy}, {micros} us: {late:?}");
            assert_eq!(life.status(3).late, u64::from(cause.is_some()), "{policy}, {micros} us");
        }
    }
}

/// The job was to start long before its promise, and began right behind it.
#[test]
fn a_launch_long_after_the_recorded_start_is_an_absence() {
    for policy in POLICIES {
        let mut life = Life::of_policy(policy, 1, 1);
        let first = life.submit(1, job(1, 20));
        let second = life.submit(1, job(1, 20));
        let promised = life.job(1, second).promise.expect("a promise").promised.start;
        life.end(10, first);
        let launched = seconds(Life::second(promised)) + miserly_core::Span::from_ticks(100_000);
        life.turn(
            Life::second(promised) + 1,
            vec![Input::Launched(Attempt { job: second, nth: 1 }, launched)],
        );
        let late = life.job(30, second).late.expect("it is late");
        assert!(late.why == PromiseChangeReason::Away && late.by < 0.2, "{policy}: {late:?}");
    }
}

/// The shim was stopped before the command began, and the command is so short that both arrive at once.
#[test]
fn a_job_that_began_late_and_has_ended_is_late() {
    for policy in POLICIES {
        let mut life = Life::of_policy(policy, 1, 1);
        let number = life.submit(1, job(1, 20));
        let attempt = Attempt { job: number, nth: 1 };
        let ended = AttemptOutcome::Ended { at: seconds(7), exit: Exit::Code(0), by: None };
        life.turn(7, vec![Input::Launched(attempt, seconds(6)), Input::AttemptEnded(attempt, ended)]);
        let view = life.job(8, number);
        assert!(matches!(view.phase, Phase::Done { .. }), "{policy}: {:?}", view.phase);
        let late = view.late.expect("it was late");
        assert!((4.9..5.1).contains(&late.by) && late.why == PromiseChangeReason::Away, "{policy}: {late:?}");
    }
}

/// The policy must not take a job for ended that is due to end in the batch that reports a late launch.
#[test]
fn a_launch_that_comes_late_is_reported_when_another_job_is_due_to_end() {
    for policy in POLICIES {
        let mut life = Life::of_policy(policy, 2, 2);
        let late = life.submit(1, job(1, 20));
        let ends = life.submit(1, job(1, 6));
        let waits = life.submit(1, job(1, 20));
        let due = life.next_wakeup().expect("a job ends");
        let now = Now { ticks: due, ..Life::now(8) };
        life.late_turn(now, vec![Input::Launched(Attempt { job: late, nth: 1 }, seconds(5))]);
        assert!(life.actions(waits).is_empty(), "{policy}: job {ends} has its processor");
        assert_eq!(cause(&life.job(10, waits)), Some(PromiseChangeReason::Away), "{policy}");
        life.end(11, ends);
        assert!(matches!(&life.actions(waits)[..], [Action::Launch(_)]), "{policy}");
    }
}

/// The daemon is stopped between the record of a start and the launch, and goes on: no other daemon finds it.
#[test]
fn a_window_begins_with_a_launch_that_comes_late() {
    for policy in POLICIES {
        let mut life = Life::of_policy(policy, 1, 1);
        let first = life.submit(1, job(1, 20));
        let second = life.submit(1, job(1, 20));
        let attempt = Attempt { job: first, nth: 1 };
        life.actions(first);
        life.turn(1, vec![Input::Launched(attempt, seconds(1))]);
        assert!(life.actions(first).is_empty(), "{policy}: in time");
        life.turn(9, vec![Input::Launched(attempt, seconds(8))]);
        let actions = life.actions(first);
        assert!(matches!(&actions[..], [Action::EndAt(end)] if *end == seconds(28)), "{policy}: {actions:?}");
        let view = life.job(9, first);
        assert!((6.9..7.1).contains(&view.late.unwrap().by), "{policy}: {:?}", view.late);
        let view = life.job(9, second);
        assert_eq!(cause(&view), Some(PromiseChangeReason::Away), "{policy}");
        let promise = view.promise.unwrap();
        assert_eq!(Life::second(promise.now.unwrap().start), 29, "{policy}");
        life.end(20, first);
        assert!(matches!(life.job(21, second).phase, Phase::Running(_)), "{policy}");
    }
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
        assert_eq!(life.unkept(23), 0);
    }
}

/// It loses its window with its work. What it was promised stays on record.
#[test]
fn a_restartable_job_that_is_lost_in_its_window_is_promised_another() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, Submission { restartable: true, ..job(1, 20) });
    let second = life.submit(1, job(1, 20));
    life.turn(5, vec![lost(first, 1)]);
    let view = life.job(6, first);
    let promise = view.promise.unwrap();
    assert_eq!(promise.history.last().unwrap().why, PromiseChangeReason::Lost);
    assert_eq!((Life::second(promise.promised.start), promise.at_risk), (26, None), "a promise of its own");
    assert_eq!(view.judged.iter().map(|judged| judged.judgement).collect::<Vec<_>>(), [Judgement::Kept]);
    let status = life.status(6);
    assert_eq!((status.promises, status.kept, status.open, status.late), (3, 2, 1, 0));
    assert!(matches!(life.job(6, second).phase, Phase::Running(_)));
}

/// V4 of the audit: a deadline is kept or refused.
#[test]
fn a_policy_that_keeps_no_deadlines_refuses_them() {
    for policy in ["easy", "fcfs", "conservative(keep_reservations=false)", "ss", "easy(order=shortest)"] {
        let mut life = Life::of_policy(policy, 1, 1);
        let due = Submission { deadline: Some(wall(500)), ..job(1, 20) };
        let problem = life.ask(1, DaemonRequest::Submit(due)).unwrap_err();
        assert_eq!(
            (problem.code, problem.field.as_deref()),
            (ProblemCode::Refused, Some("deadline")),
            "{policy}"
        );
        assert!(problem.message.contains("keeps no deadlines; no queue here does"), "{}", problem.message);
    }
}

#[test]
fn a_job_with_a_dependency_and_a_deadline_has_a_promise_or_is_refused() {
    for policy in POLICIES {
        let mut life = Life::of_policy(policy, 1, 1);
        let first = life.submit(1, job(1, 20));
        let after = |second| Submission { after: vec![first], deadline: Some(wall(second)), ..job(1, 20) };
        assert_eq!(life.ask(2, DaemonRequest::Submit(after(30))).unwrap_err().code, ProblemCode::Refused);
        let second = life.submit(2, after(43));
        let promise = life.job(2, second).promise.unwrap();
        assert_eq!(Life::second(promise.now.unwrap().start), 22, "{policy}");
        // A job that is submitted later does not take its room.
        life.submit(3, job(1, 30));
        life.end(10, first);
        assert!(matches!(life.job(11, second).phase, Phase::Running(_)), "{policy}");
    }
}

#[test]
fn no_deadline_is_promised_behind_a_job_whose_end_is_unknown() {
    for policy in POLICIES {
        let mut life = Life::of_policy(policy, 2, 2);
        let held = life.submit(1, Submission { hold: true, ..job(1, 20) });
        let after = Submission { after: vec![held], deadline: Some(wall(500)), ..job(1, 20) };
        let problem = life.ask(2, DaemonRequest::Submit(after)).unwrap_err();
        assert_eq!(problem.code, ProblemCode::Refused, "{policy}");
        assert!(problem.message.contains(&format!("job {held}")), "{}", problem.message);
    }
}

#[test]
fn a_requeue_that_would_miss_the_deadline_is_refused() {
    for policy in POLICIES {
        let mut life = Life::of_policy(policy, 1, 1);
        let due = Submission { deadline: Some(wall(30)), ..job(1, 20) };
        let first = life.submit(1, due);
        life.actions(first);
        let requeue = DaemonRequest::Requeue { job: first, move_promises: false };
        let problem = life.ask(15, requeue.clone()).unwrap_err();
        assert!(problem.message.contains("deadline"), "{}", problem.message);
        assert_eq!(life.actions(first).len(), 0, "{policy}: it runs on");
        assert!(matches!(life.job(16, first).phase, Phase::Running(_)), "{policy}");
        life.begin(17, &Absence::default());
        let mut early = Life::of_policy(policy, 1, 1);
        let first = early.submit(1, Submission { deadline: Some(wall(30)), ..job(1, 20) });
        early.ask(5, DaemonRequest::Requeue { job: first, move_promises: false }).unwrap();
    }
}

/// V5 of the audit: hold and requeue move the promises of jobs that wait only if that was accepted.
#[test]
fn hold_and_requeue_name_the_promises_that_would_move() {
    for policy in POLICIES {
        let mut life = Life::of_policy(policy, 1, 1);
        let first = life.submit(1, job(1, 20));
        let second = life.submit(1, job(1, 20));
        let third = life.submit(1, Submission { after: vec![second], ..job(1, 20) });
        let fourth = life.submit(1, Submission { after: vec![third], ..job(1, 20) });
        let hold = |move_promises| DaemonRequest::Hold { job: second, move_promises };
        let problem = life.ask(2, hold(false)).unwrap_err();
        assert_eq!((problem.code, problem.job), (ProblemCode::Refused, Some(third)), "{policy}");
        assert!(problem.message.contains("and another job with a promise"), "{}", problem.message);
        let start = life.job(2, third).promise.unwrap().now.unwrap().start.to_zoned(TimeZone::system());
        let local = format!("is promised a start by {},", start.strftime("%F %T"));
        assert!(problem.message.contains(&local), "{local}: {}", problem.message);
        assert!(life.job(2, third).promise.unwrap().at_risk.is_none());
        life.ask(3, hold(true)).unwrap();
        for job in [third, fourth] {
            let view = life.job(4, job);
            assert_eq!(cause(&view), Some(PromiseChangeReason::Amended), "{policy}");
            let promise = view.promise.unwrap();
            assert_eq!(promise.now, None, "{policy}");
            assert!(view.planned.is_none(), "{policy}: no plan for the end of time");
        }
        let own = life.job(4, second);
        assert!(own.promise.is_none(), "{policy}: its user gave it up");
        assert_eq!(own.judged[0].judgement, Judgement::Withdrawn, "{policy}");
        life.ask(5, DaemonRequest::Release(second)).unwrap();
        let own = life.job(5, second).promise.unwrap();
        assert_eq!(own.history.last().unwrap().why, PromiseChangeReason::Released, "{policy}");
        let again = life.job(5, third).promise.unwrap();
        assert!(again.now.is_some(), "{policy}: {again:?}");
        let status = life.status(6);
        assert_eq!(
            (status.promises, status.withdrawn, status.at_risk),
            (5, 1, 0),
            "{policy}: the plans are in time again"
        );
        let requeue = DaemonRequest::Requeue { job: first, move_promises: false };
        life.ask(6, requeue).unwrap();
    }
}

/// A job that runs ahead of its window is run again in the same place.
#[test]
fn a_requeue_of_a_job_that_runs_early_moves_no_promise() {
    let mut life = Life::new(1, 2);
    life.submit(1, job(1, 20));
    let second = life.submit(1, early(1, 20));
    let third = life.submit(1, Submission { after: vec![second], ..job(1, 20) });
    let promised = [second, third].map(|job| life.job(2, job).promise);
    life.ask(3, DaemonRequest::Requeue { job: second, move_promises: false }).unwrap();
    life.turn(4, vec![lost(second, 1)]);
    assert_eq!([second, third].map(|job| life.job(4, job).promise), promised);
    assert!(matches!(life.job(4, second).phase, Phase::Opportunistic { parked: false, .. }));
}

/// Promises that moved are stored apart from the records of their jobs.
#[test]
fn the_next_daemon_has_the_promises_that_moved() {
    for policy in POLICIES {
        let mut life = Life::of_policy(policy, 1, 1);
        let jobs: Vec<i64> = (0..6).map(|_| life.submit(1, job(1, 20))).collect();
        let promises = |life: &mut Life, second| -> Vec<_> {
            jobs[1..].iter().map(|job| life.job(second, *job).promise.unwrap()).collect()
        };
        let before = promises(&mut life, 2);
        life.end(5, jobs[0]);
        let moved = promises(&mut life, 6);
        assert!(before.iter().zip(&moved).all(|(before, moved)| moved.now != before.now), "{policy}");
        life.begin(7, &Absence::default());
        assert_eq!(promises(&mut life, 7), moved, "{policy}");
        assert!(life.unkept(7) == 0, "{policy}");
        // The next start is where the last promise had it.
        life.end(9, jobs[1]);
        assert!(matches!(life.job(10, jobs[2]).phase, Phase::Running(_)), "{policy}");
    }
}
