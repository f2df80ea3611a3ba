//! Jobs with a terminal.

use std::fs;

use miserly_api::model::{Exit, Phase};
use rustix::process::Signal;

use super::{output, running, text};
use crate::support::terminal::Terminal;
use crate::support::{Daemon, SOON, until};

/// Prints sizes and lines until a line `exit`.
const SHELL: &str = "test -t 0 && test -t 1 && test -t 2 && stty size; echo ready; while read -r line; do \
    case $line in exit) exit 5;; size) stty size;; *) echo \"<$line>\";; esac; done";

fn run(daemon: &Daemon, script: &str) -> Terminal {
    Terminal::new(daemon, &["run", "--pty", "-t", "1min", "-o", "out", "--", "/bin/sh", "-c", script])
}

#[test]
fn a_job_has_the_terminal_of_its_client() {
    let daemon = Daemon::of_policy("miser");
    let mut terminal = run(&daemon, SHELL);
    terminal.expect("Enter ~ . detaches");
    terminal.expect("ready");
    assert!(!terminal.is_usual(), "each key is the job's");
    terminal.resize(40, 132);
    until("the size follows", SOON, || {
        terminal.keys("size\rx\r");
        terminal.expect("<x>");
        fs::read_to_string(daemon.path("out")).ok()?.contains("40 132").then_some(())
    });
    terminal.keys("exit\r");
    assert_eq!(terminal.code(), Some(5));
    assert!(terminal.is_usual());
    let logs = text(&output(&daemon, &["logs", "1"]).stdout);
    assert!(logs.starts_with("24 80\r\nready\r\n"), "{logs}");
}

#[test]
fn an_interrupt_at_the_terminal_is_the_job_s() {
    let daemon = Daemon::of_policy("miser");
    let mut terminal = run(&daemon, "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 1; done");
    terminal.expect("ready");
    terminal.keys("\u{3}");
    terminal.expect("caught");
    assert_eq!(terminal.code(), Some(3));
    assert!(terminal.is_usual());
}

#[test]
fn a_user_detaches_and_attaches_again() {
    let daemon = Daemon::of_policy("miser");
    let mut terminal = run(&daemon, SHELL);
    terminal.expect("ready");
    terminal.keys("one\r");
    terminal.expect("<one>");
    terminal.keys("\r~.");
    terminal.expect("detached from job 1, which continues");
    assert_eq!(terminal.code(), Some(0));
    assert!(terminal.is_usual());
    let mut again = Terminal::new(&daemon, &["attach", "1"]);
    again.expect("<one>");
    again.keys("two\r");
    again.expect("<two>");
    // The newest client counts.
    let mut third = Terminal::new(&daemon, &["attach", "1"]);
    third.expect("<two>");
    again.expect("another client has attached");
    assert_eq!(again.code(), Some(125));
    assert!(again.is_usual());
    third.keys("exit\r");
    assert_eq!(third.code(), Some(5));
    let ended = output(&daemon, &["attach", "1"]);
    assert!(text(&ended.stderr).contains("job 1 has ended"), "{ended:?}");
}

#[test]
fn a_job_outlives_its_client() {
    let daemon = Daemon::of_policy("miser");
    let mut terminal = run(&daemon, SHELL);
    terminal.expect("ready");
    terminal.signal(Signal::KILL);
    assert_eq!(terminal.code(), None);
    assert!(matches!(daemon.job(1).phase, Phase::Running(_)));
    let mut again = Terminal::new(&daemon, &["attach", "1"]);
    again.expect("ready");
    for signal in [Signal::TERM, Signal::HUP] {
        again.signal(signal);
        assert_eq!(again.code(), Some(128 + signal.as_raw()));
        assert!(again.is_usual(), "{signal:?}");
        again = Terminal::new(&daemon, &["attach", "1"]);
        again.expect("ready");
    }
    again.keys("exit\r");
    assert_eq!(again.code(), Some(5));
    assert!(matches!(daemon.wait(1).phase, Phase::Done { exit: Exit::Code(5), .. }));
}

#[test]
fn a_session_outlives_its_daemon() {
    let mut daemon = Daemon::of_policy("miser");
    let mut terminal = run(&daemon, SHELL);
    terminal.expect("ready");
    daemon.kill();
    terminal.keys("one\r");
    terminal.expect("<one>");
    daemon.start();
    terminal.keys("two\r");
    terminal.expect("<two>");
    let mut again = Terminal::new(&daemon, &["attach", "1"]);
    again.expect("<two>");
    daemon.kill();
    again.keys("exit\r");
    daemon.start();
    assert_eq!(again.code(), Some(5));
}

/// The client is stopped while the job prints more than all buffers hold.
#[test]
fn a_stopped_client_holds_nothing_up_and_loses_nothing() {
    const LINES: usize = 200_000;
    let daemon = Daemon::of_policy("miser");
    let script = format!("echo ready; read -r go; seq {LINES}; touch done; read -r end; exit 6");
    let mut terminal = run(&daemon, &script);
    terminal.expect("ready");
    terminal.signal(Signal::STOP);
    let mut second = Terminal::new(&daemon, &["attach", "1"]);
    second.expect("ready");
    second.signal(Signal::STOP);
    // A third one makes the job print. Nobody reads from the others.
    let mut third = Terminal::new(&daemon, &["attach", "1"]);
    third.expect("ready");
    third.keys("\r");
    third.expect("\r\n100\r\n");
    third.signal(Signal::STOP);
    until("the job goes on", SOON, || daemon.path("done").exists().then_some(()));
    third.signal(Signal::CONT);
    third.expect(&format!("\r\n{LINES}\r\n"));
    third.keys("\r");
    assert_eq!(third.code(), Some(6));
    assert_eq!(running_or_none(&daemon), None);
}

fn running_or_none(daemon: &Daemon) -> Option<i64> {
    let jobs = daemon.client().jobs(&miserly_api::model::Filter::default()).expect("a list");
    jobs.first().map(|job| job.number)
}

#[test]
fn a_shell_has_a_window_of_its_own() {
    let daemon = Daemon::of_policy("miser");
    let mut command = std::process::Command::new("setsid");
    command.args(["--ctty", env!("CARGO_BIN_EXE_miserly"), "alloc", "--time", "1h"]);
    command.env("MISERLY_SOCKET", &daemon.socket).env("SHELL", "/bin/sh").env("PS1", "prompt> ");
    let mut terminal = Terminal::of({
        command.current_dir(daemon.path(""));
        command
    });
    terminal.expect("resources reserved until");
    terminal.expect("runs until");
    terminal.expect("prompt> ");
    let job = running(&daemon);
    assert_eq!((&job.name[..], job.opportunistic), ("alloc", false));
    terminal.keys("echo $MISERLY_JOB_ID$MISERLY_CPUS; exit 9\r");
    terminal.expect("\r\n11\r\n");
    assert_eq!(terminal.code(), Some(9));
}
