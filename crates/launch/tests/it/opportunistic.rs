//! Opportunistic jobs whose window begins and ends without a daemon.

use std::time::Duration;

use miserly_launch::{
    AttemptPhase, BootTime, EndCause, FoundAttempt, MachineClock as _, ReservedWindow, RunMode, Shim,
    ShimCommand, leaves_idle,
};

use crate::support::{SECOND, Test, cpus, done, is_idle, kill, status, until};

const WAITS: &str = "echo $$; while :; do sleep 0.05; done";

/// Returns a window on the first processor.
fn window(start: Duration, end: Duration) -> ReservedWindow {
    let now = BootTime::now();
    ReservedWindow { start: now.after(start), end: now.after(end), cpus: vec![cpus()[0]], after: None }
}

impl Test {
    fn opportunistic(mut self, window: Option<ReservedWindow>) -> Test {
        self.spec.mode = RunMode::Opportunistic { cpus: cpus(), window };
        self
    }

    fn adopted(&self) -> Shim {
        match self.find() {
            FoundAttempt::Alive(shim) => shim,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn without_a_daemon_a_window_begins_and_ends() {
    let test = Test::new(WAITS).opportunistic(None);
    let mut shim = test.launch();
    let pid = test.pids(1)[0];
    assert!(is_idle(pid));
    let window = window(SECOND / 2, 90 * SECOND);
    done(&mut shim, &ShimCommand::SetWindow(window.clone()));
    drop(shim);
    let allowed = || status(pid, "Cpus_allowed_list") == window.cpus[0].to_string();
    let orphan_resume_delay = cpus().len() == 1;
    until(|| (BootTime::now() >= window.start && allowed()).then_some(()));
    let idle = !leaves_idle();
    until(|| (is_idle(pid) == idle || orphan_resume_delay).then_some(()));
    let mut shim = test.adopted();
    let state = done(&mut shim, &ShimCommand::Status);
    assert_eq!((state.end, state.cpus, state.window), (Some(window.end), window.cpus, None));
    let soon = BootTime::now().after(test.spec.grace);
    done(&mut shim, &ShimCommand::SetEnd { end: soon, max_after_resume: None });
    drop(shim);
    let end = until(|| match test.find() {
        FoundAttempt::Ended(end) => Some(end),
        _ => None,
    });
    assert_eq!(end.cause, Some(EndCause::Time));
}

#[test]
fn a_parked_job_is_resumed_at_its_start() {
    let test = Test::new(WAITS).opportunistic(None);
    let mut shim = test.launch();
    test.pids(1);
    assert_eq!(done(&mut shim, &ShimCommand::Stop).phase, AttemptPhase::Stopped);
    let window = window(SECOND / 2, 90 * SECOND);
    done(&mut shim, &ShimCommand::SetWindow(window.clone()));
    drop(shim);
    until(|| (BootTime::now() >= window.start).then_some(()));
    let mut shim = test.adopted();
    let state = until(|| Some(done(&mut shim, &ShimCommand::Status)).filter(|state| state.end.is_some()));
    assert_eq!((state.phase, state.end), (AttemptPhase::Running, Some(window.end)));
    kill(&mut shim);
}

#[test]
fn a_daemon_that_is_there_begins_it_unless_it_hangs() {
    let window = window(SECOND / 2, 90 * SECOND);
    let test = Test::new(WAITS).opportunistic(Some(window.clone()));
    let mut shim = test.launch();
    test.pids(1);
    // The shim's unit tests check without a clock how long it waits for the daemon.
    let state = until(|| Some(done(&mut shim, &ShimCommand::Status)).filter(|state| state.end.is_some()));
    assert_eq!((state.end, state.window), (Some(window.end), None));
    assert!(BootTime::now() >= window.start.after(SECOND), "the shim waits for the daemon first");
    kill(&mut shim);
}

#[test]
fn a_window_that_is_moved_begins_when_it_was_moved_to() {
    let test = Test::new(WAITS).opportunistic(None);
    let mut shim = test.launch();
    test.pids(1);
    let (later, sooner) = (window(90 * SECOND, 120 * SECOND), window(SECOND / 2, 90 * SECOND));
    assert_eq!(done(&mut shim, &ShimCommand::SetWindow(later.clone())).window, Some(later));
    assert_eq!(done(&mut shim, &ShimCommand::SetWindow(sooner.clone())).window, Some(sooner.clone()));
    drop(shim);
    until(|| (BootTime::now() >= sooner.start).then_some(()));
    let mut shim = test.adopted();
    let state = until(|| Some(done(&mut shim, &ShimCommand::Status)).filter(|state| state.end.is_some()));
    assert_eq!(state.end, Some(sooner.end));
    // The window has begun; only its end can change.
    let other = window(20 * SECOND, 100 * SECOND);
    assert_eq!(done(&mut shim, &ShimCommand::SetWindow(other.clone())).end, Some(other.end));
    kill(&mut shim);
}
