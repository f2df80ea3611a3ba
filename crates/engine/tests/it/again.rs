//! Resync: the next daemon resends the durable state, which may not have arrived.

use miserly_api::model::{Exit, Filter, KilledBy, LostBy, Phase, Submission};
use miserly_engine::{
    Absence, Action, Attempt, AttemptOutcome, Caller, DaemonReply, DaemonRequest, Input, Usage,
};

use super::life::{Life, job, seconds};

fn kills(actions: &[Action]) -> usize {
    actions.iter().filter(|action| matches!(action, Action::Kill { .. })).count()
}

#[test]
fn a_job_that_was_cancelled_early_is_ended_by_the_next_daemon_too() {
    let mut life = Life::new(1, 2);
    life.submit(1, job(1, 20));
    let early = life.submit(1, Submission { no_opportunistic: false, ..job(1, 20) });
    life.ask(2, DaemonRequest::Cancel { job: early, array: false }).unwrap();
    life.begin(3, &Absence::default());
    let actions = life.actions(early);
    assert!(matches!(&actions[..], [Action::Kill { .. }]), "{actions:?}");
}

#[test]
fn a_cancel_that_is_repeated_is_told_again() {
    let mut life = Life::new(1, 1);
    let number = life.submit(1, job(1, 20));
    for _ in 0..2 {
        life.actions(number);
        life.ask(2, DaemonRequest::Cancel { job: number, array: false }).unwrap();
        assert_eq!(kills(&life.actions(number)), 1);
    }
}

#[test]
fn a_restartable_job_that_is_lost_while_it_is_cancelled_is_cancelled() {
    let mut life = Life::new(1, 1);
    let number = life.submit(1, Submission { restartable: true, ..job(1, 20) });
    life.ask(2, DaemonRequest::Cancel { job: number, array: false }).unwrap();
    let lost = AttemptOutcome::Lost(LostBy::Shim);
    life.turn(3, vec![Input::AttemptEnded(Attempt { job: number, nth: 1 }, lost)]);
    let phase = life.job(3, number).phase;
    assert!(matches!(phase, Phase::Killed { by: KilledBy::User, exit: None, .. }), "{phase:?}");
}

/// The executor starts no job again that ended by itself.
#[test]
fn a_job_that_ended_by_itself_before_its_requeue_ended_it_has_ended() {
    let mut life = Life::new(1, 1);
    let number = life.submit(1, job(1, 20));
    life.ask(2, DaemonRequest::Requeue { job: number, move_promises: false }).unwrap();
    life.end(3, number);
    let view = life.job(3, number);
    assert!(matches!(view.phase, Phase::Done { exit: Exit::Code(0), .. }), "{:?}", view.phase);
    assert_eq!(view.attempts, 1);
}

#[test]
fn a_job_that_was_resumed_goes_on_under_the_next_daemon() {
    let mut life = Life::of_policy("immediate(policy=fcfs-backfill, quantum=30s, after=0s)", 1, 1);
    let victim = life.submit(1, job(1, 20));
    life.submit(5, job(1, 60));
    life.turn(36, vec![]);
    life.begin(37, &Absence::default());
    let actions = life.actions(victim);
    assert!(matches!(&actions[..], [Action::BeginWindow { .. }, Action::Continue]), "{actions:?}");
}

#[test]
fn a_job_that_was_suspended_is_stopped_by_the_next_daemon_until_it_goes_on() {
    let mut life = Life::of_policy("immediate(policy=fcfs-backfill, quantum=30s, after=0s)", 1, 1);
    let victim = life.submit(1, job(1, 20));
    life.submit(5, job(1, 60));
    let before = life.actions(victim);
    life.begin(6, &Absence::default());
    let actions = life.actions(victim);
    let [Action::Stop, Action::EndIfOrphaned { end, .. }] = &actions[..] else { panic!("{actions:?}") };
    assert!(
        matches!(&before[..], [.., Action::Stop, Action::EndIfOrphaned { end: first, .. }] if first == end),
        "{before:?}"
    );
    // It is its turn while nobody is there: it is not stopped first.
    life.begin(37, &Absence::default());
    let actions = life.actions(victim);
    assert!(matches!(&actions[..], [Action::BeginWindow { .. }, Action::Continue]), "{actions:?}");
}

#[test]
fn a_longer_window_is_told_by_the_next_daemon() {
    let mut life = Life::new(1, 1);
    let number = life.submit(1, job(1, 20));
    life.ask(2, DaemonRequest::Extend { job: number, by: 50.0 }).unwrap();
    life.begin(3, &Absence::default());
    let actions = life.actions(number);
    let [Action::BeginWindow { cpus, end }, Action::Continue] = &actions[..] else { panic!("{actions:?}") };
    assert!(*cpus == [0] && (end.ticks() - seconds(71).ticks()).abs() < 10, "{actions:?}");
}

#[test]
fn a_hand_over_that_is_changed_moves_no_end_of_a_job_that_runs() {
    let mut life = Life::new(1, 1);
    let number = life.submit(1, job(1, 20));
    let Phase::Running(before) = life.job(2, number).phase else { panic!("it runs") };
    life.cleanup_time(10);
    life.begin(3, &Absence::default());
    let Phase::Running(holding) = life.job(4, number).phase else { panic!("it runs") };
    assert_eq!(holding, before);
    life.actions(number);
    life.ask(5, DaemonRequest::Extend { job: number, by: 4.0 }).unwrap();
    let actions = life.actions(number);
    assert!(
        matches!(&actions[..], [Action::EndAt(end)] if (end.ticks() - seconds(25).ticks()).abs() < 10),
        "{actions:?}"
    );
}

#[test]
fn what_the_attempts_of_a_job_used_adds_up() {
    let mut life = Life::new(1, 1);
    let number = life.submit(1, Submission { restartable: true, ..job(1, 20) });
    let used = |user| Usage { user, memory_peak: Some(user), stops: 1, ..Usage::default() };
    let first = Attempt { job: number, nth: 1 };
    let lost = Input::AttemptEnded(first, AttemptOutcome::Lost(LostBy::Shim));
    life.turn(2, vec![Input::Used(first, used(3_000_000)), lost]);
    // The next daemon finds the second attempt ended, and reports the first one once more.
    let second = Attempt { job: number, nth: 2 };
    let ended = AttemptOutcome::Ended { at: seconds(4), exit: Exit::Code(0), by: None };
    let used = vec![(first, used(3_000_000)), (second, used(1_000_000))];
    life.begin(5, &Absence { ended: vec![(second, ended)], used, ..Absence::default() });
    let view = life.job(6, number);
    let usage = view.usage.clone().unwrap();
    assert_eq!((usage.total.user, usage.total.memory_peak, usage.total.stops), (4.0, Some(3_000_000), 2));
    assert_eq!(usage.attempts.iter().map(|one| one.attempt).collect::<Vec<_>>(), [1, 2]);
    // Others do not see it, and lists do not have it.
    let other = life.ask_as(Caller::new(4000), 6, DaemonRequest::Job(number)).unwrap();
    assert!(matches!(other, DaemonReply::Job(view) if view.usage.is_none()));
    let filter = |details| DaemonRequest::Jobs(Filter { all: true, details, ..Filter::default() });
    for details in [false, true] {
        let DaemonReply::Jobs(jobs) = life.ask(6, filter(details)).unwrap() else { panic!("no list") };
        assert_eq!(jobs[0].usage, view.usage.clone().filter(|_| details));
    }
}
