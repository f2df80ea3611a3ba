//! Suspended jobs that a command of the operator writes out, on real processes.

use std::fs;

use miserly_api::model::{Exit, JobView, Phase, Submission};

use crate::support::{Daemon, SOON, cpus, miserly, processes, sh, until};

/// Counts in a file from `$n` on, and exits with 7 when there is a file `go`.
const COUNTS: &str = "echo $$ >> pids; while [ ! -e go ]; do n=$((n+1)); echo $n > new; mv new count; sleep 0.02; done; exit 7";
/// Saves the counter of a job, named by its process, and says what it knows of it.
const SAVES: &str = "test $MISERLY_PID = $(head -n 1 $D/pids) && cp $D/count $D/saved.$MISERLY_JOB_ID && echo $MISERLY_ATTEMPT >> $D/saves";
/// The memory of a job, of which there is less than twice as much.
const MEMORY: u64 = 400 << 20;

/// Returns a daemon that writes jobs out by a script, in some seconds. `$D` is its folder. The restart counts on from the saved
/// counter.
fn daemon(seconds: u64, script: &str) -> Daemon {
    let daemon = Daemon::asleep("");
    let folder = daemon.path("").display().to_string();
    let program = |script: &str| format!("[\"/bin/sh\", \"-c\", {script:?}]");
    let (cpus, rate) = (cpus().len(), (MEMORY >> 10) / seconds);
    let policy =
        format!("ss(criterion=remaining, half_width=false, period=none, overhead=write, rate={rate})");
    let restart = format!(
        "test $OWN = variable || exit 9; n=$(cat saved.$MISERLY_JOB_ID); echo $n > resumed; {COUNTS}"
    );
    daemon.configure(&format!(
        "cleanup-time = 1\n[pool]\ncpus = {cpus}\nmemory = \"600MiB\"\n[[queue]]\nname = \"batch\"\npolicy = \"{policy}\"\n\
         [queue.checkpoint]\ncommand = {}\nrestart = {}\n",
        program(&format!("D={folder}; {script}")),
        program(&restart)
    ));
    daemon
}

/// Returns a job in the folder of the daemon on all processors, with most of the memory.
fn wide(daemon: &Daemon, script: &str, time: f64) -> Submission {
    let mut job = Submission { cpus: cpus().len() as u64, directory: daemon.path(""), ..sh(script, time) };
    job.environment.insert("OWN".into(), "variable".into());
    Submission { memory: Some(MEMORY), restartable: true, ..job }
}

/// Returns a job that counts and runs, its process, and one that waits for its resources until there is a file `on`.
#[track_caller]
fn one_for_another(daemon: &Daemon) -> (i64, u32, i64) {
    let victim = daemon.submit(&wide(daemon, &format!("n=0; {COUNTS}"), 600.0));
    let pid = daemon.pid_in("pids");
    until("it counts", SOON, || (number(daemon, "count") > Some(3)).then_some(()));
    let waits = "touch here; while [ ! -e on ]; do sleep 0.02; done; exit 3";
    (victim, pid, daemon.submit(&wide(daemon, waits, 60.0)))
}

fn number(daemon: &Daemon, name: &str) -> Option<u32> {
    fs::read_to_string(daemon.path(name)).ok()?.trim().parse().ok()
}

fn read(daemon: &Daemon, name: &str) -> String {
    fs::read_to_string(daemon.path(name)).unwrap_or_default()
}

#[track_caller]
fn appears(daemon: &Daemon, name: &str) {
    until(name, SOON, || daemon.path(name).exists().then_some(()));
}

fn touch(daemon: &Daemon, name: &str) {
    fs::write(daemon.path(name), "").expect("a file");
}

fn show(daemon: &Daemon, job: i64) -> String {
    let output = miserly(&["show", "--socket", &daemon.socket.display().to_string(), &job.to_string()]);
    String::from_utf8(output.stdout).expect("text")
}

#[track_caller]
fn is_done(job: &JobView, code: i32) {
    assert!(
        matches!(job.phase, Phase::Done { exit: Exit::Code(exit), .. } if exit == code),
        "{:?}",
        job.phase
    );
}

/// Checks that a job is written out, and continues from its saved counter when the other one has ended.
#[track_caller]
fn continues_from_its_counter(daemon: &Daemon, victim: i64, pid: u32, newcomer: i64) {
    appears(daemon, "here");
    assert_eq!(processes::state(pid), None);
    let job = daemon.job(victim);
    assert!(job.written_out && matches!(job.phase, Phase::Suspended(_)), "{job:?}");
    let text = show(daemon, victim);
    assert!(text.contains("written out"), "{text}");
    let saved = number(daemon, &format!("saved.{victim}")).expect("a saved counter");
    touch(daemon, "on");
    is_done(&daemon.wait(newcomer), 3);
    until("it counts on", SOON, || (number(daemon, "count") > Some(saved + 3)).then_some(()));
    assert_eq!(number(daemon, "resumed"), Some(saved));
    touch(daemon, "go");
    let ended = daemon.wait(victim);
    is_done(&ended, 7);
    assert_eq!((ended.runs, ended.written_out, ended.write_out_failed), (2, false, None));
    assert_eq!(read(daemon, "saves"), "1\n");
}

#[test]
fn a_job_leaves_its_memory_and_continues_from_its_checkpoint() {
    let mut daemon = daemon(3, SAVES);
    daemon.start();
    let (victim, pid, newcomer) = one_for_another(&daemon);
    continues_from_its_counter(&daemon, victim, pid, newcomer);
}

#[test]
fn a_job_whose_checkpoint_fails_begins_anew() {
    let mut daemon = daemon(3, "echo no room; exit 5");
    daemon.start();
    let (victim, pid, newcomer) = one_for_another(&daemon);
    appears(&daemon, "here");
    assert_eq!(processes::state(pid), None);
    let job = daemon.job(victim);
    assert!(!job.written_out && matches!(job.phase, Phase::Queued), "{job:?}");
    assert_eq!(job.write_out_failed.as_deref(), Some("exit 5"));
    let text = show(&daemon, victim);
    assert!(text.contains("checkpoint failed: exit 5; the job began anew"), "{text}");
    assert!(daemon.log().contains("checkpoint failed: exit 5; its output: no room"), "{}", daemon.log());
    touch(&daemon, "go");
    touch(&daemon, "on");
    is_done(&daemon.wait(newcomer), 3);
    let ended = daemon.wait(victim);
    is_done(&ended, 7);
    assert_eq!((ended.runs, daemon.path("resumed").exists()), (2, false));
}

#[test]
fn a_job_whose_checkpoint_takes_too_long_is_killed_with_it() {
    let mut daemon = daemon(1, "echo $$ > $D/saver; sleep 1000");
    daemon.start();
    let (victim, pid, _) = one_for_another(&daemon);
    appears(&daemon, "here");
    let saver = daemon.pid_in("saver");
    until("all are dead", SOON, || {
        [pid, saver].iter().all(|pid| processes::state(*pid).is_none()).then_some(())
    });
    let why = daemon.job(victim).write_out_failed.expect("a failure");
    assert!(why.starts_with("killed after "), "{why}");
}

#[test]
fn a_kill_of_the_daemon_while_the_command_runs_changes_nothing() {
    let script = format!("touch $D/begins; until test -e $D/save; do sleep 0.02; done; {SAVES}");
    let mut daemon = daemon(15, &script);
    daemon.start();
    let (victim, pid, newcomer) = one_for_another(&daemon);
    appears(&daemon, "begins");
    daemon.kill();
    daemon.start();
    assert!(matches!(daemon.job(victim).phase, Phase::Suspended(_)), "{:?}", daemon.job(victim).phase);
    daemon.kill();
    touch(&daemon, "save");
    until("it has ended", SOON, || daemon.has_ended(victim).then_some(()));
    daemon.start();
    assert!(daemon.job(victim).written_out);
    daemon.kill();
    daemon.start();
    continues_from_its_counter(&daemon, victim, pid, newcomer);
}
