//! Single faults of the disk, in the order in which they matter.

use std::fs;
use std::thread;
use std::time::Duration;

use miserly_api::client::ClientError;
use miserly_api::model::{Exit, Phase, ProblemCode, PromiseChangeReason, Submission};

use crate::support::{Daemon, SOON, exact_queue, sh, until};

/// A daemon of one queue whose disk can fail.
fn daemon() -> Daemon {
    Daemon::with_faults(&exact_queue("miser"))
}

fn fail(daemon: &Daemon, fault: &str) {
    fs::write(daemon.faults(), fault).expect("a file");
}

/// Whatever a job needs room for is there before its command may run, so that a launch can be tried again.
#[test]
fn a_job_that_finds_no_room_at_its_launch_runs_later() {
    for point in ["folder", "record", "room", "script"] {
        let daemon = daemon();
        fail(&daemon, &format!("{point}:enospc"));
        let script = Some("#!/bin/sh\nexit 7\n".to_owned());
        let number = daemon.submit(&Submission { script, command: vec![], ..sh("", 20.0) });
        // The launcher tries again by itself, or the program of the command finds no room and another attempt follows.
        let fails = || daemon.log().contains("cannot be launched") || daemon.job(number).attempts > 1;
        until("a launch fails", SOON, || fails().then_some(()));
        thread::sleep(Duration::from_millis(400));
        fail(&daemon, "");
        let job = daemon.wait(number);
        assert!(matches!(job.phase, Phase::Done { exit: Exit::Code(7), .. }), "{point}: {:?}", job.phase);
        let late = job.late.unwrap_or_else(|| panic!("{point}: it was late"));
        assert_eq!(late.why, PromiseChangeReason::Away, "{point}");
    }
}

/// A commit whose flush failed may be on disk, so the daemon cannot say that nothing was done.
#[test]
fn a_submission_whose_commit_may_be_on_disk_is_not_refused() {
    let mut daemon = daemon();
    fail(&daemon, "flush:eio");
    let client = daemon.client();
    let load = thread::spawn(move || client.submit(&sh("exit 7", 20.0)));
    until("the daemon ends", SOON, || daemon.is_dead().then_some(()));
    let told = load.join().expect("a reply");
    assert!(matches!(told, Err(ClientError::Gone { .. })), "{told:?}");
    fail(&daemon, "");
    daemon.start();
    let ended = daemon.wait(1).phase;
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
}

#[test]
fn a_commit_that_failed_is_not_there_and_the_next_daemon_goes_on() {
    let mut daemon = daemon();
    let number = daemon.submit(&sh("sleep 1; exit 7", 20.0));
    fail(&daemon, "commit:eio");
    let told = daemon.client().submit(&sh("true", 20.0));
    assert!(matches!(told, Err(ClientError::Gone { .. })), "{told:?}");
    until("the daemon ends", SOON, || daemon.is_dead().then_some(()));
    fail(&daemon, "");
    daemon.start();
    let ended = daemon.wait(number).phase;
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
    assert_eq!(daemon.history().len(), 1);
}

#[test]
fn a_full_disk_refuses_changes_and_answers_questions() {
    let daemon = daemon();
    let number = daemon.submit(&sh("sleep 1; exit 7", 20.0));
    fail(&daemon, "commit:enospc");
    match daemon.client().cancel(number, false) {
        Err(ClientError::Refused(problem)) => assert_eq!(problem.code, ProblemCode::Storage, "{problem}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(daemon.job(number).number, number);
    fail(&daemon, "");
    let ended = daemon.wait(number).phase;
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
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
    fail(&daemon, "boot:3600\nwall:3600");
    let ended = daemon.wait(runs).phase;
    assert!(matches!(ended, Phase::Killed { .. }), "{ended:?}");
    let job = daemon.wait(waits);
    assert!(matches!(job.phase, Phase::Done { exit: Exit::Code(7), .. }), "{:?}", job.phase);
    assert!(job.late.is_some_and(|late| late.by > 3000.0), "{:?}", job.late);
}
