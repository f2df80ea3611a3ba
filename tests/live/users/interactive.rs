//! Interactive jobs of users, behind an executor.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use miserly_api::model::{Exit, Phase};

use super::{awake, command_of, refused, text};
use crate::support::Daemon;
use crate::support::accounts::{Account, Accounts};
use crate::support::terminal::Terminal;

/// Returns a command of a user, in the user's folder.
fn command(daemon: &Daemon, user: &Account, program: &[&str]) -> Command {
    let (first, rest) = program.split_first().expect("a program");
    let mut command = Command::new(first);
    command.args(rest).env("MISERLY_SOCKET", &daemon.socket).current_dir(daemon.path(&user.name));
    command.uid(user.uid).gid(user.gid);
    command
}

#[test]
fn a_terminal_is_that_of_the_user_of_the_job() {
    let Some(accounts) = Accounts::new() else { return };
    let (daemon, ann) = (awake(&accounts, ""), &accounts.ann);
    let program = daemon.path("miserly").display().to_string();
    let script = "id -un; stat -c 'of %U' \"$(tty)\"; read -r end; exit 4";
    let run = ["setsid", "--ctty", &program, "run", "--pty", "-t", "1min", "--", "/bin/sh", "-c", script];
    let mut terminal = Terminal::of(command(&daemon, ann, &run));
    terminal.expect(&format!("\r\n{}\r\nof {}\r\n", ann.name, ann.name));
    refused(&command_of(&daemon, &accounts.bob, &["attach", "1"]), "another user's");
    terminal.keys("~d");
    assert_eq!(terminal.code(), Some(0));
    let attach = ["setsid", "--ctty", &program, "attach", "1"];
    let mut again = Terminal::of(command(&daemon, ann, &attach));
    again.expect(&format!("of {}\r\n", ann.name));
    let mut root = Terminal::new(&daemon, &["attach", "1"]);
    again.expect("another client has attached");
    root.keys("\r");
    assert_eq!(root.code(), Some(4));
    let logs = command_of(&daemon, ann, &["logs", "1"]);
    assert!(text(&logs.stdout).contains(&format!("of {}", ann.name)), "{logs:?}");
    // The daemon reads no file of a user, not even for root.
    let part = daemon.client().output(1, &miserly_api::model::OutputRequest::default());
    assert!(part.expect_err("it is refused").to_string().contains("belongs to its user"));
}

#[test]
fn the_input_of_a_user_s_client_reaches_the_user_s_job() {
    let Some(accounts) = Accounts::new() else { return };
    let (daemon, ann) = (awake(&accounts, ""), &accounts.ann);
    let program = daemon.path("miserly").display().to_string();
    let run = [&program, "run", "-q", "-t", "1min", "--", "/bin/sh", "-c", "id -un; cat; exit 3"];
    let mut run = command(&daemon, ann, &run);
    let mut child = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(b"text\n").expect("a pipe");
    let output = child.wait_with_output().expect("it ends");
    let expect = format!("{}\ntext\n", ann.name);
    assert_eq!((text(&output.stdout), output.status.code()), (expect, Some(3)));
    assert!(matches!(daemon.job(1).phase, Phase::Done { exit: Exit::Code(3), .. }));
}
