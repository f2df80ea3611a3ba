//! Shutdowns: shim and job get `SIGTERM` at once, in either order.

use std::time::Duration;

use miserly_launch::{EndCause, Exit, Shim};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{SECOND, Test, alive, ended};

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

fn launched(script: &str) -> (Test, Shim, u32) {
    let test = Test::new(&format!("echo $$; {script}"));
    let shim = test.launch();
    let pid = test.pids(1)[0];
    (test, shim, pid)
}

#[test]
fn the_shim_ends_its_job_and_records_the_shutdown() {
    for signal in [Signal::TERM, Signal::POWER] {
        let (_test, shim, pid) = launched("exec sleep 100");
        send(shim.identity().pid, signal);
        let end = ended(&shim);
        assert_eq!(
            (end.exit, end.cause),
            (Exit::Signal { signal: 15, core: false }, Some(EndCause::Shutdown))
        );
        assert!(!alive(pid));
    }
}

#[test]
fn a_job_that_dies_of_the_same_shutdown_first_has_the_same_cause() {
    // The second job's shell exits as of the signal.
    for script in ["exec sleep 100", "trap 'exit 143' TERM; sleep 100 & wait"] {
        let (_test, shim, pid) = launched(script);
        send(pid, Signal::TERM);
        std::thread::sleep(Duration::from_millis(20));
        send(shim.identity().pid, Signal::TERM);
        assert_eq!(ended(&shim).cause, Some(EndCause::Shutdown), "{script}");
    }
}

#[test]
fn a_job_has_its_grace_in_a_shutdown() {
    let (test, shim, _) = launched("trap 'echo bye; sleep 0.2; exit 3' TERM; while :; do sleep 0.05; done");
    assert_eq!(test.spec.grace, SECOND);
    send(shim.identity().pid, Signal::TERM);
    let end = ended(&shim);
    assert_eq!((end.exit, end.cause), (Exit::Code(3), Some(EndCause::Shutdown)));
    assert!(test.out().contains("bye"));
}

#[test]
fn a_job_that_is_terminated_alone_ends_by_itself() {
    let (_test, shim, pid) = launched("exec sleep 100");
    send(pid, Signal::TERM);
    assert_eq!(ended(&shim).cause, None);
}
