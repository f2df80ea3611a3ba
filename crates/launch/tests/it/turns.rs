//! Jobs with a run limit: stopped from the beginning, and ended by their running time.

use std::time::Duration;

use miserly_launch::{
    AttemptPhase, BootTime, EndCause, Exit, MachineClock as _, ShimCommand, ShimRefusal, ShimReply,
};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::support::{SECOND, Test, done, ended, is_stopped, kill, until};

/// Returns a job that writes a line repeatedly and has a run limit.
fn with_run_limit(limit: Duration) -> Test {
    let mut test = Test::new("while :; do echo line; sleep 0.02; done");
    test.spec.run_limit = Some(limit);
    test.spec.grace = SECOND / 2;
    test
}

#[test]
fn it_begins_stopped_and_runs_its_command_when_resumed() {
    let mut test = with_run_limit(60 * SECOND);
    test.spec.argv[2] = "cat /proc/uptime; while :; do echo line; sleep 0.02; done".into();
    let mut shim = test.launch();
    until(|| (done(&mut shim, &ShimCommand::Status).phase == AttemptPhase::Stopped).then_some(()));
    assert_eq!((test.out(), done(&mut shim, &ShimCommand::Status).end), (String::new(), None));
    let turn = uptime(&std::fs::read_to_string("/proc/uptime").unwrap());
    done(&mut shim, &ShimCommand::Resume);
    let out = test.wait_out("line");
    assert!(uptime(&out) >= turn, "its turn was at {turn}: {out}");
    assert!(done(&mut shim, &ShimCommand::Status).end.is_some());
    kill(&mut shim);
}

/// Returns the seconds since boot that a text begins with.
fn uptime(text: &str) -> f64 {
    text.split_whitespace().next().expect("the seconds since boot").parse().unwrap()
}

#[test]
fn only_the_time_in_which_it_runs_counts() {
    let test = with_run_limit(SECOND);
    let mut shim = test.launch();
    let began = BootTime::now();
    done(&mut shim, &ShimCommand::Resume);
    test.wait_out("line");
    done(&mut shim, &ShimCommand::Stop);
    let ran = BootTime::now().since(began);
    std::thread::sleep(SECOND);
    let before = BootTime::now();
    done(&mut shim, &ShimCommand::Resume);
    let end = ended(&shim);
    assert_eq!(end.cause, Some(EndCause::Time));
    assert!(matches!(end.exit, Exit::Signal { .. }), "{:?}", end.exit);
    // `SIGTERM` precedes the end by the grace period.
    let left = SECOND / 2;
    assert!(end.at.parts().0.since(before) + ran >= left, "{:?} and {ran:?}", end.at.parts().0.since(before));
}

#[test]
fn a_limit_may_be_changed_while_it_is_stopped() {
    let test = with_run_limit(SECOND);
    let mut shim = test.launch();
    done(&mut shim, &ShimCommand::SetRunLimit { limit: 60 * SECOND });
    let set_at = BootTime::now();
    let end = done(&mut shim, &ShimCommand::Resume).end.expect("it runs");
    assert!(end.since(set_at) > 50 * SECOND);
    done(&mut shim, &ShimCommand::SetEnd { end: set_at.after(30 * SECOND), max_after_resume: None });
    assert_eq!(done(&mut shim, &ShimCommand::Stop).end, Some(set_at.after(30 * SECOND)));
    kill(&mut shim);
}

#[test]
fn a_shim_that_cannot_look_lets_all_go_on_once_it_can_and_the_time_counts_from_before() {
    let mut test = Test::new("setsid sh -c 'echo $$; exec sleep 100' & echo $$; exec sleep 100");
    test.spec.run_limit = Some(60 * SECOND);
    let mut shim = test.launch();
    done(&mut shim, &ShimCommand::Resume);
    let pids = test.pids(2);
    assert_eq!(done(&mut shim, &ShimCommand::Stop).phase, AttemptPhase::Stopped);
    let stopped = |pid: &u32| is_stopped(*pid);
    let (pid, limit) = (shim.identity().pid, getrlimit(Resource::Nofile));
    // No further file can be opened, while the open ones can still be polled.
    let few = Rlimit { current: Some(lowest_unused(pid)), maximum: limit.maximum };
    let pid = Pid::from_raw(pid.try_into().unwrap());
    let files = prlimit(pid, Resource::Nofile, few).unwrap();
    let refused = shim.request(&ShimCommand::Resume).unwrap();
    assert!(matches!(refused, ShimReply::Refused(ShimRefusal::Processes { .. })), "{refused:?}");
    let state = done(&mut shim, &ShimCommand::Status);
    assert_eq!((state.phase, state.end.is_some()), (AttemptPhase::Running, true));
    assert!(pids.iter().any(stopped));
    prlimit(pid, Resource::Nofile, files).unwrap();
    until(|| (!pids.iter().any(stopped)).then_some(()));
    kill(&mut shim);
}

/// Returns the lowest unused file number of a process.
fn lowest_unused(pid: u32) -> u64 {
    let open = |number| std::path::Path::new(&format!("/proc/{pid}/fd/{number}")).exists();
    let mut number = 0;
    while open(number) {
        number += 1;
    }
    number
}
