//! Jobs that take turns: stopped from the first, and for as long as they run.

use std::time::Duration;

use miserly_launch::{BootTime, Cause, Exit, Phase, Refusal, Reply, Told};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::support::{SECOND, Test, done, ended, kill, stat, until};

/// A job that writes a line again and again, and may run for so long.
fn in_turns(limit: Duration) -> Test {
    let mut test = Test::of("while :; do echo line; sleep 0.02; done");
    test.order.limit = Some(limit);
    test.order.grace = SECOND / 2;
    test
}

#[test]
fn it_begins_stopped_and_its_command_is_not_run_before_its_turn() {
    let mut test = in_turns(60 * SECOND);
    test.order.argv[2] = "cat /proc/uptime; while :; do echo line; sleep 0.02; done".into();
    let mut shim = test.launch();
    until(|| (done(&mut shim, &Told::Hello).phase == Phase::Stopped).then_some(()));
    assert_eq!((test.out(), done(&mut shim, &Told::Hello).end), (String::new(), None));
    let turn = uptime(&std::fs::read_to_string("/proc/uptime").unwrap());
    done(&mut shim, &Told::Continue);
    let out = test.wait_out("line");
    assert!(uptime(&out) >= turn, "its turn was at {turn}: {out}");
    assert!(done(&mut shim, &Told::Hello).end.is_some());
    kill(&mut shim);
}

/// Returns the seconds since boot that a text begins with.
fn uptime(text: &str) -> f64 {
    text.split_whitespace().next().expect("the seconds since boot").parse().unwrap()
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

#[test]
fn a_shim_that_cannot_look_lets_all_go_on_once_it_can_and_the_time_counts_from_before() {
    let mut test = Test::of("setsid sh -c 'echo $$; exec sleep 100' & echo $$; exec sleep 100");
    test.order.limit = Some(60 * SECOND);
    let mut shim = test.launch();
    done(&mut shim, &Told::Continue);
    let pids = test.pids(2);
    assert_eq!(done(&mut shim, &Told::Stop).phase, Phase::Stopped);
    let stopped = |pid: &u32| stat(*pid).is_some_and(|stat| stat[0] == "T");
    let (pid, limit) = (shim.identity().pid, getrlimit(Resource::Nofile));
    // As many as are open: one more cannot be opened, and those can still be waited for, which none can be under a lower limit.
    let few = Rlimit { current: Some(lowest_unused(pid)), maximum: limit.maximum };
    let pid = Pid::from_raw(pid.try_into().unwrap());
    let files = prlimit(pid, Resource::Nofile, few).unwrap();
    let refused = shim.tell(&Told::Continue).unwrap();
    assert!(matches!(refused, Reply::Refused(Refusal::Blind { .. })), "{refused:?}");
    let state = done(&mut shim, &Told::Hello);
    assert_eq!((state.phase, state.end.is_some()), (Phase::Running, true));
    assert!(pids.iter().any(stopped));
    prlimit(pid, Resource::Nofile, files).unwrap();
    until(|| (!pids.iter().any(stopped)).then_some(()));
    kill(&mut shim);
}

/// The lowest number that a process has no open file under.
fn lowest_unused(pid: u32) -> u64 {
    let open = |number| std::path::Path::new(&format!("/proc/{pid}/fd/{number}")).exists();
    let mut number = 0;
    while open(number) {
        number += 1;
    }
    number
}
