//! A start from every state on real processes, and the starts that cannot be made.

use std::fs;

use miserly_api::model::{Exit, Phase, Retry, Submission};

use crate::support::{Daemon, SOON, miserly, queue, sh, until};

/// The engine's tests have all policies, and all ways to run again.
#[test]
fn a_job_that_is_to_run_again_runs_again_although_its_window_is_over() {
    let mut daemon = Daemon::with_faults(&queue("miser"));
    let script =
        "echo >> runs; [ $(wc -l < runs) = 1 ] || exit 0; while [ ! -e go ]; do sleep 0.05; done; exit 3";
    let job = |script: &str| Submission {
        directory: daemon.path(""),
        retry: Some(Retry { limit: 2, codes: vec![] }),
        no_opportunistic: true,
        ..sh(script, 60.0)
    };
    let [number, other] = [script, "exit 7"].map(|script| daemon.submit(&job(script)));
    until("the job runs", SOON, || daemon.path("runs").exists().then_some(()));
    daemon.stop();
    fs::write(daemon.path("go"), "").expect("a file");
    until("the job has failed", SOON, || daemon.has_ended(number).then_some(()));
    daemon.set_ahead(3600.0);
    daemon.start();
    let ended = daemon.wait(number).phase;
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(0), .. }), "{ended:?}");
    let ended = daemon.wait(other).phase;
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
    let log = daemon.log();
    assert!(!log.contains("set aside") && !log.contains("is stopped"), "{log}");
}

/// Checks that a daemon ends with exit code 2 before it is ready, and says what to do.
#[track_caller]
fn does_not_start(daemon: &Daemon, says: &[&str]) {
    let output = daemon.command(&[]).output().expect("a program");
    assert_eq!(output.status.code(), Some(2), "{}", daemon.log());
    for text in says {
        assert!(daemon.log().contains(text), "{text:?} is not in: {}", daemon.log());
    }
}

#[test]
fn the_lock_of_another_daemon_ends_a_start_with_its_process() {
    let daemon = Daemon::of_policy("miser");
    let pid = daemon.pid().expect("it runs").as_raw_nonzero().to_string();
    does_not_start(
        &daemon,
        &["is in use by", &pid, "stop that daemon, or give this one a state folder of its own"],
    );
    assert!(!miserly(&["status", "--socket", &daemon.socket.display().to_string()]).stdout.is_empty());
}

#[test]
fn a_damaged_database_ends_a_start_and_names_the_option() {
    let mut daemon = Daemon::of_policy("miser");
    daemon.stop();
    fs::write(daemon.state().join("store/jobs.db"), "no database").expect("a file");
    does_not_start(&daemon, &["the state is damaged", "start with --recover"]);
}

/// The fault is taken back only after the daemon has reported it.
#[test]
fn a_full_disk_delays_a_start() {
    let mut daemon = Daemon::with_faults(&queue("miser"));
    for point in ["open", "commit"] {
        daemon.stop();
        fs::remove_file(daemon.path("log")).expect("a log");
        fs::write(daemon.faults(), format!("{point}:enospc")).expect("a file");
        daemon.start_unready();
        until("it waits", SOON, || daemon.log().contains("waits until there is room").then_some(()));
        assert!(!daemon.is_dead());
        fs::write(daemon.faults(), "").expect("a file");
        daemon.wait_until_ready();
    }
}

#[test]
fn an_unusable_configuration_ends_a_start_with_its_line() {
    let daemon = Daemon::asleep(&queue("miser").replace("cleanup-time", "cleaning-time"));
    does_not_start(&daemon, &["daemon.toml", "cleaning-time"]);
    let daemon = Daemon::asleep(&queue("no-such-policy"));
    does_not_start(&daemon, &["daemon.toml", "no-such-policy"]);
}

#[test]
fn a_file_in_the_place_of_the_socket_ends_a_start() {
    let daemon = Daemon::asleep(&queue("miser"));
    fs::write(&daemon.socket, "precious").expect("a file");
    does_not_start(&daemon, &["there is something that is no socket; remove it, or give another socket"]);
    assert_eq!(fs::read_to_string(&daemon.socket).expect("it is there"), "precious");
}
