//! A start from every state on real processes, and the starts that cannot be made.

use std::fs;
use std::time::Duration;

use miserly_api::model::{Exit, Phase, Retry, Submission};

use crate::support::{Daemon, SOON, kill_all, miserly, queue, sh, until, without_queues};

/// The policies whose daemons run a job again.
const POLICIES: [&str; 6] = ["miser", "conservative", "easy", "ss(sf=2)", "immediate", "gang"];

/// How the daemon goes while a job is to run again.
#[derive(Clone, Copy, Debug)]
enum Away {
    /// It ends in order, and the job fails meanwhile.
    Stopped,
    /// It is killed with the job's shim.
    Killed,
    /// It is killed after it has answered a `requeue`.
    Requeued,
}

/// Returns a job that runs again after a failure or a loss, and then succeeds.
fn again(daemon: &Daemon) -> Submission {
    let runs = daemon.path("runs").display().to_string();
    let script = format!("echo >>{runs}; [ $(wc -l <{runs}) = 1 ] || exit 0; sleep 1; exit 3");
    let retry = Some(Retry { limit: 2, codes: vec![] });
    Submission { retry, restartable: true, no_opportunistic: true, ..sh(&script, 2.0) }
}

fn runs(daemon: &Daemon) -> usize {
    fs::read_to_string(daemon.path("runs")).map_or(0, |text| text.lines().count())
}

#[test]
fn a_job_that_is_to_run_again_runs_again_although_its_window_is_over() {
    let configurations = POLICIES.map(queue).into_iter().chain([without_queues()]);
    for (nth, policy) in configurations.enumerate() {
        let how = [Away::Stopped, Away::Killed, Away::Requeued][nth % 3];
        let mut daemon = Daemon::new(&policy);
        let number = daemon.submit(&again(&daemon));
        // It may run beside the job, and be killed with it.
        let other = Submission { restartable: true, no_opportunistic: true, ..sh("exit 7", 2.0) };
        let other = daemon.submit(&other);
        until("the job runs", SOON, || (runs(&daemon) == 1).then_some(()));
        match how {
            Away::Stopped => daemon.stop(),
            Away::Killed => {
                daemon.kill();
                kill_all(&daemon.path(""));
            }
            Away::Requeued => {
                daemon.client().requeue(number, true).expect("it runs");
                daemon.kill();
            }
        }
        // The window and the time to clean up after it are over.
        std::thread::sleep(Duration::from_secs(4));
        daemon.start();
        let (view, log) = (daemon.wait(number), daemon.log());
        assert!(
            matches!(view.phase, Phase::Done { exit: Exit::Code(0), .. }),
            "{policy}, {how:?}: {:?}\n{log}",
            view.phase
        );
        assert!(
            matches!(daemon.wait(other).phase, Phase::Done { exit: Exit::Code(7), .. }),
            "{policy}, {how:?}"
        );
        assert!(!log.contains("set aside") && !log.contains("is stopped"), "{policy}, {how:?}: {log}");
    }
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
