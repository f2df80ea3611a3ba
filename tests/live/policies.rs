//! Policies other than the usual ones, on real processes: jobs that are suspended for others, and queues that promise nothing.

use std::fs;
use std::process::Output;

use miserly_api::model::{Exit, JobView, KilledBy, Phase, Submission};
use miserly_core::Span;
use miserly_live::history;
use rustix::process::Pid;

use crate::support::{Daemon, SOON, cpus, has_two_cpus, miserly, processes, queue, sh, until};

/// Counts to twenty in a second of running, and exits with 7 when there is a file `go`.
const COUNTS: &str = "echo $$ > pid; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo $i >> counted; sleep 0.05; done; while [ ! -e go ]; do sleep 0.05; done; exit 7";

/// A job on all processors.
fn wide(daemon: &Daemon, script: &str, time: f64) -> Submission {
    Submission { cpus: cpus().len() as u64, directory: daemon.path(""), ..sh(script, time) }
}

fn state(job: &JobView) -> &str {
    match job.phase {
        Phase::Running(_) => "running",
        Phase::Suspended(_) => "suspended",
        Phase::Queued => "queued",
        _ => "another",
    }
}

#[track_caller]
fn exit_of(job: &JobView) -> Exit {
    match job.phase {
        Phase::Done { exit, .. } => exit,
        ref other => panic!("job {} came to {other:?}", job.number),
    }
}

/// Whether a process and all that it made are stopped. D: it waits for a child of `vfork` that has stopped.
fn is_stopped(pid: u32) -> bool {
    processes::state(pid).is_some_and(|state| state == "T" || state == "D")
}

/// Processes of the daemon in this folder that are stopped.
fn stopped(daemon: &Daemon) -> Vec<Pid> {
    let number = |pid: &Pid| u32::try_from(pid.as_raw_nonzero().get()).expect("a process");
    processes::of_daemon(&daemon.path("")).into_iter().filter(|pid| is_stopped(number(pid))).collect()
}

/// Two jobs on all processors, the first of which is stopped for the second: the first one's number and process, and the number of
/// the second, which exits with 3 when there is a file `on`.
#[track_caller]
fn stopped_for_another(daemon: &Daemon, script: &str, times: [f64; 2]) -> (i64, u32, i64) {
    let victim = daemon.submit(&wide(daemon, script, times[0]));
    let pid = daemon.pid_in("pid");
    let waits = "while [ ! -e on ]; do echo >> here; sleep 0.05; done; exit 3";
    let newcomer = daemon.submit(&wide(daemon, waits, times[1]));
    until("the newcomer runs", SOON, || daemon.path("here").exists().then_some(()));
    until("the victim is stopped", SOON, || is_stopped(pid).then_some(()));
    assert_eq!((state(&daemon.job(victim)), state(&daemon.job(newcomer))), ("suspended", "running"));
    (victim, pid, newcomer)
}

/// The victim's whole output, as if nothing had happened to it.
#[track_caller]
fn check_counted(daemon: &Daemon) {
    let counted = fs::read_to_string(daemon.path("counted")).expect("its output");
    let numbers: Vec<u32> = counted.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<u32>>());
}

#[test]
fn immediate_service_stops_a_job_and_a_killed_daemon_leaves_nothing_stopped_for_ever() {
    let policy = "immediate(policy=fcfs-backfill, quantum=30s, after=0s)";
    let mut daemon = Daemon::new(&format!("orphan-resume-delay = 1\n{}", queue(policy)));
    let (victim, pid, newcomer) = stopped_for_another(&daemon, COUNTS, [60.0, 60.0]);
    let length = |name: &str| fs::metadata(daemon.path(name)).expect("its output").len();
    let (stands, enough) = (length("counted"), length("here") + 5);
    until("the newcomer does something", SOON, || (length("here") >= enough).then_some(()));
    assert_eq!(length("counted"), stands, "a stopped job does nothing");
    daemon.kill();
    until("it goes on with no daemon", SOON, || (!is_stopped(pid)).then_some(()));
    // The next daemon takes up what the one before it meant.
    daemon.start();
    until("it is stopped again", SOON, || is_stopped(pid).then_some(()));
    assert_eq!((state(&daemon.job(victim)), state(&daemon.job(newcomer))), ("suspended", "running"));
    daemon.kill();
    fs::write(daemon.path("on"), "").expect("a file");
    daemon.start();
    assert_eq!(exit_of(&daemon.wait(newcomer)), Exit::Code(3));
    fs::write(daemon.path("go"), "").expect("a file");
    assert_eq!(exit_of(&daemon.wait(victim)), Exit::Code(7));
    check_counted(&daemon);
    daemon.wait_for_all();
    assert_eq!(stopped(&daemon), []);
}

/// What `miserly submit` says of a job on all processors.
fn submitted(daemon: &Daemon, script: &str) -> Output {
    let (socket, cpus) = (daemon.path("socket"), cpus().len().to_string());
    let socket = socket.to_string_lossy();
    let options = ["--socket", &*socket, "--time", "60s", "--cpus", &cpus, "--directory", "/"];
    let command = ["--output", "/dev/null", "--", "/bin/sh", "-c", script];
    miserly(&[&["submit"], &options[..], &command[..]].concat())
}

#[test]
fn a_queue_that_promises_nothing_says_so_and_starts_jobs() {
    let daemon = Daemon::of_policy("soon");
    let wait = format!("while [ ! -e {} ]; do sleep 0.05; done", daemon.path("go").display());
    let first = submitted(&daemon, &wait);
    let said = String::from_utf8_lossy(&first.stdout).into_owned();
    assert!(first.status.success() && said.contains("has started"), "{first:?}");
    let second = submitted(&daemon, "exit 5");
    let said = String::from_utf8_lossy(&second.stdout).into_owned();
    assert!(second.status.success() && said.contains("no start is promised"), "{second:?}");
    assert!(daemon.job(2).promise.is_none());
    let status = daemon.client().status().expect("a status");
    assert_eq!((status.queues[0].promises.as_str(), status.promises), ("nothing", 0));
    fs::write(daemon.path("go"), "").expect("a file");
    assert_eq!(exit_of(&daemon.wait(1)), Exit::Code(0));
    assert_eq!(exit_of(&daemon.wait(2)), Exit::Code(5));
}

#[test]
fn what_no_process_can_do_is_refused_by_the_check() {
    for (policy, reason) in [
        ("eqspatial(keep_work=true)", "loses its work"),
        ("lsf", "no table of job classes has a host \"batch\""),
        ("immediate(keep_work=true)", "loses its work"),
        ("soon(quantum=5s, keep_work=true)", "loses its work"),
        ("immediate(policy=eqspatial)", "eqspatial"),
    ] {
        let daemon = Daemon::asleep(&queue(policy));
        let file = daemon.path("daemon.toml");
        let checked = miserly(&["daemon", "--check", &file.to_string_lossy()]);
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(!checked.status.success(), "{policy}: {checked:?}");
        assert!(said.contains("daemon.toml:6:") && said.contains(reason), "{policy}: {said}");
    }
    let daemon = Daemon::asleep(&queue("immediate(after=5m)"));
    let checked = miserly(&["daemon", "--check", &daemon.path("daemon.toml").to_string_lossy()]);
    assert!(checked.status.success(), "{checked:?}");
}

/// A table of classes with one job at a time of the only size.
const CLASSES: &str = r#"
[[classes.size]]
name = "small"
cpus = 1
[[classes.length]]
name = "any"
time = "1d"
[[classes.host]]
hosts = ["batch"]
order = [{ size = "small", limit = 1 }]
"#;

#[test]
fn classes_of_a_configuration_hold_in_its_queue_and_after_a_restart() {
    if !has_two_cpus() {
        return;
    }
    let mut daemon = Daemon::new(&(queue("lsf") + CLASSES));
    let narrow = |script: &str| Submission { cpus: 1, ..wide(&daemon, script, 600.0) };
    let waits = |file: &str| format!("while [ ! -e {file} ]; do sleep 0.05; done; exit 3");
    let (first, second) = (narrow(&waits("first")), narrow("exit 4"));
    let beyond = Submission { cpus: 2, ..narrow("exit 5") };
    let (first, second) = (daemon.submit(&first), daemon.submit(&second));
    until("the first one runs", SOON, || (state(&daemon.job(first)) == "running").then_some(()));
    assert_eq!(state(&daemon.job(second)), "queued", "a processor is free, and the class is full");
    let refused = daemon.client().submit(&beyond).expect_err("it is beyond the classes").to_string();
    assert!(refused.contains("class"), "{refused}");
    daemon.stop();
    daemon.start();
    assert_eq!((state(&daemon.job(first)), state(&daemon.job(second))), ("running", "queued"));
    fs::write(daemon.path("first"), "").expect("a file");
    assert_eq!((exit_of(&daemon.wait(first)), exit_of(&daemon.wait(second))), (Exit::Code(3), Exit::Code(4)));
}

/// Where a job has written its processors, each time it looked.
fn seen_on(daemon: &Daemon) -> Vec<String> {
    let text = fs::read_to_string(daemon.path("on-cpus")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Writes the number of its process, and on which processors it is, now and when it was let go on; then it exits with 7.
const LOOKS: &str = "look() { grep Cpus_allowed_list /proc/self/status >> on-cpus; }; echo $$ > pid; look; while [ ! -e go ]; do sleep 0.05; done; look; exit 7";

/// A queue of its own for selective suspension, which looks every second.
fn selective() -> String {
    queue("ss(sf=1.5, period=1s)")
}

#[test]
fn a_long_job_is_suspended_for_a_short_one_and_comes_back_to_its_processors() {
    if !has_two_cpus() {
        return;
    }
    let daemon = Daemon::new(&selective());
    let narrow = |script: &str, time| Submission { cpus: 1, ..wide(&daemon, script, time) };
    // The long one has the second processor; when it comes back, the lowest ones are free.
    let waits = |file: &str| format!("while [ ! -e {file} ]; do sleep 0.05; done; exit 3");
    let first = daemon.submit(&narrow(&waits("first"), 600.0));
    let long = daemon.submit(&narrow(LOOKS, 600.0));
    let pid = daemon.pid_in("pid");
    fs::write(daemon.path("first"), "").expect("a file");
    assert_eq!(exit_of(&daemon.wait(first)), Exit::Code(3));
    let short = daemon.submit(&wide(&daemon, &waits("on"), 4.0));
    until("the long one is stopped", SOON, || is_stopped(pid).then_some(()));
    fs::write(daemon.path("on"), "").expect("a file");
    assert_eq!(exit_of(&daemon.wait(short)), Exit::Code(3));
    until("the long one goes on", SOON, || (!is_stopped(pid)).then_some(()));
    fs::write(daemon.path("go"), "").expect("a file");
    let ended = daemon.wait(long);
    assert_eq!((exit_of(&ended), ended.runs), (Exit::Code(7), 1));
    let seen = seen_on(&daemon);
    assert!(seen.len() == 2 && seen[0] == seen[1], "{seen:?}");
    let past = history::finished_jobs(&daemon.state()).expect("a history");
    let away = |number| past.iter().find(|job| job.number == number).map(|job| job.suspended_time);
    assert!(away(long) > Some(Span::ZERO), "its time of suspension is not its runtime: {past:?}");
    assert_eq!((away(first), away(short)), (Some(Span::ZERO), Some(Span::ZERO)), "{past:?}");
}

#[test]
fn a_prediction_ends_no_job_and_outlives_the_daemon() {
    if !has_two_cpus() {
        return;
    }
    let mut daemon = Daemon::of_policy("easy(predict=last2)");
    for _ in 0..2 {
        let short = daemon.submit(&wide(&daemon, "exit 0", 60.0));
        daemon.wait(short);
    }
    // Predicted to end at once. It is corrected, and runs as long as its limit allows.
    let narrow = |script: &str, time| Submission { cpus: 1, ..wide(&daemon, script, time) };
    let submit = |submission: Submission| daemon.submit(&submission);
    let until_file =
        |name: &str, exit| format!("while [ ! -e {name} ]; do echo >> here; sleep 0.05; done; exit {exit}");
    let long = submit(narrow(&until_file("go", 7), 60.0));
    let beyond = submit(narrow("while true; do sleep 0.1; done", 1.0));
    until("the long job does something", SOON, || daemon.path("here").exists().then_some(()));
    let ended = daemon.wait(beyond);
    assert!(matches!(ended.phase, Phase::Killed { by: KilledBy::Time, .. }), "{ended:?}");
    let view = daemon.job(long);
    let Phase::Running(allocation) = &view.phase else { panic!("it came to {view:?}") };
    assert!(view.overdue.is_none(), "{view:?}");
    assert_eq!((allocation.end - allocation.start).get_seconds(), 60, "{view:?}");
    daemon.kill();
    daemon.start();
    // By their requests, the second one would delay the first.
    let head = daemon.submit(&wide(&daemon, "exit 0", 60.0));
    let passes = daemon.submit(&Submission { cpus: 1, ..wide(&daemon, "exit 3", 600.0) });
    assert_eq!(exit_of(&daemon.wait(passes)), Exit::Code(3));
    assert_eq!((state(&daemon.job(head)), state(&daemon.job(long))), ("queued", "running"));
    // Under a policy that predicts nothing, it has its limit.
    daemon.configure(&queue("easy"));
    let pid = daemon.pid().expect("a daemon");
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).expect("a signal");
    until("the configuration is read", SOON, || daemon.log().contains("was read again").then_some(()));
    assert_eq!(state(&daemon.job(long)), "running");
    fs::write(daemon.path("go"), "").expect("a file");
    assert_eq!(exit_of(&daemon.wait(long)), Exit::Code(7));
    daemon.wait(head);
    let replay = miserly(&["replay", "--state", daemon.state().to_str().expect("a path")]);
    assert!(replay.status.success(), "{replay:?}");
}
