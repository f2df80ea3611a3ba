//! Latest starts and soft time limits on a real daemon.

use std::process::Command;

use miserly_api::model::{Failure, KilledBy, Phase, Submission};

use crate::support::{Daemon, cpus, exact_queue, kept_but_for_stalls, queue, sh};

/// Returns a job on all processors.
fn all(script: &str, time: f64) -> Submission {
    Submission { cpus: cpus().len() as u64, no_opportunistic: true, ..sh(script, time) }
}

fn command(daemon: &Daemon, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_miserly"));
    command.args(arguments).env("MISERLY_SOCKET", &daemon.socket).current_dir(daemon.path(""));
    let output = command.output().expect("a program that starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_job_that_does_not_start_in_time_is_given_up_with_an_exit_code() {
    let daemon = Daemon::new(&queue("miser"));
    let first = daemon.submit(&all("sleep 60", 90.0));
    let cpus = cpus().len().to_string();
    let words =
        ["--no-opportunistic", "--start-within", "1s", "--time", "10s", "--cpus", &cpus, "--", "true"];
    let (code, text) = command(&daemon, &[&["run"][..], &words].concat());
    assert_eq!(code, Some(123), "{text}");
    assert!(text.contains("given up unless it starts by"), "{text}");
    let given_up = daemon.job(first + 1);
    assert!(matches!(given_up.phase, Phase::Failed { why: Failure::NotInTime, .. }), "{:?}", given_up.phase);
    let (_, text) = command(&daemon, &["queue", "--all"]);
    assert!(text.contains("given up"), "{text}");
    let (code, text) = command(&daemon, &["submit", "--start-within", "soon", "--time", "10s", "true"]);
    assert!(code == Some(2) && text.contains("--start-within"), "{text}");
}

#[test]
fn a_job_runs_past_its_limit_until_another_one_needs_its_place() {
    let daemon = Daemon::new(&exact_queue("miser"));
    let soft = Submission { overrun_if_idle: true, ..all("exec sleep 100", 3.0) };
    let first = daemon.submit(&Submission { overrun_if_idle: true, ..all("sleep 8", 3.0) });
    let ended = daemon.wait(first);
    assert!(matches!(ended.phase, Phase::Done { .. }), "{:?}", ended.phase);
    assert!(ended.overrun.is_some_and(|overrun| overrun >= 4.0), "{:?}", ended.overrun);
    let soft = daemon.submit(&soft);
    std::thread::sleep(std::time::Duration::from_secs(6));
    assert!(matches!(daemon.job(soft).phase, Phase::Running(_)));
    let next = daemon.submit(&all("true", 5.0));
    let next = daemon.wait(next);
    kept_but_for_stalls(&next);
    let ended = daemon.wait(soft);
    assert!(matches!(ended.phase, Phase::Killed { by: KilledBy::Time, .. }), "{:?}", ended.phase);
}
