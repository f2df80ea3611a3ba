//! `miserly top` beside a real daemon: one frame, its JSON, and a terminal.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use miserly_api::model::{Phase, Submission};
use miserly_test_support::Requirement;
use serde_json::Value;

use crate::support::{Daemon, SOON, is_over, miserly, sh, until, until_or_tell};

/// Returns a daemon with a running job of this name, and the number of the job.
fn with_a_job(name: &str) -> (Daemon, i64) {
    let daemon = Daemon::of_policy("miser");
    let output = Some(daemon.path("out"));
    let script = "echo begun; exec sleep 600";
    let job = daemon.submit(&Submission { name: Some(name.to_owned()), output, ..sh(script, 600.0) });
    until("the job runs", SOON, || matches!(daemon.job(job).phase, Phase::Running(_)).then_some(()));
    (daemon, job)
}

#[test]
fn one_frame_and_its_json() {
    let (daemon, job) = with_a_job("integrate");
    let socket = daemon.socket.to_str().expect("a path in UTF-8");

    for once in [&["--once", "--ascii"][..], &["--ascii"]] {
        let output = miserly(&[&["top", "--socket", socket], once].concat());
        let frame = String::from_utf8(output.stdout).expect("text");
        assert!(output.status.success() && frame.is_ascii(), "{frame}");
        for part in
            ["promises: 1 kept of 1", "batch [", "integrate", "running", &format!("job {job}: runs since")]
        {
            assert!(frame.contains(part), "{part:?} is not in\n{frame}");
        }
        assert!(frame.lines().all(|line| line.len() <= 80), "{frame}");
    }

    let output = miserly(&["top", "--processors", "--once", "--ascii", "--socket", socket]);
    let map = String::from_utf8(output.stdout).expect("text");
    assert!(map.contains("Processors") && map.contains(&format!("a {job} integrate ")), "{map}");

    let output = miserly(&["top", "--json", "--socket", socket]);
    let moment: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let part = &moment["pools"][0]["hosts"][0]["parts"][0];
    assert_eq!((&part["use"], &part["job"], &part["cpus"]), (&"held".into(), &job.into(), &1.into()));
    assert!(part["numbers"][0][0].is_u64(), "{part}");
    assert_eq!(moment["running"][0]["number"], job);
    assert_eq!(moment["running"][0]["name"], "integrate");
    assert_eq!(moment["pools"][0]["held"], 1);
}

#[test]
fn a_stored_state_is_replayed() {
    let (mut daemon, job) = with_a_job("integrate");
    daemon.client().cancel(job, false).expect("it is cancelled");
    daemon.wait(job);
    daemon.stop();
    let state = daemon.state().display().to_string();
    let shown = |options: &[&str]| {
        let output = miserly(&[&["top", "--journal", &state], options].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let frame = shown(&["--once", "--ascii"]);
    assert!(frame.contains("  step 1 s") && frame.contains("integrate"), "{frame}");
    let ended: Value = serde_json::from_str(&shown(&["--json"])).expect("JSON");
    assert_eq!((&ended["ended"][0]["number"], &ended["live"]), (&job.into(), &false.into()));
    let output = miserly(&["top", "--journal", &state, "--json", "--at", "+1h"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && told.contains("after the last known instant"), "{told}");
}

#[test]
fn without_a_daemon_it_names_the_problem() {
    let output = miserly(&["top", "--socket", "/nowhere/socket"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && message.contains("no daemon answers on /nowhere/socket"),
        "{message}"
    );
}

/// A terminal with a program, until this is dropped.
pub(crate) struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        let command = command.arg("-u").args(["-f", "/dev/null", "-S"]).arg(&self.socket).args(arguments);
        let output = command.stdin(Stdio::null()).output().expect("tmux runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns a terminal of 80 x 24 in which a shell runs this line.
    pub(crate) fn new(socket: PathBuf, line: &str) -> Terminal {
        let terminal = Terminal { socket };
        terminal.tmux(&["new-session", "-d", "-x", "80", "-y", "24", line]);
        terminal
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    pub(crate) fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Waits until the screen has a text, in one line or over two, and returns the screen.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> String {
        let has = |screen: &String| screen.contains(text) || screen.replace('\n', " ").contains(text);
        let look = || Some(self.screen()).filter(has);
        until_or_tell(SOON, look, || format!("{text:?} is not on\n{}", self.screen()))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn in_a_terminal() {
    let there = Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success());
    if !Requirement::Tmux.is_met(there, "needs tmux") {
        return;
    }
    let (mut daemon, job) = with_a_job("integrate");
    let (program, socket) = (env!("CARGO_BIN_EXE_miserly"), daemon.socket.display().to_string());
    let line = format!("LC_ALL=C.UTF-8 {program} top --socket {socket}; echo ended with $?; exec sleep 600");
    let terminal = Terminal::new(daemon.path("tmux"), &line);

    terminal.wait_for("[1 all]");
    terminal.wait_for(&format!("job {job}: runs since"));
    terminal.press(&["l"]);
    terminal.wait_for("begun");
    terminal.press(&["q"]);
    terminal.wait_for("[1 all]");

    terminal.tmux(&["resize-window", "-x", "120", "-y", "40"]);
    let screen = until("the bar is longer", SOON, || {
        Some(terminal.screen())
            .filter(|screen| screen.lines().nth(1).is_some_and(|line| line.chars().count() > 80))
    });
    assert_eq!(screen.lines().filter(|line| line.contains("[1 all]")).count(), 1, "{screen}");

    terminal.press(&["c"]);
    terminal.wait_for(&format!("cancels job {job}, which runs since"));
    terminal.press(&["y"]);
    until("the job is cancelled", SOON, || is_over(&daemon.job(job).phase).then_some(()));
    terminal.wait_for("cancelled");

    daemon.kill();
    let screen = terminal.wait_for("NO ANSWER");
    assert!(screen.contains("integrate"), "{screen}");
    daemon.start();
    until("it follows the daemon again", SOON, || (!terminal.screen().contains("NO ANSWER")).then_some(()));

    terminal.press(&["q"]);
    let screen = terminal.wait_for("ended with 0");
    assert!(!screen.contains("[1 all]"), "{screen}");
}

#[test]
fn a_signal_leaves_a_usable_terminal() {
    let there = Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success());
    if !Requirement::Tmux.is_met(there, "needs tmux") {
        return;
    }
    let (daemon, _) = with_a_job("integrate");
    let (program, socket) = (env!("CARGO_BIN_EXE_miserly"), daemon.socket.display().to_string());
    let line = format!(
        "{program} top --socket {socket} & echo $! > {}; fg; stty -a; echo the-terminal-is-back; exec sleep 600",
        daemon.path("pid").display()
    );
    let shell = format!("bash -mc '{line}'");
    let terminal = Terminal::new(daemon.path("tmux"), &shell);
    terminal.wait_for("[1 all]");
    let pid = daemon.pid_in("pid").to_string();
    Command::new("kill").arg(&pid).status().expect("kill runs");
    // No word of the view, whose list of ended jobs is named so.
    let screen = terminal.wait_for("the-terminal-is-back");
    assert!(screen.contains(" icanon") && screen.contains(" echo "), "{screen}");
}
