//! Single faults of the disk, in the order in which they matter.

use std::fs;
use std::thread;

use miserly_api::client::ClientError;
use miserly_api::model::{Exit, Phase, ProblemCode, PromiseChangeReason, Submission};

use crate::support::{Daemon, SOON, exact_queue, sh, until};

/// A daemon of one queue whose disk can fail.
fn daemon() -> Daemon {
    Daemon::with_faults(&exact_queue("miser"))
}

/// A job that runs until there is a file `go`.
fn until_go(daemon: &Daemon) -> Submission {
    Submission { directory: daemon.path(""), ..sh("while [ ! -e go ]; do sleep 0.05; done; exit 7", 20.0) }
}

/// Lets the job end.
#[track_caller]
fn ends_after_all(daemon: &Daemon, number: i64) {
    fs::write(daemon.path("go"), "").expect("a file");
    let ended = daemon.wait(number).phase;
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
}

/// Whatever a job needs room for is there before its command may run, so that a launch can be tried again.
#[test]
fn a_job_that_finds_no_room_at_its_launch_runs_later() {
    let daemon = daemon();
    for point in ["folder", "record", "room", "script"] {
        let before = daemon.log().matches("cannot be launched").count();
        daemon.set_faults(&format!("{point}:enospc"));
        let script = Some("#!/bin/sh\nexit 7\n".to_owned());
        let number = daemon.submit(&Submission { script, command: vec![], ..sh("", 20.0) });
        // The launcher tries again by itself, or the program of the command finds no room and another attempt follows.
        let failed = || daemon.log().matches("cannot be launched").count() > before;
        until("a launch fails", SOON, || (failed() || daemon.job(number).attempts > 1).then_some(()));
        daemon.set_faults("");
        let job = daemon.wait(number);
        assert!(matches!(job.phase, Phase::Done { exit: Exit::Code(7), .. }), "{point}: {:?}", job.phase);
        let late = job.late.unwrap_or_else(|| panic!("{point}: it was late"));
        // How long the room was missing decides.
        let is_of_launch = matches!(late.why, PromiseChangeReason::Launch | PromiseChangeReason::Away);
        assert!(is_of_launch, "{point}: {:?}", late.why);
    }
}

/// A commit whose flush failed may be on disk, so the daemon cannot say that nothing was done.
#[test]
fn a_submission_whose_commit_may_be_on_disk_is_not_refused() {
    let mut daemon = daemon();
    daemon.set_faults("flush:eio");
    let client = daemon.client();
    let load = thread::spawn(move || client.submit(&sh("exit 7", 20.0)));
    until("the daemon ends", SOON, || daemon.is_dead().then_some(()));
    let told = load.join().expect("a reply");
    assert!(matches!(told, Err(ClientError::Gone { .. })), "{told:?}");
    daemon.set_faults("");
    daemon.start();
    let ended = daemon.wait(1).phase;
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
}

#[test]
fn a_commit_that_failed_is_not_there_and_the_next_daemon_goes_on() {
    let mut daemon = daemon();
    let number = daemon.submit(&until_go(&daemon));
    daemon.set_faults("commit:eio");
    let told = daemon.client().submit(&sh("true", 20.0));
    assert!(matches!(told, Err(ClientError::Gone { .. })), "{told:?}");
    until("the daemon ends", SOON, || daemon.is_dead().then_some(()));
    daemon.set_faults("");
    daemon.start();
    ends_after_all(&daemon, number);
    assert_eq!(daemon.history().len(), 1);
}

#[test]
fn a_full_disk_refuses_changes_and_answers_questions() {
    let daemon = daemon();
    let number = daemon.submit(&until_go(&daemon));
    daemon.set_faults("commit:enospc");
    match daemon.client().cancel(number, false) {
        Err(ClientError::Refused(problem)) => assert_eq!(problem.code, ProblemCode::Storage, "{problem}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(daemon.job(number).number, number);
    daemon.set_faults("");
    ends_after_all(&daemon, number);
}

/// The machine sleeps over the start of a job that waits, and over the end of one that runs.
#[test]
fn a_sleep_of_the_machine_ends_what_runs_and_starts_what_waits() {
    let daemon = daemon();
    let all = u64::try_from(crate::support::cpus().len()).expect("a number");
    let runs = daemon.submit(&Submission {
        cpus: all,
        directory: daemon.path(""),
        ..sh("touch runs; exec sleep 300", 60.0)
    });
    let waits = daemon.submit(&Submission { cpus: all, no_opportunistic: true, ..sh("exit 7", 20.0) });
    until("it runs", SOON, || daemon.path("runs").exists().then_some(()));
    daemon.set_ahead(3600.0);
    let ended = daemon.wait(runs).phase;
    assert!(matches!(ended, Phase::Killed { .. }), "{ended:?}");
    let job = daemon.wait(waits);
    assert!(matches!(job.phase, Phase::Done { exit: Exit::Code(7), .. }), "{:?}", job.phase);
    assert!(job.late.is_some_and(|late| late.by > 3000.0), "{:?}", job.late);
}
