//! The prolog and the epilog of a queue, with kills of the daemon while they run.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use miserly_api::model::{Exit, Failure, JobView, KilledBy, Phase, Submission};
use rustix::process::{Signal, kill_process};

use crate::support::{Daemon, Draws, SOON, is_over, miserly, queue, rounds, sh, until};

/// Waits for the file `go`.
const WAIT: &str = "until test -e $D/go; do sleep 0.02; done";
/// Names the attempt in a file.
const PROLOG: &str = "echo $MISERLY_JOB_ID.$MISERLY_ATTEMPT >> $D/prologs";
const EPILOG: &str = "echo $MISERLY_JOB_ID.$MISERLY_ATTEMPT >> $D/epilogs";

/// Returns a daemon whose queue has these shell scripts as programs. `$D` is the folder of the daemon.
fn daemon(fields: &str, prolog: &str, epilog: &str) -> Daemon {
    let mut daemon = Daemon::asleep_with_faults("");
    daemon.configure(&configuration(&daemon, fields, prolog, epilog));
    daemon.start();
    daemon
}

fn configuration(daemon: &Daemon, fields: &str, prolog: &str, epilog: &str) -> String {
    let folder = daemon.path("").display().to_string();
    let program = |name: &str, script: &str| {
        let script = format!("D={folder}; {script}");
        format!("{name} = [\"/bin/sh\", \"-c\", {script:?}]\n{name}-time = \"50s\"\n")
    };
    let queue = queue("miser").replace("cleanup-time = 1\n", "cleanup-time = 60\nopportunistic = false\n");
    let programs = [("prolog", prolog), ("epilog", epilog)];
    let programs = programs.iter().filter(|(_, script)| !script.is_empty());
    let programs: String = programs.map(|(name, script)| program(name, script)).collect();
    format!("{fields}{queue}{programs}")
}

/// Returns a job that names itself in the file `ran`.
fn job(daemon: &Daemon, then: &str) -> Submission {
    let folder = daemon.path("").display().to_string();
    sh(&format!("D={folder}; echo $MISERLY_JOB_ID.$MISERLY_ATTEMPT >> $D/ran; {then}"), 30.0)
}

fn read(daemon: &Daemon, name: &str) -> String {
    fs::read_to_string(daemon.path(name)).unwrap_or_default()
}

#[track_caller]
fn appears(daemon: &Daemon, name: &str) {
    until(name, SOON, || daemon.path(name).exists().then_some(()));
}

fn go(daemon: &Daemon) {
    fs::write(daemon.path("go"), "").expect("a file");
}

fn kill_and_start(daemon: &mut Daemon) {
    daemon.kill();
    daemon.start();
}

#[track_caller]
fn is_done(job: &JobView) {
    assert!(matches!(job.phase, Phase::Done { exit: Exit::Code(0), .. }), "{:?}", job.phase);
    assert_eq!((job.runs, &job.epilog_failed), (1, &None));
}

#[track_caller]
fn prolog_failed(job: &JobView, expect: &str) {
    match &job.phase {
        Phase::Failed { why: Failure::Prolog, message, .. } => assert_eq!(message, expect),
        other => panic!("{other:?}"),
    }
    assert_eq!(job.runs, 1);
}

fn show(daemon: &Daemon, job: i64) -> String {
    let output = miserly(&["show", "--socket", &daemon.socket.display().to_string(), &job.to_string()]);
    String::from_utf8(output.stdout).expect("text")
}

#[track_caller]
fn has_metric(daemon: &Daemon, program: &str, count: u32) {
    let text = daemon.client().metrics().expect("metrics");
    let line = format!("miserly_queue_program_failures_total{{program=\"{program}\"}} {count}");
    assert!(text.lines().any(|found| found == line), "{line}\n{text}");
}

#[test]
fn kills_of_the_daemon_in_the_prolog_repeat_nothing_and_it_ends_without_a_daemon() {
    let mut daemon = daemon("", &format!("{PROLOG}; {WAIT}"), EPILOG);
    let number = daemon.submit(&job(&daemon, ""));
    appears(&daemon, "prologs");
    kill_and_start(&mut daemon);
    assert!(matches!(daemon.job(number).phase, Phase::Running(_)), "{:?}", daemon.job(number).phase);
    assert_eq!(read(&daemon, "ran"), "");
    daemon.kill();
    go(&daemon);
    appears(&daemon, "epilogs");
    daemon.start();
    is_done(&daemon.wait(number));
    assert_eq!(["prologs", "ran", "epilogs"].map(|name| read(&daemon, name)), ["1.1\n"; 3]);
}

#[test]
fn a_prolog_that_fails_without_a_daemon_ends_the_job() {
    let mut daemon = daemon("", &format!("{PROLOG}; {WAIT}; echo no device; exit 3"), EPILOG);
    let number = daemon.submit(&job(&daemon, ""));
    appears(&daemon, "prologs");
    daemon.kill();
    go(&daemon);
    appears(&daemon, "epilogs");
    daemon.start();
    prolog_failed(&daemon.wait(number), "exit 3");
    assert_eq!(["prologs", "ran", "epilogs"].map(|name| read(&daemon, name)), ["1.1\n", "", "1.1\n"]);
    let text = show(&daemon, number);
    assert!(text.contains("prolog failed: exit 3"), "{text}");
    assert!(daemon.log().contains("prolog failed: exit 3; its output: no device"), "{}", daemon.log());
    has_metric(&daemon, "prolog", 1);
    has_metric(&daemon, "epilog", 0);
}

#[test]
fn kills_of_the_daemon_in_the_epilog_repeat_nothing_and_free_nothing() {
    let epilog = format!("{EPILOG}; {WAIT}; touch $D/cleaned");
    let mut daemon = daemon("", PROLOG, &epilog);
    let cpus = crate::support::cpus().len().try_into().expect("a number");
    let first = daemon.submit(&Submission { cpus, ..job(&daemon, "") });
    appears(&daemon, "epilogs");
    let second = daemon.submit(&Submission { cpus, ..job(&daemon, "test -e $D/cleaned") });
    for _ in 0..2 {
        kill_and_start(&mut daemon);
        assert!(matches!(daemon.job(first).phase, Phase::Running(_)), "{:?}", daemon.job(first).phase);
        assert_eq!(read(&daemon, "ran"), "1.1\n");
    }
    go(&daemon);
    for job in [first, second] {
        is_done(&daemon.wait(job));
    }
    assert_eq!(["prologs", "ran", "epilogs"].map(|name| read(&daemon, name)), ["1.1\n2.1\n"; 3]);
    let status = daemon.client().status().expect("a status");
    assert_eq!((status.lost, status.late), (0, 0));
}

#[test]
fn a_failed_epilog_is_shown_and_changes_no_outcome() {
    let mut daemon = daemon("", "", &format!("{EPILOG}; {WAIT}; echo dirty; exit 4"));
    let number = daemon.submit(&job(&daemon, "exit 7"));
    appears(&daemon, "epilogs");
    daemon.kill();
    go(&daemon);
    until("it has ended", SOON, || daemon.has_ended(number).then_some(()));
    daemon.start();
    let ended = daemon.wait(number);
    assert!(matches!(ended.phase, Phase::Done { exit: Exit::Code(7), .. }), "{:?}", ended.phase);
    assert_eq!(ended.epilog_failed.as_deref(), Some("exit 4"));
    assert_eq!(read(&daemon, "epilogs"), "1.1\n");
    let text = show(&daemon, number);
    assert!(text.contains("epilog     failed: exit 4"), "{text}");
    assert!(daemon.log().contains("epilog failed: exit 4; its output: dirty"), "{}", daemon.log());
    has_metric(&daemon, "epilog", 1);
    // With a daemon, too.
    let number = daemon.submit(&job(&daemon, ""));
    assert_eq!(daemon.wait(number).epilog_failed.as_deref(), Some("exit 4"));
    has_metric(&daemon, "epilog", 2);
}

/// The daemon kills a job that its shim has not ended two seconds after a request, and the epilog takes longer.
#[test]
fn a_cancelled_job_keeps_its_epilog() {
    let daemon = daemon("grace = 1\n", "", &format!("{EPILOG}; {WAIT}; touch $D/cleaned"));
    let number = daemon.submit(&job(&daemon, "trap '' TERM; while :; do sleep 0.1; done"));
    appears(&daemon, "ran");
    daemon.client().cancel(number, false).expect("it is cancelled");
    appears(&daemon, "epilogs");
    daemon.set_ahead(10.0);
    // The daemon handles what is due before it answers.
    assert!(matches!(daemon.job(number).phase, Phase::Running(_)), "{:?}", daemon.job(number).phase);
    go(&daemon);
    let ended = daemon.wait(number);
    assert!(matches!(ended.phase, Phase::Killed { by: KilledBy::User, .. }), "{:?}", ended.phase);
    assert_eq!(ended.epilog_failed, None);
    assert!(daemon.path("cleaned").exists());
}

#[test]
fn a_window_that_ends_in_the_prolog_fails_the_job_once() {
    let daemon = daemon("", &format!("{PROLOG}; sleep 1000"), EPILOG);
    let number = daemon.submit(&job(&daemon, ""));
    appears(&daemon, "prologs");
    daemon.set_ahead(40.0);
    prolog_failed(&daemon.wait(number), "the window of the job ended before it");
    assert_eq!(["ran", "epilogs"].map(|name| read(&daemon, name)), ["", "1.1\n"]);
}

#[test]
fn a_reload_does_not_change_the_programs() {
    let daemon = daemon("", PROLOG, "");
    daemon.configure(&configuration(&daemon, "", "true", ""));
    kill_process(daemon.pid().expect("it runs"), Signal::HUP).expect("a signal");
    until("it refuses", SOON, || daemon.log().contains("other programs of queues").then_some(()));
    let number = daemon.submit(&job(&daemon, ""));
    is_done(&daemon.wait(number));
    assert_eq!(read(&daemon, "prologs"), "1.1\n");
}

/// The daemon dies at random instants. Whatever it did, no attempt has a program twice.
#[test]
fn random_kills_of_the_daemon_repeat_no_program() {
    let mut draws = Draws::new(7);
    let mut daemon = daemon("", &format!("{PROLOG}; sleep 0.03"), &format!("{EPILOG}; sleep 0.03"));
    for _ in 0..rounds() {
        for _ in 0..2 {
            daemon.submit(&job(&daemon, "sleep 0.03"));
        }
        sleep(Duration::from_millis(draws.below(200)));
        kill_and_start(&mut daemon);
    }
    daemon.wait_for_all();
    let jobs = daemon.history();
    assert_eq!(jobs.len() as u64, 2 * rounds());
    for job in &jobs {
        assert!(is_over(&job.phase) && matches!(job.phase, Phase::Done { .. }), "{:?}", job.phase);
    }
    let [prologs, ran, epilogs] = ["prologs", "ran", "epilogs"].map(|name| {
        let mut lines: Vec<String> = read(&daemon, name).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    });
    assert_eq!(prologs.len(), jobs.len(), "{prologs:?}");
    let mut once = prologs.clone();
    once.dedup();
    assert_eq!(once, prologs);
    assert_eq!((&ran, &epilogs), (&prologs, &prologs));
}
