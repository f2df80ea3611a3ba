//! Streams of events over a daemon with real jobs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::process::{Child, ChildStdout, Command, Stdio};

use miserly_api::client::ClientError;
use miserly_api::model::{DaemonEvent, JobView, JobsEvent, Phase, Submission};
use miserly_test_support::Requirement;
use rustix::process::{Uid, geteuid};

use crate::support::{Daemon, SOON, cpus, has_two_cpus, now, queue, sh, until};

/// The number of an unprivileged user.
const OTHER: u32 = 33;

const UNTIL_GO: &str = "while [ ! -e go ]; do sleep 0.05; done";

/// A job in the folder of the daemon.
fn here(daemon: &Daemon, script: &str) -> Submission {
    Submission { directory: daemon.path(""), ..sh(script, 60.0) }
}

/// Calls `enough` with each event until it returns true, and returns the error that ended the stream before.
fn follow(
    daemon: &Daemon,
    after: Option<i64>,
    mut enough: impl FnMut(&DaemonEvent) -> bool,
) -> Option<ClientError> {
    let begin = now();
    let followed = daemon.client().events(after, |event| {
        assert!(begin.elapsed() < SOON, "the event does not come");
        let enough = event.is_some_and(|event| enough(&event));
        if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    followed.err()
}

/// Returns the jobs of an event.
fn jobs(event: &DaemonEvent) -> Option<&JobsEvent> {
    match event {
        DaemonEvent::Snapshot(jobs) | DaemonEvent::Change(jobs) => Some(jobs),
        DaemonEvent::Forecasts(_) => None,
    }
}

/// Returns a job in an event.
fn find(event: &DaemonEvent, job: i64) -> Option<&JobView> {
    jobs(event)?.jobs.iter().find(|view| view.number == job)
}

#[test]
fn a_stream_has_the_life_of_a_job_and_is_resumed() {
    if !has_two_cpus() {
        return;
    }
    let mut daemon = Daemon::new(&queue("easy"));
    let stays = daemon.submit(&here(&daemon, "while [ ! -e end ]; do sleep 0.05; done"));
    let (mut submitted, mut phases, mut last, mut kinds) = (None, vec![], 0, vec![]);
    let error = follow(&daemon, None, |event| {
        let Some(JobsEvent { journal, .. }) = jobs(event) else { return false };
        assert!(*journal > last, "{journal} after {last}");
        last = *journal;
        kinds.push(matches!(event, DaemonEvent::Snapshot(_)));
        let job = *submitted.get_or_insert_with(|| {
            assert!(find(event, stays).is_some(), "{event:?}");
            daemon.submit(&here(&daemon, UNTIL_GO))
        });
        let Some(view) = find(event, job) else { return false };
        assert_eq!((&view.command, &view.directory), (&None, &None));
        phases.push(view.phase.clone());
        if matches!(view.phase, Phase::Running(_) | Phase::Opportunistic { .. }) {
            fs::write(daemon.path("go"), "").expect("a file");
        }
        view.phase.ended().is_some()
    });
    assert!(error.is_none(), "{error:?}");
    assert!(phases.iter().any(|phase| matches!(phase, Phase::Running(_))), "{phases:?}");
    assert!(matches!(phases.last(), Some(Phase::Done { .. })), "{phases:?}");
    assert!(kinds[0] && !kinds[1..].contains(&true), "one snapshot");

    // The hub of the stream is still there: no snapshot.
    let quick = daemon.submit(&here(&daemon, "exit 0"));
    daemon.wait(quick);
    follow(&daemon, Some(last), |event| {
        assert!(!matches!(event, DaemonEvent::Snapshot(_)), "{event:?}");
        find(event, quick).is_some_and(|view| view.phase.ended().is_some())
    });

    // Another daemon remembers nothing, and its numbers go on.
    daemon.kill();
    daemon.start();
    follow(&daemon, Some(last), |event| {
        let DaemonEvent::Snapshot(JobsEvent { journal, .. }) = event else { panic!("{event:?}") };
        assert!(*journal > last && find(event, stays).is_some() && find(event, quick).is_none());
        true
    });
    fs::write(daemon.path("end"), "").expect("a file");
    daemon.wait(stays);
}

#[test]
fn a_daemon_that_is_killed_ends_a_stream_with_an_error_and_one_that_ends_does_not() {
    for killed in [true, false] {
        let mut daemon = Daemon::new(&queue("easy"));
        let client = daemon.client();
        let (sender, begun) = std::sync::mpsc::channel();
        let stream = std::thread::spawn(move || {
            client.events(None, |event| {
                let _ = sender.send(event.is_some());
                ControlFlow::Continue(())
            })
        });
        assert!(begun.recv().expect("a snapshot"));
        if killed {
            daemon.kill();
        } else {
            daemon.stop();
        }
        let ended = stream.join().expect("a thread that ends");
        assert_eq!(matches!(ended, Err(ClientError::Gone { .. })), killed, "{ended:?}");
        assert_eq!(ended.is_ok(), !killed);
    }
}

/// Starts `miserly events`, and returns its output.
fn command(daemon: &Daemon, options: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_miserly"));
    command.arg("events").arg("--socket").arg(&daemon.socket).args(options);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("a program that starts");
    let output = child.stdout.take().expect("a pipe");
    (child, BufReader::new(output))
}

fn line(output: &mut BufReader<ChildStdout>) -> DaemonEvent {
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    serde_json::from_str(&line).expect("an event")
}

#[test]
fn the_command_prints_a_line_for_each_event_and_ends_with_its_reader_or_the_daemon() {
    let mut daemon = Daemon::new(&queue("easy"));
    let (mut closed, mut output) = command(&daemon, &["--json"]);
    assert!(matches!(line(&mut output), DaemonEvent::Snapshot(_)));
    let job = daemon.submit(&here(&daemon, "exit 0"));
    while find(&line(&mut output), job).is_none() {}
    drop(output);
    assert!(closed.wait().expect("a child").success());

    let (mut interrupted, mut output) = command(&daemon, &[]);
    line(&mut output);
    let pid = rustix::process::Pid::from_child(&interrupted);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a process");
    assert!(interrupted.wait().expect("a child").success());

    let (mut ended, mut output) = command(&daemon, &[]);
    line(&mut output);
    daemon.stop();
    assert!(ended.wait().expect("a child").success());
}

#[test]
fn a_stream_shows_nothing_private_of_other_users() {
    if !Requirement::Root.is_met(geteuid().is_root(), "needs root, to become another user") {
        return;
    }
    let daemon = Daemon::for_everybody("");
    let failed = daemon.submit(&Submission { directory: "/nowhere/private".into(), ..sh("exit 0", 60.0) });
    let mut seen = vec![];
    std::thread::scope(|scope| {
        let (follows, followed) = std::sync::mpsc::channel();
        let daemon = &daemon;
        let seen = &mut seen;
        let other = scope.spawn(move || {
            rustix::thread::set_thread_uid(Uid::from_raw(OTHER)).expect("root");
            follow(daemon, None, |event| {
                let _ = follows.send(());
                seen.extend(jobs(event).into_iter().flat_map(|event| event.jobs.clone()));
                seen.iter().any(|view: &JobView| view.number > failed && view.phase.ended().is_some())
            })
        });
        // What comes after the first event is a change.
        followed.recv().expect("a first event");
        daemon.submit(&Submission { directory: "/nowhere/private".into(), ..sh("exit 0", 60.0) });
        assert!(other.join().expect("a thread that ends").is_none());
    });
    assert!(seen.iter().any(|view| matches!(view.phase, Phase::Failed { .. })), "{seen:?}");
    for view in &seen {
        let text = serde_json::to_string(view).expect("JSON");
        assert!(!text.contains("private") && !text.contains("/bin/sh"), "{text}");
    }
}

#[test]
fn metrics_count_the_starts_of_the_first_round() {
    let mut daemon = Daemon::new(&queue("conservative"));
    let whole = |script: &str| Submission { cpus: cpus().len() as u64, ..here(&daemon, script) };
    let first = daemon.submit(&whole(&format!("touch first; {UNTIL_GO}")));
    let second = daemon.submit(&Submission { no_opportunistic: true, ..whole("exit 0") });
    until("the first job runs", SOON, || daemon.path("first").exists().then_some(()));
    daemon.kill();
    fs::write(daemon.path("go"), "").expect("a file");
    until("it ends without a daemon", SOON, || daemon.has_ended(first).then_some(()));
    daemon.start();
    daemon.wait(second);
    assert!(daemon.job(first).phase.ended().is_some());
    let text = daemon.client().metrics().expect("metrics");
    assert!(text.contains("\nmiserly_job_wait_seconds_count{queue=\"batch\",user="), "{text}");
}

#[test]
fn metrics_count_jobs_and_name_no_job() {
    let daemon = Daemon::new(&queue("conservative"));
    let job = daemon.submit(&here(&daemon, "exit 0"));
    daemon.wait(job);
    daemon.submit(&Submission { hold: true, ..here(&daemon, "exit 0") });
    // The promise of a daemon that stalls is late.
    let kept = daemon.client().status().expect("a status").kept;
    let text = daemon.client().metrics().expect("metrics");
    for line in [
        "miserly_jobs{queue=\"batch\",state=\"running\"} 0",
        "miserly_jobs{queue=\"batch\",state=\"waiting\"} 0",
        "miserly_jobs{queue=\"batch\",state=\"held\"} 1",
        "miserly_promises_given_total 1",
        &format!("miserly_promises_kept_total {kept}"),
        &format!("miserly_job_wait_seconds_count{{queue=\"batch\",user=\"{}\"}} 1", daemon.job(job).user),
        "miserly_start_slack_seconds_count 1",
        "miserly_connections{kind=\"stream\"} 0",
        "# UNIT miserly_batch_duration_seconds seconds",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.ends_with("# EOF\n") && !text.contains("/bin/sh"), "{text}");
}
