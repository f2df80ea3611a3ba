//! A job ahead of its window, which begins and ends with no daemon to say so.

use std::time::Duration;

use miserly_launch::{BootTime, Cause, Found, Launcher, Mode, Phase, Shim, Told, Window};

use crate::support::{SECOND, SOON, Test, cpus, done, ended, kill, stat, status, until};

const SCHED_IDLE: &str = "5";
const WAITS: &str = "echo $$; while :; do sleep 0.05; done";

fn class(pid: u32) -> String {
    stat(pid).expect("it is there")[38].clone()
}

/// A window on the first processor.
fn window(start: Duration, end: Duration) -> Window {
    let now = BootTime::now();
    Window { start: now.after(start), end: now.after(end), cpus: vec![cpus()[0]] }
}

impl Test {
    fn ahead_of(mut self, window: Option<Window>) -> Test {
        self.order.mode = Mode::Early { cpus: cpus(), window };
        self
    }

    fn adopted(&self) -> Shim {
        match self.find() {
            Found::Alive(shim) => shim,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn without_a_daemon_a_window_begins_and_ends_on_time() {
    let window = window(4 * SECOND, 12 * SECOND);
    let test = Test::of(WAITS).ahead_of(Some(window.clone()));
    let shim = test.launch();
    let pid = test.pids(1)[0];
    assert_eq!(class(pid), SCHED_IDLE);
    drop(shim);
    let allowed = || status(pid, "Cpus_allowed_list") == window.cpus[0].to_string();
    let alone = cpus().len() == 1;
    until(|| (BootTime::now() >= window.start && allowed()).then_some(()));
    let leaves_idle = Launcher::probe().expect("the launcher's abilities").leaves_idle;
    until(|| ((class(pid) == SCHED_IDLE) != leaves_idle || alone).then_some(()));
    let mut shim = test.adopted();
    let state = done(&mut shim, &Told::Hello);
    assert_eq!((state.end, state.cpus, state.window), (Some(window.end), window.cpus, None));
    let end = ended(&shim);
    assert_eq!(end.cause, Some(Cause::Time));
    assert!(end.at >= window.end.before(test.order.grace) && end.at < window.end.after(SOON), "{end:?}");
}

#[test]
fn a_parked_job_goes_on_at_its_start() {
    let window = window(4 * SECOND, 90 * SECOND);
    let test = Test::of(WAITS).ahead_of(Some(window.clone()));
    let mut shim = test.launch();
    test.pids(1);
    assert_eq!(done(&mut shim, &Told::Stop).phase, Phase::Stopped);
    drop(shim);
    until(|| (BootTime::now() >= window.start).then_some(()));
    let mut shim = test.adopted();
    let state = until(|| Some(done(&mut shim, &Told::Hello)).filter(|state| state.end.is_some()));
    assert_eq!((state.phase, state.end), (Phase::Running, Some(window.end)));
    kill(&mut shim);
}

#[test]
fn a_daemon_that_is_there_begins_it_unless_it_hangs() {
    let window = window(SECOND / 2, 90 * SECOND);
    let test = Test::of(WAITS).ahead_of(Some(window.clone()));
    let mut shim = test.launch();
    test.pids(1);
    // The unit tests of the shim's course have the moment that a daemon is given, to the tick.
    let state = until(|| Some(done(&mut shim, &Told::Hello)).filter(|state| state.end.is_some()));
    assert_eq!((state.end, state.window), (Some(window.end), None));
    assert!(BootTime::now() >= window.start.after(SECOND), "a daemon is given a moment");
    kill(&mut shim);
}

#[test]
fn a_window_that_is_moved_begins_when_it_was_moved_to() {
    let test = Test::of(WAITS).ahead_of(None);
    let mut shim = test.launch();
    test.pids(1);
    let (later, sooner) = (window(90 * SECOND, 120 * SECOND), window(4 * SECOND, 90 * SECOND));
    assert_eq!(done(&mut shim, &Told::Window(later.clone())).window, Some(later));
    assert_eq!(done(&mut shim, &Told::Window(sooner.clone())).window, Some(sooner.clone()));
    drop(shim);
    until(|| (BootTime::now() >= sooner.start).then_some(()));
    let mut shim = test.adopted();
    let state = until(|| Some(done(&mut shim, &Told::Hello)).filter(|state| state.end.is_some()));
    assert_eq!(state.end, Some(sooner.end));
    // It has begun and goes on; its end can move.
    let other = window(20 * SECOND, 100 * SECOND);
    assert_eq!(done(&mut shim, &Told::Window(other.clone())).end, Some(other.end));
    kill(&mut shim);
}
