//! Jobs that take turns: stopped from the first, and for as long as they run.

use std::time::Duration;

use miserly_launch::{BootTime, Cause, Exit, Phase, Told};

use crate::support::{SECOND, Test, done, ended, kill, until};

/// A job that writes a line again and again, and may run for so long.
fn in_turns(limit: Duration) -> Test {
    let mut test = Test::of("while :; do echo line; sleep 0.02; done");
    test.order.limit = Some(limit);
    test.order.grace = SECOND / 2;
    test
}

#[test]
fn it_begins_stopped_and_its_command_is_not_run_before_its_turn() {
    let test = in_turns(60 * SECOND);
    let mut shim = test.launch();
    until(|| (done(&mut shim, &Told::Hello).phase == Phase::Stopped).then_some(()));
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!((test.out(), done(&mut shim, &Told::Hello).end), (String::new(), None));
    done(&mut shim, &Told::Continue);
    test.wait_out("line");
    assert!(done(&mut shim, &Told::Hello).end.is_some());
    kill(&mut shim);
}

#[test]
fn only_the_time_in_which_it_runs_counts() {
    let test = in_turns(2 * SECOND);
    let mut shim = test.launch();
    let began = BootTime::now();
    done(&mut shim, &Told::Continue);
    test.wait_out("line");
    done(&mut shim, &Told::Stop);
    let ran = BootTime::now().since(began);
    std::thread::sleep(3 * SECOND);
    let before = BootTime::now();
    done(&mut shim, &Told::Continue);
    let end = ended(&shim);
    assert_eq!(end.cause, Some(Cause::Time));
    assert!(matches!(end.exit, Exit::Signal { .. }), "{:?}", end.exit);
    // TERM comes a grace before its end.
    let left = SECOND * 3 / 2;
    assert!(end.at.since(before) + ran >= left, "{:?} and {ran:?}", end.at.since(before));
}

#[test]
fn a_limit_may_be_changed_while_it_is_stopped() {
    let test = in_turns(SECOND);
    let mut shim = test.launch();
    done(&mut shim, &Told::RunFor { limit: 60 * SECOND });
    let told = BootTime::now();
    let end = done(&mut shim, &Told::Continue).end.expect("it runs");
    assert!(end.since(told) > 50 * SECOND);
    done(&mut shim, &Told::EndAt { end: told.after(30 * SECOND), left: None });
    assert_eq!(done(&mut shim, &Told::Stop).end, Some(told.after(30 * SECOND)));
    kill(&mut shim);
}
