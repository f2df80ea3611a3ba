//! What a user tries against the daemon, its operators and other users.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use miserly_api::client::ClientError;
use miserly_api::model::{Phase, Problem, Submission};
use rustix::fs::{CWD, FileType, Gid, Mode, Uid, chown, mknodat};

use super::{WAIT, awake, command_of, is_done, pid, refused, runs, status, submit, text, touch};
use crate::support::accounts::{Account, Accounts};
use crate::support::{Daemon, SOON, sh, until};

fn fifo(path: &Path, owner: &Account) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
    chown(path, Some(Uid::from_raw(owner.uid)), Some(Gid::from_raw(owner.gid))).expect("an owner");
}

/// Returns what root sees of the output of a job.
fn logs_of_root(daemon: &Daemon, job: i64) -> (Option<i32>, String) {
    let mut command = Command::new(daemon.path("miserly"));
    command.args(["logs", &job.to_string()]).env("MISERLY_SOCKET", &daemon.socket).stdin(Stdio::null());
    let output = command.output().expect("a program that starts");
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// The user changes the file after the start of the job.
#[test]
fn root_reads_no_output_but_a_regular_file_of_the_user() {
    let Some(accounts) = Accounts::new() else { return };
    let daemon = awake(&accounts, "");
    let ann = &accounts.ann;
    let job = submit(&daemon, ann, &["--output", "out"], "echo of-ann");
    is_done(&daemon, job);
    assert_eq!(logs_of_root(&daemon, job), (Some(0), "of-ann\n".to_owned()));
    let out = daemon.path(&ann.name).join("out");
    let secret = daemon.path("secret");
    fs::write(&secret, "of-root").expect("a file");
    let replace = |make: &dyn Fn(&Path)| {
        fs::remove_file(&out).expect("the file before");
        make(&out);
        let (code, shown) = logs_of_root(&daemon, job);
        assert_eq!(code, Some(2), "{shown}");
        assert!(!shown.contains("of-root"), "{shown}");
        shown
    };
    let shown = replace(&|out| symlink(&secret, out).expect("a link"));
    assert!(shown.contains("it is a symbolic link"), "{shown}");
    // It would wait for ever.
    let shown = replace(&|out| fifo(out, ann));
    assert!(shown.contains("it is no regular file"), "{shown}");
    let shown = replace(&|out| fs::hard_link(&secret, out).expect("a link"));
    assert!(shown.contains("it belongs to user 0"), "{shown}");
}

#[test]
fn another_user_is_refused_at_a_held_job_at_once() {
    let Some(accounts) = Accounts::new() else { return };
    let daemon = awake(&accounts, "");
    let job = submit(&daemon, &accounts.ann, &["--hold"], "true");
    refused(&command_of(&daemon, &accounts.bob, &["attach", &job.to_string()]), "another user's");
}

#[test]
fn no_job_has_less_than_a_page_of_memory() {
    let Some(accounts) = Accounts::new() else { return };
    let daemon = awake(&accounts, "allow-root = true\n");
    for memory in [0, 1, 4095] {
        let job = Submission { memory: Some(memory), directory: "/".into(), ..sh("true", 5.0) };
        let Err(ClientError::Refused(Problem { field, message, .. })) = daemon.client().submit(&job) else {
            panic!("{memory} B are accepted")
        };
        assert_eq!(field.as_deref(), Some("memory"), "{message}");
    }
}

/// Without control groups no job has a limit of its own.
#[test]
fn the_processes_of_a_user_are_limited() {
    let Some(accounts) = Accounts::new() else { return };
    let daemon = awake(&accounts, "");
    let job = submit(&daemon, &accounts.ann, &["--output", "out"], "grep 'Max processes' /proc/self/limits");
    is_done(&daemon, job);
    let out = fs::read_to_string(daemon.path(&accounts.ann.name).join("out")).expect("an output");
    let cpus = fs::read_to_string("/sys/devices/system/cpu/online").expect("a list");
    let last: u64 =
        cpus.trim().rsplit(['-', ',']).next().and_then(|last| last.parse().ok()).expect("a number");
    let most = (512 * (last + 1)).max(4096);
    let limits: Vec<u64> = out.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(limits.len() == 2 && limits.iter().all(|limit| *limit <= most), "{out}");
    let unenforced = daemon.client().status().expect("a status").unenforced;
    assert!(unenforced.iter().any(|one| one.what == "number-of-processes"), "{unenforced:?}");
}

#[test]
fn the_daemon_keeps_no_capability_that_a_program_could_regain() {
    let Some(accounts) = Accounts::new() else { return };
    let daemon = awake(&accounts, "");
    assert_eq!(u64::from_str_radix(&status(pid(&daemon), "CapBnd"), 16), Ok(0));
    let executor = super::executor(&daemon).expect("it runs");
    // Of this process; those of the library would also forbid programs their set-user-ID bits.
    assert_eq!([status(executor, "Seccomp"), status(executor, "NoNewPrivs")], ["2", "0"]);
}

#[test]
fn the_log_has_each_start_and_each_action_of_an_operator() {
    let Some(accounts) = Accounts::new() else { return };
    let daemon = awake(&accounts, "");
    let ann = &accounts.ann;
    let job = submit(&daemon, ann, &[], WAIT);
    runs(&daemon, ann, job);
    daemon.client().cancel(job, false).expect("root may");
    until("it ends", SOON, || matches!(daemon.job(job).phase, Phase::Killed { .. }).then_some(()));
    let (name, uid) = (&ann.name, ann.uid);
    let started = format!("audit: job {job}, attempt 1: started for {name:?} ({uid}) in queue \"batch\"");
    let log = daemon.log();
    assert!(log.contains(&started), "{log}");
    let action = log.lines().find(|line| line.contains("audit: operator"));
    let action = action.unwrap_or_else(|| panic!("no action in {log}"));
    assert!(action.contains(&job.to_string()) && action.ends_with("done"), "{action}");
    // Users' own actions are not the operators'.
    let own = submit(&daemon, ann, &["--hold"], "true");
    assert!(command_of(&daemon, ann, &["cancel", &own.to_string()]).status.success());
    assert_eq!(daemon.log().matches("audit: operator").count(), 1);
    touch(&daemon, ann, "go");
}

/// The seal of a submission names the queue and the memory, and its user seals a change.
#[test]
fn a_user_changes_the_memory_of_a_sealed_job() {
    let Some(accounts) = Accounts::new() else { return };
    let daemon = awake(&accounts, "");
    let ann = &accounts.ann;
    let job = submit(&daemon, ann, &["--hold", "--memory", "16MiB"], "touch ran");
    let number = job.to_string();
    assert!(command_of(&daemon, ann, &["modify", &number, "--memory", "32MiB", "--yes"]).status.success());
    assert!(command_of(&daemon, ann, &["release", &number]).status.success());
    is_done(&daemon, job);
    assert_eq!(daemon.job(job).memory, 32 << 20);
    assert!(daemon.path(&ann.name).join("ran").exists());
}
