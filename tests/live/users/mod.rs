//! A daemon that runs jobs as their users: its rights, its files, and what it cannot do. Only root can start it, and create the
//! accounts. Without root these tests report a skip.

mod accounts;
mod attacks;
mod gpus;
mod interactive;
mod life;
mod limits;
mod queue_programs;
mod rights;
mod seals;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use miserly_api::model::{Exit, Phase};
use miserly_launch::AttemptSpec;

use crate::support::accounts::{Account, Accounts};
use crate::support::{Daemon, SOON, processes, queue, until};

/// Returns a daemon of this user, which is not started. Each ordinary user has a folder of the user's name in its folder.
///
/// Its jobs share `/tmp`, in which its folder is.
fn asleep(accounts: &Accounts, more: &str) -> Daemon {
    let configuration = format!(
        "access = \"everybody\"\nuser = \"{}\"\nprivate-folders = false\n{more}{}",
        accounts.daemon.name,
        queue("miser")
    );
    let mut daemon = Daemon::asleep(&configuration);
    fs::set_permissions(daemon.path(""), Permissions::from_mode(0o755)).expect("a folder of one's own");
    daemon.socket = daemon.path("run/miserly/socket");
    for Account { name, uid, gid } in [&accounts.ann, &accounts.bob] {
        let folder = daemon.path(name);
        fs::create_dir(&folder).expect("a folder");
        chown(&folder, Some(*uid), Some(*gid)).expect("a user's folder");
    }
    let program = daemon.path("miserly");
    fs::copy(env!("CARGO_BIN_EXE_miserly"), &program).expect("a copy that all users can run");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("a mode");
    daemon
}

fn awake(accounts: &Accounts, more: &str) -> Daemon {
    let mut daemon = asleep(accounts, more);
    daemon.start();
    daemon
}

/// Runs a command of a user, in the user's folder.
fn command_of(daemon: &Daemon, user: &Account, arguments: &[&str]) -> Output {
    let mut command = Command::new(daemon.path("miserly"));
    command.args(arguments).env("MISERLY_SOCKET", &daemon.socket).current_dir(daemon.path(&user.name));
    command.uid(user.uid).gid(user.gid).output().expect("a program that starts")
}

/// Submits a job of a user and returns its number.
#[track_caller]
fn submit(daemon: &Daemon, user: &Account, options: &[&str], script: &str) -> i64 {
    let arguments = [&["submit", "-q", "--time", "1min"], options, &["--", "/bin/sh", "-c", script]].concat();
    let output = command_of(daemon, user, &arguments);
    assert!(output.status.success(), "{output:?}");
    text(&output.stdout).trim().parse().expect("a number")
}

/// Checks that a command of a user is refused.
#[track_caller]
fn refused(output: &Output, says: &str) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains(says), "{output:?}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns a field of `/proc/PID/status`.
fn status(pid: u32, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.expect("a field").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn pid(daemon: &Daemon) -> u32 {
    daemon.pid().expect("it runs").as_raw_nonzero().get().unsigned_abs()
}

/// Returns the executor of a daemon.
fn executor(daemon: &Daemon) -> Option<u32> {
    let parent = pid(daemon).to_string();
    let is_child = |pid: &u32| processes::stat(*pid, 4).as_ref() == Some(&parent);
    let numbers = fs::read_dir("/proc").expect("/proc").flatten();
    let mut numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_child);
    numbers
        .find(|pid| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|name| name == b"miserly-executor\0"))
}

/// Returns owner, group and mode of a file.
fn rights(path: &Path) -> (u32, u32, u32) {
    let found = fs::symlink_metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (found.uid(), found.gid(), found.mode() & 0o7777)
}

fn spec(daemon: &Daemon, job: i64) -> AttemptSpec {
    let path = daemon.state().join(format!("attempts/{job}.1/spec.json"));
    until("it is launched", SOON, || serde_json::from_slice(&fs::read(&path).ok()?).ok())
}

/// Waits until a job of a user has begun. It is the user's only one.
fn runs(daemon: &Daemon, user: &Account, job: i64) {
    until("it begins", SOON, || daemon.path(&user.name).join("began").exists().then_some(()));
    let phase = daemon.job(job).phase;
    assert!(matches!(phase, Phase::Running(_)), "{phase:?}");
}

fn touch(daemon: &Daemon, user: &Account, name: &str) {
    fs::write(daemon.path(&user.name).join(name), "").expect("a file");
}

#[track_caller]
fn is_done(daemon: &Daemon, job: i64) {
    let phase = daemon.wait(job).phase;
    assert!(matches!(phase, Phase::Done { exit: Exit::Code(0), .. }), "{phase:?}");
}

/// Tells its start, and waits for a file in the folder of the job.
const WAIT: &str = "touch began; while [ ! -e go ]; do sleep 0.05; done";
