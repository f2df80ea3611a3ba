//! Signals and pauses of running jobs.

use miserly_api::model::{EarlySignal, JobSignal, Phase, ProblemCode, SignalRequest, Submission};
use miserly_engine::{Absence, Action, Caller, DaemonRequest, SentSignal};

use super::life::{Life, early, job};

const USR1: SignalRequest = SignalRequest { signal: JobSignal::Usr1, main: false };

fn signals(life: &Life, job: i64) -> Vec<u32> {
    let nth = |action: &Action| match action {
        Action::Signal(SentSignal { nth, request: USR1 }) => Some(*nth),
        _ => None,
    };
    life.actions(job).iter().filter_map(nth).collect()
}

fn code(life: &mut Life, second: i64, question: DaemonRequest) -> ProblemCode {
    life.ask(second, question).unwrap_err().code
}

#[test]
fn each_signal_has_a_number_of_its_own_and_the_last_one_is_sent_again() {
    let mut life = Life::new(1, 1);
    let running = life.submit(1, job(1, 20));
    let waiting = life.submit(1, job(1, 20));
    let signal = |job| DaemonRequest::Signal { job, signal: USR1 };
    for _ in 0..2 {
        life.ask(2, signal(running)).unwrap();
    }
    assert_eq!(signals(&life, running), [1, 2]);
    // The next daemon sends the last one again. A shim that has it does nothing.
    life.begin(3, &Absence::default());
    assert_eq!(signals(&life, running), [2]);
    assert_eq!(code(&mut life, 4, signal(waiting)), ProblemCode::Conflict);
    assert_eq!(code(&mut life, 4, signal(99)), ProblemCode::NotFound);
    let other = life.ask_as(Caller::new(7), 4, signal(running)).unwrap_err();
    assert_eq!(other.code, ProblemCode::Forbidden);
    life.ask(5, DaemonRequest::Cancel { job: running, array: false }).unwrap();
    assert_eq!(code(&mut life, 5, signal(running)), ProblemCode::Conflict);
}

#[test]
fn a_paused_job_keeps_its_window_and_stays_stopped_under_the_next_daemon() {
    let mut life = Life::new(1, 1);
    let running = life.submit(1, job(1, 20));
    let waiting = life.submit(1, job(1, 20));
    let before = life.job(1, waiting).promise;
    life.actions(running);
    let pause = |on| DaemonRequest::Pause { job: running, on };
    life.ask(2, pause(true)).unwrap();
    assert!(matches!(&life.actions(running)[..], [Action::Stop]));
    let view = life.job(2, running);
    assert!(view.paused && matches!(view.phase, Phase::Running(_)));
    assert_eq!(life.job(2, waiting).promise, before);
    assert_eq!(code(&mut life, 2, pause(true)), ProblemCode::Conflict);
    life.begin(3, &Absence::default());
    let actions = life.actions(running);
    assert!(matches!(&actions[..], [Action::BeginWindow { .. }, Action::Stop]), "{actions:?}");
    life.ask(4, pause(false)).unwrap();
    assert!(matches!(&life.actions(running)[..], [Action::BeginWindow { .. }, Action::Continue]));
    assert!(!life.job(4, running).paused);
    assert_eq!(code(&mut life, 4, pause(false)), ProblemCode::Conflict);
}

#[test]
fn a_queue_may_forbid_pauses() {
    let mut life = Life::new(1, 1);
    let running = life.submit(1, job(1, 20));
    life.ask(2, DaemonRequest::Pause { job: running, on: true }).unwrap();
    life.setup.queues[0].terms.pause = false;
    life.reread(3);
    // A paused job continues all the same.
    life.ask(3, DaemonRequest::Pause { job: running, on: false }).unwrap();
    assert_eq!(code(&mut life, 3, DaemonRequest::Pause { job: running, on: true }), ProblemCode::Refused);
}

#[test]
fn a_job_ahead_of_its_window_is_not_paused() {
    let mut life = Life::new(1, 2);
    life.submit(1, job(1, 20));
    let ahead = life.submit(1, early(1, 20));
    assert!(matches!(life.job(1, ahead).phase, Phase::Opportunistic { .. }));
    assert_eq!(code(&mut life, 2, DaemonRequest::Pause { job: ahead, on: true }), ProblemCode::Conflict);
}

#[test]
fn a_suspended_job_that_was_paused_stays_stopped_when_its_policy_resumes_it() {
    let mut life = Life::of_policy("immediate(policy=fcfs-backfill, quantum=30s, after=0s)", 1, 1);
    let victim = life.submit(1, job(1, 20));
    life.ask(2, DaemonRequest::Pause { job: victim, on: true }).unwrap();
    life.submit(5, job(1, 60));
    life.actions(victim);
    life.turn(36, vec![]);
    let actions = life.actions(victim);
    assert!(matches!(&actions[..], [Action::BeginWindow { .. }, Action::Stop]), "{actions:?}");
}

#[test]
fn an_early_signal_comes_a_valid_time_before_the_end() {
    let mut life = Life::new(1, 1);
    let early = |before| EarlySignal { signal: JobSignal::Usr1, main: false, before };
    for (before, valid) in [(0.0, true), (5.0, true), (-1.0, false), (f64::NAN, false), (1e300, false)] {
        let submission = Submission { signal: Some(early(before)), hold: true, ..job(1, 5) };
        let reply = life.ask(1, DaemonRequest::Submit(submission));
        assert_eq!(reply.is_ok(), valid, "{before}: {reply:?}");
    }
}
