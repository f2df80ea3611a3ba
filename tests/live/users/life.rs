//! Restarts, ends by force and restores, with a daemon that has no rights.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use miserly_api::model::{Exit, Phase};
use rustix::process::{Pid, Signal, kill_process};

use super::{WAIT, asleep, awake, command_of, executor, is_done, refused, runs, submit, text, touch};
use crate::support::accounts::Accounts;
use crate::support::{SOON, cpus, has_two_cpus, miserly, processes, until};

#[test]
fn jobs_outlive_the_daemon_and_its_executor_and_belong_to_their_users() {
    let Some(accounts) = Accounts::new() else { return };
    let (ann, bob) = (&accounts.ann, &accounts.bob);
    let mut daemon = awake(&accounts, "");
    let job = submit(&daemon, ann, &[], WAIT);
    runs(&daemon, ann, job);
    let shim = processes::shims(&daemon.path(""));
    for _ in 0..3 {
        let executor = executor(&daemon).expect("an executor");
        daemon.kill();
        until("the executor ends, too", SOON, || {
            (!Path::new(&format!("/proc/{executor}")).exists()).then_some(())
        });
        daemon.start();
        runs(&daemon, ann, job);
        assert_eq!(processes::shims(&daemon.path("")), shim, "it is the same attempt");
    }
    // Without its executor a daemon ends.
    let raw = i32::try_from(executor(&daemon).expect("an executor")).unwrap();
    kill_process(Pid::from_raw(raw).unwrap(), Signal::KILL).unwrap();
    until("the daemon ends", SOON, || daemon.is_dead().then_some(()));
    assert!(daemon.log().contains("the executor has ended"), "{}", daemon.log());
    daemon.start();
    runs(&daemon, ann, job);
    let number = job.to_string();
    for request in ["cancel", "hold", "requeue"] {
        refused(&command_of(&daemon, bob, &[request, &number]), "another user's");
    }
    let shown = text(&command_of(&daemon, bob, &["show", &number]).stdout);
    assert!(!shown.contains("while") && !shown.contains(&ann.name.repeat(2)), "{shown}");
    assert!(matches!(daemon.job(job).phase, Phase::Running(_)));
    assert!(command_of(&daemon, ann, &["cancel", &number]).status.success());
    assert!(matches!(daemon.wait(job).phase, Phase::Killed { .. }));
}

#[test]
fn a_stopped_shim_of_root_is_continued_and_its_job_ended() {
    let Some(accounts) = Accounts::new() else { return };
    let daemon = awake(&accounts, "grace = 0\n");
    let job = submit(&daemon, &accounts.ann, &[], WAIT);
    runs(&daemon, &accounts.ann, job);
    let shims = processes::shims(&daemon.path(""));
    kill_process(shims[0], Signal::STOP).unwrap();
    assert!(command_of(&daemon, &accounts.ann, &["cancel", &job.to_string()]).status.success());
    assert!(matches!(daemon.wait(job).phase, Phase::Killed { .. }));
}

#[test]
fn a_daemon_without_rights_reads_its_configuration_again() {
    let Some(accounts) = Accounts::new() else { return };
    let daemon = awake(&accounts, "");
    let configuration = fs::read_to_string(daemon.path("daemon.toml")).unwrap();
    let reload = |more: &str, says: &str| {
        daemon.configure(&format!("{more}{configuration}"));
        kill_process(daemon.pid().expect("it runs"), Signal::HUP).unwrap();
        until(says, SOON, || daemon.log().contains(says).then_some(()));
    };
    reload("grace = 1\n", "the configuration was read again");
    reload("allow-root = true\n", "other rules for jobs of users");
    refused(
        &miserly(&["submit", "--socket", &daemon.socket.display().to_string(), "--time", "5s", "true"]),
        "root",
    );
}

/// The state of a backup has a job that runs, of which the machine has only the record of its end.
#[test]
fn a_job_that_ended_after_the_backup_does_not_run_again() {
    let Some(accounts) = Accounts::new() else { return };
    let mut daemon = awake(&accounts, "");
    let ann = &accounts.ann;
    let job = submit(&daemon, ann, &[], &format!("echo once >> runs; {WAIT}; exit 3"));
    runs(&daemon, ann, job);
    let backups = daemon.path("copies");
    fs::create_dir(&backups).unwrap();
    let state = daemon.state().display().to_string();
    let output = miserly(&["backup", "--state", &state, &backups.display().to_string()]);
    assert!(output.status.success(), "{output:?}");
    let backup = text(&output.stdout).trim().to_owned();
    for path in [Path::new(&backup), &backups] {
        chown(path, Some(accounts.daemon.uid), None).unwrap();
    }
    touch(&daemon, ann, "go");
    assert!(matches!(daemon.wait(job).phase, Phase::Done { exit: Exit::Code(3), .. }));
    let attempt = daemon.state().join(format!("attempts/{job}.1"));
    until("the attempt is retired", SOON, || (!attempt.exists()).then_some(()));
    daemon.stop();
    daemon.start_with(&["--restore", &backup]);
    let phase = daemon.wait(job).phase;
    assert!(matches!(phase, Phase::Done { exit: Exit::Code(3), .. }), "{phase:?}");
    assert_eq!(fs::read_to_string(daemon.path(&ann.name).join("runs")).unwrap(), "once\n");
}

/// The file of the processors is in a folder that other users cannot enter, so the job asks the kernel.
#[test]
fn a_job_of_another_user_learns_of_its_processors_by_its_signal_and_the_kernel() {
    let Some(accounts) = Accounts::new() else { return };
    if !has_two_cpus() {
        return;
    }
    let mut daemon = asleep(&accounts, "");
    let configuration = fs::read_to_string(daemon.path("daemon.toml")).unwrap();
    let equal = configuration.replace("policy = \"miser\"", "policy = \"eqspatial\"");
    daemon.configure(&equal.replace(&format!("\ncpus = {}\n", cpus().len()), "\ncpus = 2\n"));
    daemon.start();
    let script = "look() { echo ${MISERLY_CPUS_FILE-none} $(nproc) >> seen; }; trap look USR1; look; touch began; \
                  while [ ! -e go ]; do sleep 0.05; done";
    let options = ["--cpus", "1-2", "--resizable", "--resize-signal", "B:USR1"];
    let job = submit(&daemon, &accounts.ann, &options, script);
    runs(&daemon, &accounts.ann, job);
    let number = job.to_string();
    refused(&command_of(&daemon, &accounts.bob, &["resize", "1", &number]), "another user's");
    let folder = daemon.path(&accounts.ann.name);
    for (cpus, lines) in [("1", "none 2\nnone 1\n"), ("2", "none 2\nnone 1\nnone 2\n")] {
        let asked = command_of(&daemon, &accounts.ann, &["resize", cpus, &number]);
        assert!(asked.status.success(), "{asked:?}");
        until(lines, SOON, || (fs::read_to_string(folder.join("seen")).ok()? == lines).then_some(()));
    }
    touch(&daemon, &accounts.ann, "go");
    is_done(&daemon, job);
}
