//! Jobs with the input of a client, and without a terminal.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use miserly_api::model::{Exit, KilledBy, Phase, Submission};
use rustix::process::{Pid, Signal, kill_process};

use super::{command, output, running, text};
use crate::support::{Daemon, SOON, cpus, is_over, sh, until};

#[test]
fn ten_megabytes_reach_a_job_through_its_standard_input() {
    let daemon = Daemon::of_policy("miser");
    let mut run = command(&daemon, &["run", "-q", "-t", "1min", "--", "wc", "-c"]);
    let mut child = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(&vec![b'x'; 10 << 20]).expect("all of it");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((text(&output.stdout).trim(), output.status.code()), ("10485760", Some(0)));
}

#[test]
fn output_and_exit_code_are_those_of_the_job() {
    let daemon = Daemon::of_policy("miser");
    let script = "echo out; echo err >&2; exit 7";
    let run = output(&daemon, &["run", "-t", "1min", "--", "/bin/sh", "-c", script]);
    assert_eq!((&text(&run.stdout)[..], run.status.code()), ("out\nerr\n", Some(7)));
    assert!(text(&run.stderr).starts_with("job 1: started, resources reserved until"), "{run:?}");
    let run = output(&daemon, &["run", "-qt1min", "-e", "err.%j", "--", "/bin/sh", "-c", script]);
    let both = (text(&run.stdout), text(&run.stderr));
    assert_eq!((both, run.status.code()), (("out\n".into(), "err\n".into()), Some(7)));
    let run = output(&daemon, &["run", "-qt1min", "--", "/bin/sh", "-c", "kill -9 $$"]);
    assert_eq!(run.status.code(), Some(137));
}

#[test]
fn an_input_file_has_the_placeholders_of_output_files() {
    let daemon = Daemon::of_policy("miser");
    fs::write(daemon.path("in.1"), "one\n").expect("a file");
    let run = output(&daemon, &["run", "-q", "-t", "1min", "-i", "in.%j", "--", "cat"]);
    assert_eq!((&text(&run.stdout)[..], run.status.code()), ("one\n", Some(0)));
    // The client does not know the name, so the attempt fails.
    let run = output(&daemon, &["run", "-t", "1min", "-i", "in.%j", "--", "cat"]);
    assert_eq!(run.status.code(), Some(126), "{run:?}");
    assert!(text(&run.stderr).contains("in.2 for input"), "{run:?}");
    let refused = output(&daemon, &["submit", "-t", "1min", "--input", "gone", "cat"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--input gone: the file does not exist"), "{refused:?}");
}

/// A command whose job has printed `ready`, so that it is attached.
struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
    job: i64,
}

impl Running {
    #[track_caller]
    fn new(daemon: &Daemon, script: &str) -> Running {
        let arguments = ["run", "-q", "-t", "1min", "-o", "out", "--", "/bin/sh", "-c", script];
        let mut run = command(daemon, &arguments);
        let mut child = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        Running { child, output, job: running(daemon).number }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Returns the exit code, and the rest of the output.
    fn end(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        (self.child.wait().expect("a child").code(), rest)
    }
}

#[test]
fn an_interrupt_is_the_job_s() {
    let daemon = Daemon::of_policy("miser");
    let run = Running::new(&daemon, "trap 'echo caught; exit 3' INT; echo ready; read -r end");
    run.signal(Signal::INT);
    let job = run.job;
    assert_eq!(run.end(), (Some(3), "caught\n".to_owned()));
    assert!(matches!(daemon.job(job).phase, Phase::Done { exit: Exit::Code(3), .. }));
}

#[test]
fn a_job_that_ignores_an_interrupt_is_cancelled_by_two() {
    let daemon = Daemon::of_policy("miser");
    let run = Running::new(&daemon, "trap 'echo caught' INT; echo ready; while :; do sleep 0.1; done");
    let job = run.job;
    let output = daemon.path("out");
    let mut interrupts = 0;
    until("it is cancelled", SOON, || {
        // On a busy machine they may be more than a second apart.
        if !is_over(&daemon.job(job).phase) && interrupts < 20 {
            run.signal(Signal::INT);
            interrupts += 1;
        }
        is_over(&daemon.job(job).phase).then_some(())
    });
    assert!(matches!(daemon.job(job).phase, Phase::Killed { by: KilledBy::User, .. }));
    assert!(fs::read_to_string(output).expect("a file").contains("caught"));
}

#[test]
fn a_hangup_leaves_the_job_alone_and_an_interrupt_before_the_start_cancels_it() {
    let daemon = Daemon::of_policy("miser");
    let run = Running::new(&daemon, "echo ready; sleep 60");
    let job = run.job;
    run.signal(Signal::HUP);
    assert_eq!(run.end(), (Some(129), String::new()));
    assert!(matches!(daemon.job(job).phase, Phase::Running(_)));
    let all = cpus().len().to_string();
    let waits = ["run", "-t", "1min", "--no-opportunistic", "-c", &all, "--", "true"];
    let mut waiting = command(&daemon, &waits).spawn().expect("it starts");
    until("it waits", SOON, || daemon.client().job(job + 1).ok());
    kill_process(Pid::from_child(&waiting), Signal::INT).expect("it runs");
    assert_eq!(waiting.wait().expect("it ends").code(), Some(130));
    assert!(matches!(daemon.wait(job + 1).phase, Phase::Killed { by: KilledBy::User, .. }));
    assert!(matches!(daemon.job(job).phase, Phase::Running(_)));
}

/// The program that prepares the command repeats a step that lacks a resource.
#[test]
fn a_signal_while_it_attaches_cancels_the_job() {
    let daemon = Daemon::of_policy("miser");
    fs::write(daemon.state().join("attempts/shortage"), "open-outputs 11 1000000").expect("a file");
    fs::write(daemon.path("old"), "old content\n").expect("a file");
    for (job, signal) in [(1, Signal::INT), (2, Signal::TERM)] {
        let arguments = ["run", "-q", "-t", "1min", "-o", "old", "--", "cat"];
        let run = command(&daemon, &arguments).stdout(Stdio::piped()).spawn().expect("it starts");
        until("it starts", SOON, || {
            let view = daemon.client().job(job).ok()?;
            matches!(view.phase, Phase::Running(_)).then_some(())
        });
        // It attaches.
        std::thread::sleep(Duration::from_millis(300));
        kill_process(Pid::from_child(&run), signal).expect("it runs");
        let output = run.wait_with_output().expect("it ends");
        assert_eq!((&text(&output.stdout)[..], output.status.code()), ("", Some(128 + signal.as_raw())));
        assert!(matches!(daemon.wait(job).phase, Phase::Killed { by: KilledBy::User, .. }));
    }
}

#[test]
fn a_job_that_never_ran_has_no_output() {
    let daemon = Daemon::of_policy("miser");
    fs::write(daemon.path("old"), "old content\n").expect("a file");
    let run = output(&daemon, &["run", "-q", "-t", "1min", "-o", "old", "-i", "in.%j", "--", "cat"]);
    assert_eq!((&text(&run.stdout)[..], run.status.code()), ("", Some(126)), "{run:?}");
    let arguments = ["run", "-q", "-t", "1min", "--hold", "-o", "old", "--", "true"];
    let run = command(&daemon, &arguments).stdout(Stdio::piped()).spawn().expect("it starts");
    until("it is held", SOON, || daemon.client().job(2).ok());
    daemon.client().cancel(2, false).expect("it is cancelled");
    let ended = run.wait_with_output().expect("it ends");
    assert_eq!((&text(&ended.stdout)[..], ended.status.code()), ("", Some(143)));
}

#[test]
fn another_attempt_gets_the_end_of_the_input() {
    let daemon = Daemon::of_policy("miser");
    let script = "echo ready; cat; test -e again && exit 6; touch again; sleep 60";
    let mut run = Running::new(&daemon, script);
    let mut input = run.child.stdin.take().expect("a pipe");
    input.write_all(b"text\n").expect("a pipe");
    let mut line = String::new();
    run.output.read_line(&mut line).expect("a line");
    assert_eq!(line, "text\n");
    fs::write(daemon.path("again"), "").expect("a file");
    let requeued = output(&daemon, &["requeue", &run.job.to_string()]);
    assert!(requeued.status.success(), "{requeued:?}");
    let job = run.job;
    let (code, rest) = run.end();
    assert_eq!((code, daemon.job(job).attempts), (Some(6), 2), "{rest}");
    drop(input);
}

#[test]
fn a_daemon_that_is_killed_takes_no_job_from_its_client() {
    let mut daemon = Daemon::of_policy("miser");
    let mut run = Running::new(&daemon, "echo ready; cat; exit 4");
    let mut input = run.child.stdin.take().expect("a pipe");
    daemon.kill();
    input.write_all(b"without a daemon\n").expect("a pipe");
    let mut line = String::new();
    run.output.read_line(&mut line).expect("a line");
    assert_eq!(line, "without a daemon\n");
    daemon.start();
    drop(input);
    assert_eq!(run.end(), (Some(4), String::new()));
}

#[test]
fn a_job_without_a_relay_has_no_clients() {
    let daemon = Daemon::of_policy("miser");
    let job = daemon.submit(&sh("sleep 60", 60.0));
    until("it starts", SOON, || matches!(daemon.job(job).phase, Phase::Running(_)).then_some(()));
    let refused = output(&daemon, &["attach", &job.to_string()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("takes no input"), "{refused:?}");
    let gone = output(&daemon, &["attach", "99"]);
    assert_eq!(gone.status.code(), Some(1));
    let no_terminal = output(&daemon, &["run", "--pty", "-t", "1min", "--", "true"]);
    assert_eq!(no_terminal.status.code(), Some(2));
    assert!(text(&no_terminal.stderr).contains("no terminal"), "{no_terminal:?}");
    let both = Submission { interaction: Some(miserly_api::model::Interaction::Stdin), ..sh("true", 5.0) };
    let array = Some(miserly_api::model::Array::range(0, 1, 1));
    let error = daemon.client().submit(&Submission { array, ..both }).expect_err("it is refused");
    assert!(error.to_string().contains("a job of an array has no clients"), "{error}");
}
