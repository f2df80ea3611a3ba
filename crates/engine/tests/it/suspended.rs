//! Jobs that are suspended for others.

use miserly_api::model::{Exit, LostBy, Phase, Submission};
use miserly_engine::{Absence, Action, Attempt, AttemptOutcome, DaemonRequest, Input};

use super::life::{CLEANUP, Life, job, seconds};

/// A job that is suspended for another at 5 s, for 30 s at most; and the other.
fn one_for_another() -> (Life, i64, i64) {
    let mut life = Life::of_policy("immediate(policy=fcfs-backfill, quantum=30s, after=0s)", 1, 1);
    let victim = life.submit(1, job(1, 20));
    life.actions(victim);
    let newcomer = life.submit(5, job(1, 60));
    assert!(matches!(life.job(6, victim).phase, Phase::Suspended(_)));
    (life, victim, newcomer)
}

#[test]
fn its_window_does_not_end_while_it_is_suspended() {
    let (life, victim, _) = one_for_another();
    let actions = life.actions(victim);
    let [Action::Stop, Action::EndIfOrphaned { end, left }] = &actions[..] else { panic!("{actions:?}") };
    // It may go on at 35 s, or by itself a minute later, and has 16 s left.
    assert!(*end >= seconds(35 + 60 + 16 - CLEANUP), "{end:?}");
    assert_eq!(left.ticks() / 1_000_000, 16);
}

#[test]
fn it_can_be_cancelled_and_the_other_runs_on() {
    let (mut life, victim, newcomer) = one_for_another();
    life.ask(10, DaemonRequest::Cancel { job: victim, array: false }).expect("it can be cancelled");
    life.end(12, victim);
    assert!(matches!(life.job(13, victim).phase, Phase::Killed { .. }));
    life.end(20, newcomer);
    assert!(matches!(life.job(21, newcomer).phase, Phase::Done { .. }));
}

#[test]
fn it_may_end_while_no_daemon_keeps_it_stopped() {
    let (mut life, victim, newcomer) = one_for_another();
    let outcome = AttemptOutcome::Ended { at: seconds(15), exit: Exit::Code(7), by: None };
    let over = vec![(Attempt { job: victim, nth: 1 }, outcome)];
    life.begin(20, &Absence { ended: over, ..Absence::default() });
    assert!(matches!(life.job(21, victim).phase, Phase::Done { exit: Exit::Code(7), .. }));
    assert!(matches!(life.job(22, newcomer).phase, Phase::Running(_)));
}

/// After a reboot the newcomer is displaced, starts, and is suspended for the victim in one round.
#[test]
fn it_is_launched_when_it_resumes_if_its_displaced_attempt_is_gone() {
    let mut life = Life::of_policy("immediate(policy=fcfs-backfill, quantum=30s, after=0s)", 1, 1);
    let first = life.submit(1, Submission { restartable: true, ..job(1, 50) });
    let second = life.submit(5, job(1, 50));
    let attempt = |job, nth| Attempt { job, nth };
    let ended = vec![
        (attempt(first, 1), AttemptOutcome::Lost(LostBy::Reboot)),
        (attempt(second, 1), AttemptOutcome::NeverRan),
    ];
    life.begin(46, &Absence { ended, ..Absence::default() });
    life.turn(47, vec![Input::AttemptEnded(attempt(second, 2), AttemptOutcome::NeverRan)]);
    life.actions(second);
    life.end_attempt(60, attempt(first, 2));
    let actions = life.actions(second);
    assert!(matches!(&actions[..], [Action::Launch(_)]), "{actions:?}");
}
