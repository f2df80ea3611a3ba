//! Tests of the loop and of the take-up on a machine without processes.

mod fake;

mod start;

use std::time::Duration;

use miserly_core::{Span, Time};
use miserly_engine::{Action, Attempt, AttemptOutcome, BEGIN_DELAY, BegunWindow, Launch};
use miserly_executor::{LaunchFailure, LaunchFailureKind};
use miserly_launch::{Exit, ShimCommand};

use self::fake::{FakeAttempt, FakeDaemon, FakeHost, FakeSupervisor};
use crate::attempt::Begin;
use crate::convert::duration;
use crate::message::{AttemptMessage, LoopMessage};
use crate::site::Host;
use crate::take_up::take_up;

const SECOND: Duration = Duration::from_secs(1);

fn attempt(job: i64) -> Attempt {
    Attempt { job, nth: 1 }
}

fn launch() -> Box<Launch> {
    let (name, queue, configured_queue) = <_>::default();
    let (array, credential, error, memory, gpus, planned_window, limit) = <_>::default();
    Box::new(Launch {
        submission: <_>::default(),
        name,
        queue,
        configured_queue,
        array,
        uid: 0,
        credential,
        output: "out".into(),
        append: false,
        waits: false,
        restart: false,
        ordinal: 1,
        error,
        memory,
        strict: false,
        gpus,
        cpus: vec![1],
        end: Some(Time::from_ticks(3_600_000_000)),
        planned_window,
        grace: Span::from_ticks(2_000_000),
        cleanup_time: Span::ZERO,
        orphan_resume_delay: Span::ZERO,
        idle: None,
        limit,
    })
}

/// Returns a daemon that has been given the launch of attempt 1.
fn launching() -> FakeDaemon {
    let mut daemon = FakeDaemon::new();
    daemon.handle(LoopMessage::Begin(attempt(1), Begin::Launch(launch())));
    daemon
}

fn shortage() -> LaunchFailure {
    LaunchFailure { kind: LaunchFailureKind::Temporary, message: "no space".to_owned() }
}

fn act(daemon: &mut FakeDaemon, action: Action) {
    daemon.handle(LoopMessage::To(attempt(1), AttemptMessage::Do(action)));
}

#[test]
fn a_launched_attempt_is_reported_and_retired_after_its_end() {
    let mut daemon = launching();
    assert_eq!(daemon.run(SECOND), ["Launched(Attempt { job: 1, nth: 1 }, Time(0))"]);
    act(&mut daemon, Action::Stop);
    assert!(daemon.run(SECOND).is_empty());
    let end = daemon.host.end(Exit::Code(3));
    let mut job = daemon.host.attempt(attempt(1));
    assert_eq!(job.commands, [ShimCommand::Stop]);
    (job.lives, job.end) = (false, Some(end));
    drop(job);
    let reports = daemon.run(SECOND);
    assert!(reports[0].contains("Ended { at: Time(2000000), exit: Code(3), by: None }"), "{reports:?}");
    assert!(daemon.host.has_folder(attempt(1)));
    act(&mut daemon, Action::Forget);
    assert!(daemon.run(SECOND).is_empty() && !daemon.host.has_folder(attempt(1)));
}

#[test]
fn a_launch_is_tried_again_while_the_machine_is_short_of_something() {
    let mut daemon = launching();
    daemon.host.failures.borrow_mut().extend([shortage(), shortage()]);
    assert_eq!(daemon.run(SECOND), ["Launched(Attempt { job: 1, nth: 1 }, Time(300000))"]);
}

#[test]
fn a_launch_that_loses_its_window_is_given_up() {
    let mut daemon = launching();
    daemon.host.failures.borrow_mut().extend((0..9).map(|_| shortage()));
    assert_eq!(daemon.run(2 * SECOND), [""; 0]);
    assert_eq!(daemon.run(3 * SECOND), ["AttemptEnded(Attempt { job: 1, nth: 1 }, NeverRan)"]);
}

#[test]
fn a_launch_waits_for_descriptors() {
    let mut daemon = launching();
    daemon.set_short_of_descriptors(true);
    assert!(daemon.run(SECOND).is_empty() && !daemon.host.has_folder(attempt(1)));
    daemon.set_short_of_descriptors(false);
    assert_eq!(daemon.run(SECOND).len(), 1);
}

#[test]
fn launches_wait_while_the_machine_shuts_down() {
    let mut daemon = FakeDaemon::new();
    daemon.handle(LoopMessage::HoldLaunches(10 * SECOND));
    daemon.handle(LoopMessage::Begin(attempt(1), Begin::Launch(launch())));
    assert!(daemon.run(9 * SECOND).is_empty() && !daemon.host.has_folder(attempt(1)));
    assert_eq!(daemon.run(2 * SECOND), ["Launched(Attempt { job: 1, nth: 1 }, Time(10000000))"]);
}

#[test]
fn a_stopped_shim_is_continued_and_obeys() {
    let mut daemon = launching();
    daemon.run(SECOND);
    daemon.host.attempt(attempt(1)).is_stopped = true;
    act(&mut daemon, Action::Kill { grace: Span::from_ticks(60_000_000) });
    assert!(daemon.run(2 * SECOND).is_empty());
    assert_eq!(*daemon.host.effects.borrow(), ["wake"]);
    assert!(!daemon.host.attempt(attempt(1)).is_stopped);
}

#[test]
fn a_job_whose_shim_stays_stopped_is_ended_by_force() {
    let mut daemon = launching();
    daemon.run(SECOND);
    let mut job = daemon.host.attempt(attempt(1));
    (job.is_stopped, job.stays_stopped) = (true, true);
    drop(job);
    act(&mut daemon, Action::Kill { grace: Span::from_ticks(1_000_000) });
    let reports = daemon.run(9 * SECOND);
    let effects = daemon.host.effects.take();
    assert_eq!(
        effects.iter().filter(|effect| **effect != "wake").collect::<Vec<_>>(),
        [&"kill job", &"kill shim"]
    );
    assert_eq!(effects[0], "wake");
    assert!(reports[0].contains("ShimStopped"), "{reports:?}");
    assert!(reports.last().unwrap().contains("exit: Signal(9), by: Some(User)"), "{reports:?}");
}

#[test]
fn living_ended_lost_silent_and_unclear_attempts_are_taken_up() {
    let host = FakeHost::new();
    let started = Some(host.instant());
    let shim = || FakeAttempt { lives: true, started: started.clone(), ..FakeAttempt::default() };
    *host.attempt(attempt(1)) = shim();
    *host.attempt(attempt(2)) = FakeAttempt { end: Some(host.end(Exit::Code(0))), ..FakeAttempt::default() };
    *host.attempt(attempt(3)) = FakeAttempt { lives: false, ..shim() };
    *host.attempt(attempt(5)) = FakeAttempt { is_stopped: true, stays_stopped: true, ..shim() };
    *host.attempt(attempt(6)) = FakeAttempt { is_unclear: true, ..shim() };
    let supervisor = FakeSupervisor::default();
    let absence = take_up(&host, &supervisor, &[1, 2, 3, 4, 5, 6].map(attempt));
    let ended = |job: usize| &absence.ended[job].1;
    assert!(matches!(ended(0), AttemptOutcome::Ended { exit: miserly_api::model::Exit::Code(0), .. }));
    assert!(matches!(ended(1), AttemptOutcome::Lost(_)) && *ended(2) == AttemptOutcome::NeverRan);
    assert_eq!(absence.ended.iter().map(|(attempt, _)| attempt.job).collect::<Vec<_>>(), [2, 3, 4]);
    assert_eq!(absence.launched, [1, 3, 5].map(|job| (attempt(job), Time::ZERO)));
    assert_eq!(absence.begun, [BegunWindow { attempt: attempt(1), cpus: vec![1], end: Time::from_ticks(9) }]);
    assert_eq!(supervisor.0.take(), [1, 6, 5].map(attempt));
    assert_eq!(host.clock().now(), Time::from_ticks(5_000_000));
}

/// What cannot be read is no proof that a job is over.
#[test]
fn an_attempt_whose_state_is_unclear_is_looked_at_again() {
    let mut daemon = FakeDaemon::new();
    let unclear = FakeAttempt { is_unclear: true, lives: true, ..FakeAttempt::default() };
    *daemon.host.attempt(attempt(1)) = unclear;
    daemon.handle(LoopMessage::Begin(attempt(1), Begin::Find));
    assert!(daemon.run(60 * SECOND).is_empty() && daemon.host.has_folder(attempt(1)));
    daemon.host.attempt(attempt(1)).is_unclear = false;
    daemon.run(60 * SECOND);
    let end = daemon.host.end(Exit::Code(7));
    let mut job = daemon.host.attempt(attempt(1));
    (job.lives, job.end) = (false, Some(end));
    drop(job);
    let reports = daemon.run(SECOND);
    assert!(reports.last().unwrap().contains("exit: Code(7)"), "{reports:?}");
}

/// The engine counts on it, and cannot see the shim's own constant.
#[test]
fn a_shim_begins_a_window_by_itself_when_the_engine_expects_it() {
    assert_eq!(duration(BEGIN_DELAY), miserly_launch::BEGIN_DELAY);
}
