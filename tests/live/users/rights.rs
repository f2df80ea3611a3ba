//! The rights of the daemon, and who owns its files.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use super::{WAIT, asleep, awake, executor, is_done, pid, rights, runs, status, submit, text, touch};
use crate::support::accounts::{Account, Accounts};
use crate::support::{Daemon, SOON, queue, until};

#[test]
fn the_daemon_has_no_rights_and_cannot_change_the_files_of_its_jobs() {
    let Some(accounts) = Accounts::new() else { return };
    let daemon = awake(&accounts, "");
    let (uid, gid) = (accounts.daemon.uid, accounts.daemon.gid);
    let job = submit(&daemon, &accounts.ann, &[], WAIT);
    runs(&daemon, &accounts.ann, job);
    // All threads, also those that were made later.
    for thread in fs::read_dir(format!("/proc/{}/task", pid(&daemon))).unwrap() {
        let thread = thread.unwrap().file_name().to_str().unwrap().parse().unwrap();
        assert_eq!(status(thread, "Uid"), format!("{uid} {uid} {uid} {uid}"));
        assert_eq!(status(thread, "Gid"), format!("{gid} {gid} {gid} {gid}"));
        assert_eq!(status(thread, "Groups"), gid.to_string());
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(status(thread, set), "0000000000000000", "{set}");
        }
        assert_eq!(status(thread, "NoNewPrivs"), "1");
    }
    assert_eq!(status(executor(&daemon).expect("an executor"), "Uid"), "0 0 0 0");
    let state = daemon.state();
    assert_eq!(rights(&state), (0, gid, 0o1770));
    assert_eq!(rights(&state.join("attempts")), (0, gid, 0o2750));
    assert_eq!(rights(&state.join("executor.key")).0, 0);
    assert_eq!(rights(&state.join("executor.key")).2, 0o600);
    for name in ["store", "store/jobs.db", "lock"] {
        assert_eq!(rights(&state.join(name)).0, uid, "{name}");
    }
    assert_eq!(rights(&daemon.path("run/miserly")), (uid, gid, 0o755));
    // A shim of root reaches all processes, and its job cannot stop it.
    let unenforced = daemon.client().status().expect("a status").unenforced;
    for solved in ["shim-stopped", "programs-of-other-users"] {
        assert!(unenforced.iter().all(|one| one.what != solved), "{solved}");
    }
    let attempt = state.join(format!("attempts/{job}.1"));
    assert_eq!(rights(&attempt), (0, gid, 0o2750));
    for (name, mode) in [("spec.json", 0o640), ("shim.json", 0o640), ("started.json", 0o640), ("lock", 0o600)]
    {
        assert_eq!(rights(&attempt.join(name)), (0, gid, mode), "{name}");
    }
    assert_eq!(rights(&attempt.join("ctl")), (0, gid, 0o660));
    // What a daemon that is broken into could try.
    let attempts = state.join("attempts");
    for (script, succeeds) in [
        ("cat attempts/*/spec.json", true),
        ("touch own && mv own other && rm other", true),
        ("mv attempts moved", false),
        ("rm -rf attempts", false),
        ("touch attempts/new", false),
        ("touch attempts/*/new", false),
        ("rm attempts/*/end.preallocated", false),
        ("echo > attempts/*/spec.json", false),
        ("chmod 777 attempts", false),
        ("cat executor.key", false),
        ("rm -f executor.key", false),
        ("mv lock executor.key", false),
    ] {
        let output = shell(&accounts.daemon, &state, script);
        assert_eq!(output.status.success(), succeeds, "{script}: {output:?}");
    }
    for script in ["ls", "ls attempts", "cat attempts/*/spec.json", "touch new"] {
        assert!(!shell(&accounts.ann, &state, script).status.success(), "{script}");
    }
    assert!(attempts.is_dir());
    touch(&daemon, &accounts.ann, "go");
    is_done(&daemon, job);
    // The record of the end is the daemon's.
    let kept = state.join(format!("ended/{job}.1/end.json"));
    until("the attempt is retired", SOON, || (!attempt.exists() && kept.exists()).then_some(()));
    assert_eq!(rights(&kept).0, uid);
}

/// Runs a shell with the user and the group of an account.
fn shell(user: &Account, folder: &Path, script: &str) -> Output {
    let script = format!("cd {} && {script}", folder.display());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script]).current_dir("/").uid(user.uid).gid(user.gid).output().expect("a shell")
}

/// Checks that a daemon does not start.
#[track_caller]
pub(super) fn does_not_start(daemon: &Daemon, says: &str) {
    let output = daemon.command(&[]).output().expect("a program");
    assert_eq!(output.status.code(), Some(2), "{}", daemon.log());
    assert!(daemon.log().contains(says), "{says} is not in: {}", daemon.log());
}

#[test]
fn a_daemon_that_cannot_give_up_its_rights_does_not_start() {
    let Some(accounts) = Accounts::new() else { return };
    let daemon = asleep(&accounts, "");
    let user = |name: &str| daemon.configure(&format!("user = \"{name}\"\n{}", queue("miser")));
    user("root");
    does_not_start(&daemon, "this user has the rights of root");
    user("no-such-user");
    does_not_start(&daemon, "the system knows no such user");
    user(&accounts.daemon.name);
    accounts.ann.change(&["--append", "--groups", &accounts.daemon.name]);
    does_not_start(&daemon, "no other user may be in it");
    accounts.ann.change(&["--groups", ""]);
    // The state of a daemon of root.
    fs::create_dir_all(daemon.state().join("store")).unwrap();
    fs::set_permissions(daemon.state(), Permissions::from_mode(0o700)).unwrap();
    does_not_start(&daemon, "store: it belongs to user 0");
    fs::remove_dir(daemon.state().join("store")).unwrap();
    // The daemon's user could replace what root writes.
    chown(daemon.state(), Some(accounts.daemon.uid), None).unwrap();
    does_not_start(&daemon, "who can replace its content");
    chown(daemon.state(), Some(0), None).unwrap();
    fs::create_dir(daemon.state().join("attempts")).unwrap();
    chown(daemon.state().join("attempts"), Some(accounts.daemon.uid), None).unwrap();
    does_not_start(&daemon, "attempts belongs to user");
    let check = Command::new(daemon.path("miserly"))
        .args(["daemon", "--config"])
        .arg(daemon.path("daemon.toml"))
        .uid(accounts.ann.uid)
        .gid(accounts.ann.gid)
        .output()
        .expect("a program");
    assert!(text(&check.stderr).contains("only root can run jobs as their users"), "{check:?}");
}
