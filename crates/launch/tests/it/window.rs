//! The end of the window and of all processes with it.

use std::time::Duration;

use miserly_launch::{
    AttemptPhase, BootTime, EndCause, Exit, MachineClock as _, RunMode, ShimCommand, ShimRefusal, ShimReply,
};

use crate::support::{SECOND, Test, alive, cpus, done, ended, until};

fn with_grace(script: &str, grace: Duration) -> Test {
    let mut test = Test::new(script);
    test.spec.grace = grace;
    test
}

#[test]
fn term_comes_before_the_end_and_may_be_answered() {
    let script = "trap 'echo asked; exit 3' TERM; echo here; while :; do sleep 0.05; done";
    let test = with_grace(script, 20 * SECOND);
    let mut shim = test.launch();
    test.wait_out("here");
    let window_end = BootTime::now().after(20 * SECOND + SECOND / 4);
    done(&mut shim, &ShimCommand::SetEnd { end: window_end, max_after_resume: None });
    let end = ended(&shim);
    assert_eq!((end.exit, end.cause, end.late), (Exit::Code(3), Some(EndCause::Time), None));
    assert!(test.out().ends_with("asked\n"), "{}", test.out());
    assert!(
        end.at.parts().0 >= window_end.before(20 * SECOND) && end.at.parts().0 < window_end,
        "{:?} {window_end:?}",
        end.at.parts().0
    );
}

#[test]
fn kill_comes_at_the_end_for_children_that_do_not_listen() {
    // A child, a grandchild, one in a process group of its own, and one in a session of its own.
    let test = with_grace(
        "trap '' TERM; sleep 100 & echo $!; (sleep 100 & echo $!; wait) & \
         bash -c 'set -m; trap \"\" TERM; sleep 100 & echo $!; wait' & \
         setsid sh -c 'echo $$; exec sleep 100' & wait; sleep 100",
        SECOND / 4,
    );
    let mut shim = test.launch();
    let pids = test.pids(4);
    assert!(pids.iter().all(|pid| alive(*pid)));
    let window_end = BootTime::now().after(SECOND / 2);
    done(&mut shim, &ShimCommand::SetEnd { end: window_end, max_after_resume: None });
    let end = ended(&shim);
    assert_eq!((end.exit, end.cause), (Exit::Signal { signal: 9, core: false }, Some(EndCause::Time)));
    assert!(end.at.parts().0 >= window_end);
    assert_eq!(end.late, Some(end.at.parts().0.since(window_end)));
    assert!(pids.iter().all(|pid| !alive(*pid)));
}

#[test]
fn a_stopped_job_is_asked_too() {
    let test = with_grace("trap 'exit 3' TERM; echo here; while :; do sleep 0.05; done", 20 * SECOND);
    let mut shim = test.launch();
    test.wait_out("here");
    assert_eq!(done(&mut shim, &ShimCommand::Stop).phase, AttemptPhase::Stopped);
    let end = BootTime::now().after(20 * SECOND);
    done(&mut shim, &ShimCommand::SetEnd { end, max_after_resume: None });
    assert_eq!(ended(&shim).exit, Exit::Code(3));
}

#[test]
fn a_window_that_is_over_starts_nothing() {
    let mut test = Test::new("echo ran");
    test.spec.mode = RunMode::Reserved { cpus: cpus(), end: BootTime::now().before(SECOND) };
    let end = test.run();
    assert_eq!(end.cause, Some(EndCause::Time));
    assert_eq!(test.out(), "");
}

#[test]
fn leftovers_of_a_main_process_are_terminated() {
    let test = Test::new(
        "(trap '' TERM; echo here; while :; do sleep 0.05; done) & setsid sleep 100 & while ! grep -q here out; do :; done; exit 5",
    );
    let end = test.run();
    assert_eq!((end.exit, end.cause), (Exit::Code(5), None));
    // It ignored `SIGTERM` and was killed.
    assert!(end.late.is_some());
}

#[test]
fn another_end_counts() {
    let test = with_grace("sleep 100", Duration::ZERO);
    let mut shim = test.launch();
    let soon = BootTime::now().after(SECOND / 2);
    assert_eq!(done(&mut shim, &ShimCommand::SetEnd { end: soon, max_after_resume: None }).end, Some(soon));
    let end = ended(&shim);
    assert!(end.at.parts().0 >= soon && end.cause == Some(EndCause::Time));
}

#[test]
fn a_user_kills_with_and_without_grace() {
    for (grace, signal) in [(10 * SECOND, 15), (Duration::ZERO, 9)] {
        let test = Test::new("sleep 100 & wait");
        let mut shim = test.launch();
        let state = done(&mut shim, &ShimCommand::Kill { grace });
        // If the kill precedes the command, there is no main process yet.
        assert!(matches!(state.phase, AttemptPhase::Ending(Some(EndCause::User))), "{state:?}");
        let end = ended(&shim);
        assert_eq!(end.cause, Some(EndCause::User));
        assert!(matches!(end.exit, Exit::Failed(_)) || end.exit == Exit::Signal { signal, core: false });
    }
}

#[test]
fn a_kill_shortens_a_grace_and_all_else_is_refused() {
    let test = Test::new("trap '' TERM; echo here; sleep 100");
    let mut shim = test.launch();
    test.wait_out("here");
    done(&mut shim, &ShimCommand::Kill { grace: 50 * SECOND });
    let end = BootTime::now();
    for command in [
        ShimCommand::Stop,
        ShimCommand::Resume,
        ShimCommand::SetEnd { end, max_after_resume: None },
        ShimCommand::SetCpus { cpus: cpus() },
    ] {
        assert_eq!(shim.request(&command).unwrap(), ShimReply::Refused(ShimRefusal::Ending));
    }
    done(&mut shim, &ShimCommand::Kill { grace: Duration::ZERO });
    let end = ended(&shim);
    assert_eq!((end.exit, end.cause), (Exit::Signal { signal: 9, core: false }, Some(EndCause::User)));
}

#[test]
fn processes_that_multiply_while_they_are_killed_are_killed() {
    let test = Test::new(
        "multiply() { (trap '' TERM; while :; do sleep 0.01 & sleep 0.005; done) & }; for i in 1 2 3 4; do multiply; done; echo here; wait",
    );
    let mut shim = test.launch();
    test.wait_out("here");
    let session = shim.started().unwrap().unwrap().sid;
    done(&mut shim, &ShimCommand::Kill { grace: SECOND / 10 });
    ended(&shim);
    assert!(in_session(session).is_empty());
}

/// Returns the living processes of a session.
fn in_session(session: u32) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let ours = |pid: &u32| crate::support::stat(*pid).is_some_and(|stat| stat[3] == session.to_string());
    pids.filter(ours).filter(|pid| alive(*pid)).collect()
}

#[test]
fn orphans_are_waited_for_while_the_job_runs() {
    let test = Test::new("for i in 1 2 3 4 5; do (sleep 0.01 &) ; done; echo here; sleep 100");
    let mut shim = test.launch();
    test.wait_out("here");
    let pid = shim.identity().pid;
    let zombies = || {
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        children.split_whitespace().count()
    };
    // Only the main process.
    until(|| (zombies() <= 1).then_some(()));
    crate::support::kill(&mut shim);
}
