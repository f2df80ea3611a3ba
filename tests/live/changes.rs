//! Signals, pauses, GPUs and changes of jobs with real processes, while the daemon is killed.

use std::fs;

use miserly_api::model::{EarlySignal, Exit, JobSignal, Modification, Phase, SignalRequest, Submission};

use crate::same::play;
use crate::support::processes::state;
use crate::support::{Daemon, SOON, has_two_cpus, queue, sh, until};

fn in_folder(daemon: &Daemon, script: &str, time: f64) -> Submission {
    Submission { directory: daemon.path(""), no_opportunistic: true, ..sh(script, time) }
}

/// Counts the signals, and ends at a file.
const COUNTS: &str =
    "trap 'echo got >> signals' USR1; echo $$ > pid; while [ ! -e enough ]; do sleep 0.02; done";

fn signals(daemon: &Daemon) -> usize {
    fs::read_to_string(daemon.path("signals")).unwrap_or_default().lines().count()
}

#[test]
fn a_signal_reaches_the_job_once_even_if_the_daemon_is_killed_after_it() {
    let mut daemon = Daemon::of_policy("miser");
    let job = daemon.submit(&in_folder(&daemon, COUNTS, 100.0));
    daemon.pid_in("pid");
    let usr1 = SignalRequest { signal: JobSignal::Usr1, main: true };
    for nth in 1..=3 {
        daemon.client().signal(job, &usr1).expect("it runs");
        daemon.kill();
        daemon.start();
        until("the signal", SOON, || (signals(&daemon) == nth).then_some(()));
    }
    fs::write(daemon.path("enough"), "").expect("a file");
    assert!(matches!(daemon.wait(job).phase, Phase::Done { exit: Exit::Code(0), .. }));
    assert_eq!(signals(&daemon), 3, "none came twice");
    assert!(daemon.client().signal(job, &usr1).is_err());
}

#[test]
fn a_signal_to_all_processes_ends_a_job_without_a_trap() {
    let daemon = Daemon::of_policy("miser");
    let job = daemon.submit(&in_folder(&daemon, "echo $$ > pid; sleep 100", 100.0));
    daemon.pid_in("pid");
    daemon.client().signal(job, &SignalRequest { signal: JobSignal::Usr2, main: false }).expect("it runs");
    let phase = daemon.wait(job).phase;
    assert!(matches!(phase, Phase::Done { exit: Exit::Signal(12) | Exit::Code(140), .. }), "{phase:?}");
}

#[test]
fn an_early_signal_comes_before_the_end_without_a_daemon() {
    let mut daemon = Daemon::of_policy("miser");
    let signal = Some(EarlySignal { signal: JobSignal::Usr1, main: true, before: 59.0 });
    let script = "trap 'echo saved > saved; exit 0' USR1; echo $$ > pid; while :; do sleep 0.02; done";
    let job = daemon.submit(&Submission { signal, ..in_folder(&daemon, script, 60.0) });
    daemon.pid_in("pid");
    daemon.kill();
    until("the saved work", SOON, || daemon.path("saved").exists().then_some(()));
    daemon.start();
    assert!(matches!(daemon.wait(job).phase, Phase::Done { exit: Exit::Code(0), .. }));
}

#[test]
fn a_paused_job_stands_still_until_it_is_resumed() {
    let mut daemon = Daemon::of_policy("miser");
    let job = daemon.submit(&in_folder(&daemon, "echo $$ > pid; while :; do :; done", 100.0));
    let pid = daemon.pid_in("pid");
    let is = |letter: &str| (state(pid).as_deref() == Some(letter)).then_some(());
    daemon.client().pause(job).expect("it runs");
    until("the stop", SOON, || is("T"));
    daemon.kill();
    daemon.start();
    assert!(daemon.job(job).paused);
    assert!(daemon.client().pause(job).is_err());
    daemon.client().resume(job).expect("it is paused");
    until("the continuation", SOON, || is("R"));
    // A paused job can be ended.
    daemon.client().pause(job).expect("it runs");
    daemon.client().cancel(job, false).expect("it can be cancelled");
    assert!(matches!(daemon.wait(job).phase, Phase::Killed { .. }));
}

#[test]
fn jobs_see_their_gpus_and_no_others() {
    if !has_two_cpus() {
        return;
    }
    let configuration = queue("miser").replace("[pool]\n", "[pool]\ngpus = 3\n");
    let mut daemon = Daemon::new(&configuration);
    let script =
        "echo \"$MISERLY_JOB_ID:$CUDA_VISIBLE_DEVICES\" >> seen; while [ ! -e enough ]; do sleep 0.02; done";
    let with = |gpus| Submission { gpus, memory: Some(1 << 20), ..in_folder(&daemon, script, 50.0) };
    let first = daemon.submit(&with(Some(2)));
    let second = daemon.submit(&with(Some(2)));
    let seen = || fs::read_to_string(daemon.path("seen")).unwrap_or_default();
    until("the first job", SOON, || seen().contains(&format!("{first}:0,1\n")).then_some(()));
    assert_eq!(daemon.job(second).phase, Phase::Queued);
    let none = daemon.submit(&with(None));
    until("a job without GPUs", SOON, || seen().contains(&format!("{none}:\n")).then_some(()));
    daemon.kill();
    daemon.start();
    assert_eq!(daemon.job(first).has_gpus, [0, 1]);
    fs::write(daemon.path("enough"), "").expect("a file");
    daemon.wait(second);
    let seen = fs::read_to_string(daemon.path("seen")).expect("what they saw");
    assert!(seen.contains(&format!("{second}:0,1\n")), "{seen}");
}

#[test]
fn a_change_outlives_a_kill_and_is_played_again() {
    let mut daemon = Daemon::of_policy("conservative");
    let cpus = crate::support::cpus().len() as u64;
    let wide = |script: &str| Submission { cpus, ..in_folder(&daemon, script, 50.0) };
    let first = daemon.submit(&wide("while [ ! -e enough ]; do sleep 0.02; done"));
    let [second, third] =
        ["echo second >> order", "echo third >> order"].map(|script| daemon.submit(&wide(script)));
    let before = Modification { before: Some(second), time: Some(20.0), ..Modification::default() };
    let moves = daemon.client().modify(third, &before, false).expect("it waits");
    assert!(moves.after.expect("a window").start < moves.before.expect("a window").start);
    daemon.kill();
    daemon.start();
    let view = daemon.job(third);
    assert!((view.time - 20.0).abs() < 1e-6);
    // The wall clock of another daemon may differ by microseconds.
    let start = |window: miserly_api::model::Window| window.start.as_second();
    let now = view.promise.expect("a promise").now;
    assert!(now.map(start).zip(moves.after.map(start)).is_some_and(|(now, then)| now.abs_diff(then) <= 1));
    fs::write(daemon.path("enough"), "").expect("a file");
    for job in [first, second, third] {
        daemon.wait(job);
    }
    assert_eq!(fs::read_to_string(daemon.path("order")).expect("an order"), "third\nsecond\n");
    daemon.stop();
    let played = play(&daemon.state());
    assert_eq!(played["difference"], serde_json::Value::Null, "{played:#}");
}
