//! The prolog and the epilog of jobs of users: programs of root, configured by the operator only.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};

use miserly_api::model::{Failure, Phase};

use super::rights::does_not_start;
use super::{asleep, is_done, rights, submit};
use crate::support::accounts::{Account, Accounts};
use crate::support::{Daemon, SOON, until};

/// Returns a daemon that is not started, with a shell script of root as the prolog and the epilog. It appends a line to
/// `programs`, a file of root, and then runs `prolog` or `epilog`.
fn daemon(accounts: &Accounts, prolog: &str, epilog: &str) -> Daemon {
    let daemon = asleep(accounts, "cleanup-time = 60\n");
    let folder = daemon.path("operator");
    fs::create_dir(&folder).expect("a folder");
    let path = folder.display();
    let mut programs = String::new();
    for (name, script) in [("prolog", prolog), ("epilog", epilog)] {
        let file = folder.join(name);
        let line = format!("{name} $1 of $MISERLY_USER in $MISERLY_QUEUE, cpus $MISERLY_CPUS, by $(id -u)");
        fs::write(&file, format!("#!/bin/sh\necho \"{line}\" >> {path}/programs\n{script}\n"))
            .expect("a script");
        fs::set_permissions(&file, Permissions::from_mode(0o755)).expect("a mode");
        programs.push_str(&format!("{name} = [\"{path}/{name}\", \"a word\"]\n"));
    }
    let configuration = fs::read_to_string(daemon.path("daemon.toml")).expect("a file");
    let configuration = configuration.replacen("cleanup-time = 1\n", "", 1);
    daemon.configure(&format!("{configuration}{programs}"));
    daemon
}

fn programs(daemon: &Daemon) -> String {
    fs::read_to_string(daemon.path("operator/programs")).unwrap_or_default()
}

fn line(name: &str, user: &Account) -> String {
    format!("{name} a word of {} in batch, cpus 1, by 0\n", user.name)
}

#[test]
fn programs_of_root_run_around_the_job_of_a_user() {
    let Some(accounts) = Accounts::new() else { return };
    let ann = &accounts.ann;
    let mut daemon = daemon(&accounts, "", "");
    daemon.start();
    // A user chooses no variable of the programs.
    let job = submit(&daemon, ann, &["--name", "x"], "id -u > user; export MISERLY_USER=root");
    is_done(&daemon, job);
    assert_eq!(programs(&daemon), format!("{}{}", line("prolog", ann), line("epilog", ann)));
    assert_eq!(rights(&daemon.path("operator/programs")).0, 0);
    assert_eq!(fs::read_to_string(daemon.path(&ann.name).join("user")).unwrap(), format!("{}\n", ann.uid));
}

#[test]
fn programs_of_root_outlive_the_daemon_and_its_executor() {
    let Some(accounts) = Accounts::new() else { return };
    let ann = &accounts.ann;
    let wait = "until test -e \"${0%/*}/$PASS\"; do sleep 0.05; done";
    let waits = |name: &str| format!("PASS={name}; {wait}");
    let mut daemon = daemon(&accounts, &waits("begin"), &waits("end"));
    daemon.start();
    let job = submit(&daemon, ann, &[], "touch ran");
    for (pass, expect) in
        [("begin", line("prolog", ann)), ("end", format!("{}{}", line("prolog", ann), line("epilog", ann)))]
    {
        until("the program begins", SOON, || (programs(&daemon) == expect).then_some(()));
        assert_eq!(daemon.path(&ann.name).join("ran").exists(), pass == "end");
        daemon.kill();
        daemon.start();
        assert!(matches!(daemon.job(job).phase, Phase::Running(_)), "{:?}", daemon.job(job).phase);
        assert_eq!(programs(&daemon), expect);
        fs::write(daemon.path("operator").join(pass), "").expect("a file");
    }
    is_done(&daemon, job);
}

#[test]
fn a_program_that_a_user_can_change_is_not_run() {
    let Some(accounts) = Accounts::new() else { return };
    let (ann, mut daemon) = (&accounts.ann, daemon(&accounts, "", ""));
    let prolog = daemon.path("operator/prolog");
    chown(&prolog, Some(ann.uid), None).expect("an owner");
    does_not_start(&daemon, &format!("prolog: {}: it belongs to user {}", prolog.display(), ann.uid));
    chown(&prolog, Some(0), None).expect("an owner");
    chown(daemon.path("operator"), Some(ann.uid), None).expect("an owner");
    does_not_start(&daemon, &format!("it belongs to user {}", ann.uid));
    chown(daemon.path("operator"), Some(0), None).expect("an owner");
    daemon.start();
    // Also if its mode has changed since.
    fs::set_permissions(&prolog, Permissions::from_mode(0o757)).expect("a mode");
    let job = submit(&daemon, ann, &[], "touch ran");
    let phase = daemon.wait(job).phase;
    let is_refused = |message: &str| message.contains("other users may write to it");
    assert!(
        matches!(&phase, Phase::Failed { why: Failure::Prolog, message, .. } if is_refused(message)),
        "{phase:?}"
    );
    assert_eq!(programs(&daemon), line("epilog", ann));
    assert!(!daemon.path(&ann.name).join("ran").exists());
}
