//! A state that is damaged, or that has no room.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use miserly_api::client::ClientError;
use miserly_api::model::{Exit, Phase, ProblemCode, Submission};
use miserly_launch::LaunchStep;
use miserly_live::store::{Backups, History, Line, Store};
use miserly_test_support::Requirement;
use serde_json::Value;

use crate::same::play;
use crate::support::{Daemon, SOON, processes, sh, until};

/// A daemon that had some jobs, with one that runs, waits for a file `go` and exits with 7; and the job's number.
fn killed_with_a_job(before: u32) -> (Daemon, i64) {
    let daemon = Daemon::of_policy("miser");
    for _ in 0..before {
        let number = daemon.submit(&sh("true", 5.0));
        daemon.wait(number);
    }
    let script = "touch runs; while [ ! -e go ]; do sleep 0.05; done; exit 7";
    let number = daemon.submit(&Submission { directory: daemon.path(""), ..sh(script, 600.0) });
    until("it runs", SOON, || daemon.path("runs").exists().then_some(()));
    (daemon, number)
}

/// The daemon does not start and says why; after a recovery it does, and has the job that ran on.
fn refused_then_recovered(mut daemon: Daemon, job: i64) {
    let mut refused = daemon.command(&[]);
    let status = refused.status().expect("a program that starts");
    assert!(!status.success());
    let log = daemon.log();
    assert!(log.contains("--recover"), "{log}");
    daemon.start_with(&["--recover"]);
    assert!(matches!(daemon.job(job).phase, Phase::Running(_)), "{:?}", daemon.job(job).phase);
    fs::write(daemon.path("go"), "").expect("a file");
    let ended = daemon.wait(job).phase;
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
    let next = daemon.submit(&sh("true", 5.0));
    assert!(next > job, "a number is given once: {next} after {job}");
    assert!(matches!(daemon.wait(next).phase, Phase::Done { .. }));
    let played = play(&daemon.state());
    assert_eq!((&played["difference"], played["missing"].is_array()), (&Value::Null, true), "{played:#}");
    assert!(played["starts"].as_u64() > Some(3), "the rounds before and after are compared: {played:#}");
}

/// The largest of the state's files whose names begin so.
fn file_of(daemon: &Daemon, prefix: &str) -> PathBuf {
    let files = fs::read_dir(daemon.state().join("store")).expect("the store").flatten();
    let named = files.filter(|file| file.file_name().to_string_lossy().contains(prefix));
    let size = |file: &fs::DirEntry| file.metadata().map_or(0, |meta| meta.len());
    named.max_by_key(size).expect("a file of the store").path()
}

/// Returns the text of the last round in the journal. It is in the segment that is checked at the start.
fn a_round(daemon: &Daemon) -> String {
    let mut found = None;
    let mut take = |line: Line| {
        found = Some(line.body).filter(|body| body.starts_with("{\"line\":\"round\"")).or(found.take());
        ControlFlow::Continue(())
    };
    History::open(&daemon.state()).expect("a state").journal(1, &mut take).expect("a journal");
    found.expect("a round")
}

#[test]
fn a_flipped_byte_is_found_and_running_jobs_are_not_disturbed() {
    let (mut daemon, job) = killed_with_a_job(20);
    daemon.stop();
    // Opening it brings the log into the database itself.
    drop(Store::open(&daemon.state()).expect("an undamaged state"));
    let path = file_of(&daemon, "");
    let bytes = fs::read(&path).expect("the database");
    let line = a_round(&daemon);
    let places: Vec<usize> =
        (0..bytes.len()).filter(|at| bytes[*at..].starts_with(line.as_bytes())).collect();
    assert!(!places.is_empty(), "a line of the journal");
    let file = File::options().write(true).open(&path).expect("the database");
    // Each copy: some may be remnants in free space, which nothing reads.
    for place in places {
        file.write_all_at(b"X", u64::try_from(place).expect("a place") + 9).expect("a byte");
    }
    let refused = daemon.command(&["--verify"]).status().expect("a program that starts");
    assert!(!refused.success() && daemon.log().contains("journal line"), "{}", daemon.log());
    // Nothing that a start needs is damaged.
    daemon.start();
    let status = || daemon.client().status().expect("a status");
    until("the history is checked", SOON, || (!status().checking).then_some(()));
    let damage = status().damage;
    assert!(damage.iter().any(|damage| damage.part.starts_with("journal line")), "{damage:?}");
    assert!(matches!(daemon.job(job).phase, Phase::Running(_)), "{:?}", daemon.job(job).phase);
    daemon.stop();
    daemon.start_with(&["--recover"]);
    assert_eq!(daemon.client().status().expect("a status").damage, []);
    fs::write(daemon.path("go"), "").expect("a file");
    let ended = daemon.wait(job).phase;
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
}

#[test]
fn a_truncated_log_is_found_and_running_jobs_are_not_disturbed() {
    let (mut daemon, job) = killed_with_a_job(3);
    // Killed, so that the last commits are in the log.
    let number = daemon.submit(&sh("true", 5.0));
    daemon.wait(number);
    daemon.kill();
    let path = file_of(&daemon, "wal");
    let length = fs::metadata(&path).expect("the log").len();
    let file = File::options().write(true).open(&path).expect("the log");
    file.set_len(length - 2000).expect("a shorter log");
    refused_then_recovered(daemon, job);
}

/// A small file system of its own; none where mounting is not allowed.
pub(crate) struct Small(PathBuf);

impl Small {
    fn mount(at: PathBuf) -> Option<Small> {
        Small::mount_with(at, "3m")
    }

    pub(crate) fn mount_with(at: PathBuf, size: &str) -> Option<Small> {
        fs::create_dir_all(&at).expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size},mode=700"), "tmpfs"])
            .arg(&at)
            .stderr(Stdio::null())
            .status();
        let mounted = mounted.is_ok_and(|status| status.success());
        Requirement::Mount.is_met(mounted, "needs the right to mount a file system").then(|| Small(at))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_refuses_submissions_and_forgets_no_end() {
    let mut daemon = Daemon::asleep(&crate::support::queue("miser"));
    let Some(small) = Small::mount(daemon.state()) else { return };
    daemon.start();
    let script = "touch runs; while [ ! -e go ]; do sleep 0.05; done; exit 7";
    let number = daemon.submit(&Submission { directory: daemon.path(""), ..sh(script, 600.0) });
    until("it runs", SOON, || daemon.path("runs").exists().then_some(()));
    let filler = fill(&small.0);
    let big = Submission { script: Some("#!/bin/sh\n".repeat(20_000)), ..sh("", 5.0) };
    match daemon.client().submit(&big) {
        Err(ClientError::Refused(problem)) => assert_eq!(problem.code, ProblemCode::Storage, "{problem}"),
        other => panic!("{other:?}"),
    }
    refuses_a_configuration(&daemon);
    let unwritten = || daemon.log().matches("batch rolled back").count();
    let before = unwritten();
    fs::write(daemon.path("go"), "").expect("a file elsewhere");
    until("its end cannot be written down", SOON, || (unwritten() > before).then_some(()));
    refuses_a_configuration(&daemon);
    fs::remove_file(filler).expect("a file that can be removed");
    let ended = daemon.wait(number).phase;
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
    let next = daemon.submit(&sh("true", 5.0));
    assert!(matches!(daemon.wait(next).phase, Phase::Done { .. }));
    assert_eq!(daemon.history().len(), 2, "what was refused was not accepted");
    daemon.stop();
    drop(small);
}

/// Has it read its configuration again, which it cannot go on with.
#[track_caller]
fn refuses_a_configuration(daemon: &Daemon) {
    let refused = || daemon.log().matches("stays as it was").count();
    let before = refused();
    let pid = daemon.pid().expect("it runs");
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).expect("a signal");
    until("it refuses the configuration", SOON, || (refused() > before).then_some(()));
}

/// Takes a backup of the state as it is now.
#[track_caller]
fn back_up(daemon: &Daemon) {
    Backups::new(&daemon.state()).take(3).expect("a backup").expect("something was committed");
}

fn remove_store(daemon: &Daemon) {
    fs::remove_dir_all(daemon.state().join("store")).expect("a store that can be removed");
}

/// Adds its job and its attempt to a file when it runs.
fn signs(daemon: &Daemon, then: &str) -> Submission {
    let script = format!("echo $MISERLY_JOB_ID $MISERLY_ATTEMPT >> ran; {then}");
    Submission { directory: daemon.path(""), ..sh(&script, 600.0) }
}

fn ran(daemon: &Daemon) -> Vec<String> {
    let text = fs::read_to_string(daemon.path("ran")).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_store_that_is_gone_comes_back_from_its_backup_and_the_running_job_goes_on() {
    let (mut daemon, job) = killed_with_a_job(3);
    back_up(&daemon);
    daemon.kill();
    remove_store(&daemon);
    refused_then_recovered(daemon, job);
}

/// All of them waited when the backup was taken. One ended since, one began and runs, one was submitted since and runs, one still waits.
#[test]
fn a_backup_that_is_older_than_the_jobs_runs_none_of_them_twice() {
    let cpus = crate::support::cpus().len();
    let all = |job: Submission| Submission {
        cpus: u64::try_from(cpus).expect("a number"),
        no_opportunistic: true,
        ..job
    };
    let mut daemon = Daemon::of_policy("miser");
    let waits = "while [ ! -e go ]; do sleep 0.05; done; exit 7";
    let first = daemon.submit(&all(signs(&daemon, "while [ ! -e begin ]; do sleep 0.05; done")));
    until("the first one runs", SOON, || (ran(&daemon).len() == 1).then_some(()));
    let ends = daemon.submit(&all(signs(&daemon, "exit 3")));
    let half = Submission { cpus: 1, ..all(signs(&daemon, waits)) };
    let runs = daemon.submit(&half);
    let last = daemon.submit(&all(signs(&daemon, "exit 4")));
    back_up(&daemon);
    fs::write(daemon.path("begin"), "").expect("a file");
    daemon.wait(ends);
    until("the third one runs", SOON, || matches!(daemon.job(runs).phase, Phase::Running(_)).then_some(()));
    until("it has signed", SOON, || (ran(&daemon).len() == 3).then_some(()));
    daemon.kill();
    remove_store(&daemon);
    daemon.start_with(&["--recover"]);
    let ended = |number| daemon.wait(number).phase;
    assert!(matches!(ended(first), Phase::Done { exit: Exit::Code(0), .. }), "{:?}", ended(first));
    assert!(matches!(ended(ends), Phase::Done { exit: Exit::Code(3), .. }), "{:?}", ended(ends));
    assert!(matches!(daemon.job(runs).phase, Phase::Running(_)), "{:?}", daemon.job(runs).phase);
    fs::write(daemon.path("go"), "").expect("a file");
    assert!(matches!(ended(runs), Phase::Done { exit: Exit::Code(7), .. }), "{:?}", ended(runs));
    assert!(matches!(ended(last), Phase::Done { exit: Exit::Code(4), .. }), "{:?}", ended(last));
    let once: Vec<String> = [first, ends, runs, last].iter().map(|job| format!("{job} 1")).collect();
    assert_eq!(ran(&daemon), once, "each ran once");
    assert!(daemon.log().contains("from the backup"), "{}", daemon.log());
}

/// As after the loss of any commits: no backup has the job, so nothing but its folder shows it.
#[test]
fn a_sweep_ends_a_job_that_the_backup_does_not_have_and_its_number_is_not_given_again() {
    let mut daemon = Daemon::of_policy("miser");
    daemon.wait(daemon.submit(&sh("true", 5.0)));
    back_up(&daemon);
    let lost = daemon.submit(&signs(&daemon, "sleep 600"));
    until("it runs", SOON, || (ran(&daemon).len() == 1).then_some(()));
    let shims = processes::shims(&daemon.path(""));
    daemon.kill();
    remove_store(&daemon);
    daemon.start_with(&["--recover", "--sweep"]);
    until("the job is ended", SOON, || {
        let left = processes::shims(&daemon.path(""));
        shims.iter().all(|shim| !left.contains(shim)).then_some(())
    });
    let next = daemon.submit(&sh("true", 5.0));
    assert!(next > lost, "a number is given once: {next} after {lost}");
    daemon.wait(next);
}

/// A job that ended in the commits that a shortened log lost has its record, and does not run again.
#[test]
fn a_job_whose_end_is_lost_with_the_log_does_not_run_twice() {
    let mut daemon = Daemon::of_policy("miser");
    daemon.wait(daemon.submit(&sh("true", 5.0)));
    let job = daemon.submit(&signs(&daemon, "exit 3"));
    daemon.wait(job);
    daemon.kill();
    let path = file_of(&daemon, "wal");
    let length = fs::metadata(&path).expect("the log").len();
    File::options().write(true).open(&path).expect("the log").set_len(length - 2000).expect("a shorter log");
    daemon.start_with(&["--recover"]);
    let ended = daemon.wait(job).phase;
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(3), .. }), "{ended:?}");
    assert_eq!(ran(&daemon), [format!("{job} 1")]);
}

#[test]
fn backups_are_taken_while_the_daemon_runs_and_a_full_disk_skips_them() {
    let mut daemon = Daemon::asleep(&format!("backup-interval = 1\n{}", crate::support::queue("miser")));
    let Some(small) = Small::mount(daemon.state()) else {
        eprintln!("skipped: no file system can be mounted here");
        return;
    };
    daemon.start();
    daemon.wait(daemon.submit(&sh("true", 5.0)));
    until("a backup is complete", SOON, || daemon.log().contains("is complete").then_some(()));
    let filler = fill(&small.0);
    // Taken back: the next interval finds something new to copy.
    let skipped = || daemon.log().contains("no backup was taken").then_some(());
    File::options().write(true).open(&filler).expect("the filler").set_len(1_000_000).expect("less");
    daemon.wait(daemon.submit(&sh("true", 5.0)));
    let filler = (filler, fill_as(&small.0, "more"));
    until("a backup is skipped", SOON, skipped);
    fs::remove_file(filler.0).and_then(|()| fs::remove_file(filler.1)).expect("files that can be removed");
    daemon.wait(daemon.submit(&sh("true", 5.0)));
    daemon.stop();
    drop(small);
}

/// Jobs that nobody knows any more have no window, and their numbers are not given to others.
#[test]
fn a_state_that_is_gone_leaves_no_job_that_a_new_one_is_taken_for() {
    let (mut daemon, lost) = killed_with_a_job(3);
    let shims = processes::shims(&daemon.path(""));
    daemon.kill();
    remove_store(&daemon);
    fs::remove_dir_all(daemon.state().join("backups")).expect("backups that can be removed");
    daemon.start_with(&["--sweep"]);
    let signs = Submission { directory: daemon.path(""), ..sh("touch new", 5.0) };
    let next = daemon.submit(&signs);
    assert!(next > lost, "a number is given once: {next} after {lost}");
    let ended = daemon.wait(next).phase;
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(0), .. }), "{ended:?}");
    assert!(daemon.path("new").exists(), "it ran");
    until("the job that nobody knows is gone", SOON, || {
        let left = processes::shims(&daemon.path(""));
        shims.iter().all(|shim| !left.contains(shim)).then_some(())
    });
    let folder = daemon.state().join(format!("attempts/{lost}.1"));
    until("its folder is gone", SOON, || (!folder.exists()).then_some(()));
}

/// Leaves no room.
pub(crate) fn fill(folder: &std::path::Path) -> PathBuf {
    fill_as(folder, "filler")
}

fn fill_as(folder: &std::path::Path, name: &str) -> PathBuf {
    use std::io::Write;
    let path = folder.join(name);
    let mut file = File::create(&path).expect("a file");
    for block in [65_536, 4096, 512, 1] {
        while file.write_all(&vec![0; block]).is_ok() {}
    }
    path
}

#[test]
fn a_launch_that_is_not_possible_now_is_tried_again() {
    let daemon = Daemon::of_policy("miser");
    let (there, away) = (daemon.state().join("attempts"), daemon.path("away"));
    fs::rename(&there, &away).expect("a folder that can be moved");
    let number = daemon.submit(&sh("exit 7", 60.0));
    until("a launch fails", SOON, || daemon.log().contains("cannot be launched").then_some(()));
    fs::rename(&away, &there).expect("a folder that can be moved");
    let ended = daemon.wait(number).phase;
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
}

/// The steps of a launch in which a shortage is injected for two passes.
#[test]
fn a_shortage_at_any_step_of_a_launch_delays_the_job_and_fails_it_at_none() {
    let daemon = Daemon::of_policy("miser");
    let shortage = daemon.state().join("attempts/shortage");
    // No space, too many files of this process, too many processes, no memory.
    let errors = [28, 24, 11, 12].into_iter().cycle();
    for (nth, (step, errno)) in LaunchStep::ALL.into_iter().zip(errors).enumerate() {
        let name = step.name();
        fs::write(&shortage, format!("{name} {errno} 2")).expect("a file");
        let script = "#!/bin/sh\necho ran $MISERLY_JOB_ID >> ran; exit 7\n".to_owned();
        let job = Submission {
            script: Some(script),
            command: vec![],
            directory: daemon.path(""),
            no_opportunistic: nth % 2 == 0,
            ..sh("", 60.0)
        };
        let number = daemon.submit(&job);
        let ended = daemon.wait(number);
        assert!(matches!(ended.phase, Phase::Done { exit: Exit::Code(7), .. }), "{name}: {ended:?}");
        let left = fs::read_to_string(&shortage).expect("a file");
        assert_eq!(left, format!("{name} {errno} 0"), "both shortages happened");
        let ran = fs::read_to_string(daemon.path("ran")).expect("a file");
        assert_eq!(ran.lines().filter(|line| *line == format!("ran {number}")).count(), 1, "{name}");
    }
}
