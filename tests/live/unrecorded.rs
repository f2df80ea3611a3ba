//! Jobs whose records cannot be read, and jobs that are newer than the state.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use miserly_api::client::ClientError;
use miserly_api::model::{Exit, Filter, JobView, Phase, ProblemCode, Status, Submission};
use miserly_engine::{JobRow, JournalBatch};
use miserly_live::store::{Backups, Store};

use crate::support::{Daemon, SOON, cpus, has_two_cpus, miserly, processes, sh, until};

/// A job of one processor that runs in its window until there is a file of that name, and exits with 7.
fn until_file(daemon: &Daemon, name: &str) -> Submission {
    let script = format!("echo $MISERLY_JOB_ID >> ran; while [ ! -e {name} ]; do sleep 0.05; done; exit 7");
    Submission {
        directory: daemon.path(""),
        name: Some(format!("until-{name}")),
        no_opportunistic: true,
        ..sh(&script, 600.0)
    }
}

fn all_cpus(job: Submission) -> Submission {
    Submission { cpus: cpus().len() as u64, ..job }
}

fn has_run(daemon: &Daemon, job: i64) -> bool {
    let ran = fs::read_to_string(daemon.path("ran")).unwrap_or_default();
    ran.lines().any(|line| line == job.to_string())
}

fn runs(daemon: &Daemon, job: i64) {
    until("it runs", SOON, || has_run(daemon, job).then_some(()));
}

fn touch(daemon: &Daemon, name: &str) {
    fs::write(daemon.path(name), "").expect("a file");
}

fn status(daemon: &Daemon) -> Status {
    daemon.client().status().expect("a status")
}

fn listed(daemon: &Daemon, job: i64) -> JobView {
    let jobs = daemon.client().jobs(&Filter { all: true, ..Filter::default() }).expect("a list");
    jobs.into_iter().find(|view| view.number == job).expect("it is in the list")
}

fn is_done(view: &JobView, code: i32) -> bool {
    matches!(view.phase, Phase::Done { exit: Exit::Code(exit), .. } if exit == code)
}

/// Flips a bit of the name of a job in its row, which only the database has.
fn damage_row(daemon: &Daemon, name: &str) {
    // Opening it brings the log into the database.
    drop(Store::open(&daemon.state()).expect("an undamaged state"));
    let path = daemon.state().join("store/jobs.db");
    let (bytes, text) = (fs::read(&path).expect("the database"), format!("\"name\":\"{name}\""));
    let file = File::options().write(true).open(&path).expect("the database");
    let places = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(text.as_bytes()));
    let changed = places.map(|at| {
        let at = at + text.len() - 2;
        file.write_all_at(&[bytes[at] ^ 1], at as u64).expect("a byte");
    });
    assert!(changed.count() > 0, "the row of {name}");
}

fn cpus_of(view: &JobView) -> Vec<u32> {
    match &view.phase {
        Phase::Running(allocation) => allocation.cpus.clone(),
        Phase::Adopted { cpus, .. } | Phase::Unreadable { cpus, .. } => cpus.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_running_job_whose_row_is_damaged_keeps_its_processor_and_is_recovered() {
    if !has_two_cpus() {
        return;
    }
    let mut daemon = Daemon::of_policy("miser");
    let job = daemon.submit(&until_file(&daemon, "go"));
    runs(&daemon, job);
    let before = cpus_of(&daemon.job(job));
    Backups::new(&daemon.state()).take(3).expect("a backup");
    daemon.stop();
    damage_row(&daemon, "until-go");
    daemon.start();
    assert!(matches!(listed(&daemon, job).phase, Phase::Unreadable { .. }), "{:?}", listed(&daemon, job));
    assert_eq!(cpus_of(&daemon.job(job)), before);
    let shown = status(&daemon);
    assert!(shown.damage.iter().any(|damage| damage.job == Some(job)), "{shown:?}");
    assert!(
        shown.adopted.iter().any(|one| one.job == job && one.cpus == before && one.end.is_some()),
        "{shown:?}"
    );
    assert!(daemon.log().contains(&format!("job {job}: its checksum differs")), "{}", daemon.log());
    let others: Vec<i64> = cpus().iter().map(|_| daemon.submit(&until_file(&daemon, "others"))).collect();
    runs(&daemon, others[0]);
    assert!(
        before.iter().all(|cpu| !cpus_of(&daemon.job(others[0])).contains(cpu)),
        "its processor is its own"
    );
    assert!(matches!(daemon.job(others[others.len() - 1]).phase, Phase::Queued), "one processor is missing");
    match daemon.client().hold(job, false) {
        Err(ClientError::Refused(problem)) => assert_eq!(problem.code, ProblemCode::Conflict, "{problem}"),
        other => panic!("{other:?}"),
    }
    // It ends, and its processor is free again.
    touch(&daemon, "go");
    runs(&daemon, others[others.len() - 1]);
    assert_eq!(status(&daemon).adopted, []);
    daemon.stop();
    daemon.start_with(&["--recover"]);
    assert!(is_done(&daemon.wait(job), 7), "{:?}", daemon.job(job));
    assert_eq!(status(&daemon).damage, []);
    touch(&daemon, "others");
    daemon.wait_for_all();
}

#[test]
fn a_waiting_job_that_a_later_version_wrote_waits_for_that_version() {
    let mut daemon = Daemon::of_policy("miser");
    let first = daemon.submit(&all_cpus(until_file(&daemon, "go")));
    runs(&daemon, first);
    let waits = daemon.submit(&all_cpus(until_file(&daemon, "go")));
    let after = daemon.submit(&Submission { after: vec![waits], ..until_file(&daemon, "go") });
    daemon.stop();
    let state = daemon.state();
    let change = |from: &str, to: &str| {
        let mut store = Store::open(&state).expect("a state");
        let row = store.job(waits).expect("a state").expect("a job");
        let rows = vec![JobRow { body: row.body.replacen(from, to, 1), ..row }];
        store.commit(&JournalBatch { rows, ..JournalBatch::default() }).expect("a commit");
    };
    let (known, unknown) = ("\"submission\":{", "\"submission\":{\"later\":1,");
    change(known, unknown);
    // That of the job that depends on it is at risk, too.
    for at_risk in [2, 2] {
        daemon.start();
        let view = listed(&daemon, waits);
        assert!(
            matches!(&view.phase, Phase::Unreadable { problem, .. } if problem.contains("later")),
            "{view:?}"
        );
        assert_eq!(status(&daemon).at_risk, at_risk, "each counts once");
        assert!(matches!(daemon.job(after).phase, Phase::Queued), "what depends on it waits");
        daemon.stop();
    }
    change(unknown, known);
    daemon.start();
    touch(&daemon, "go");
    for job in [first, waits, after] {
        assert!(is_done(&daemon.wait(job), 7), "{:?}", daemon.job(job));
    }
    assert_eq!(status(&daemon).damage, []);
}

/// Takes a backup with the command line and returns its path.
fn back_up(daemon: &Daemon) -> PathBuf {
    let (state, to) = (daemon.state(), daemon.path("copies"));
    let output = miserly(&["backup", &to.to_string_lossy(), "--state", &state.to_string_lossy()]);
    assert!(output.status.success(), "{output:?}");
    PathBuf::from(String::from_utf8(output.stdout).expect("a path").trim_end())
}

/// Since the backup one job ended, one began, and one was submitted and runs.
#[test]
fn a_restored_backup_is_older_than_the_jobs_and_none_is_killed_or_runs_twice() {
    if !has_two_cpus() {
        return;
    }
    let mut daemon = Daemon::of_policy("miser");
    let ends = daemon.submit(&all_cpus(until_file(&daemon, "first")));
    runs(&daemon, ends);
    let begins = daemon.submit(&until_file(&daemon, "go"));
    let backup = back_up(&daemon);
    touch(&daemon, "first");
    daemon.wait(ends);
    let new = daemon.submit(&until_file(&daemon, "new"));
    for job in [begins, new] {
        runs(&daemon, job);
    }
    let of_new = cpus_of(&daemon.job(new));
    let shims = processes::shims(&daemon.path(""));
    daemon.kill();
    daemon.start_with(&["--restore", &backup.to_string_lossy()]);
    assert_eq!(processes::shims(&daemon.path("")), shims, "none is killed");
    assert!(is_done(&daemon.job(ends), 7), "{:?}", daemon.job(ends));
    assert!(matches!(daemon.job(begins).phase, Phase::Running(_)), "{:?}", daemon.job(begins));
    let view = listed(&daemon, new);
    assert!(matches!(&view.phase, Phase::Adopted { end: Some(_), .. }), "{view:?}");
    assert_eq!((cpus_of(&view), view.name.as_str()), (of_new, "until-new"));
    assert_eq!(status(&daemon).adopted.len(), 1);
    let next = daemon.submit(&until_file(&daemon, "go"));
    assert!(next > new, "a number is given once: {next} after {new}");
    // Once more: the state still does not have it.
    daemon.kill();
    daemon.start();
    assert!(matches!(daemon.job(new).phase, Phase::Adopted { .. }), "{:?}", daemon.job(new));
    touch(&daemon, "new");
    until("its processor is free", SOON, || status(&daemon).adopted.is_empty().then_some(()));
    touch(&daemon, "go");
    for job in [begins, next] {
        assert!(is_done(&daemon.wait(job), 7), "{:?}", daemon.job(job));
    }
    let ran = fs::read_to_string(daemon.path("ran")).expect("a file");
    assert_eq!(ran.lines().count(), 4, "each ran once: {ran}");
}

#[test]
fn an_adopted_job_can_be_cancelled() {
    let mut daemon = Daemon::of_policy("miser");
    daemon.wait(daemon.submit(&sh("true", 5.0)));
    let backup = back_up(&daemon);
    let job = daemon.submit(&all_cpus(until_file(&daemon, "never")));
    runs(&daemon, job);
    daemon.kill();
    daemon.start_with(&["--restore", &backup.to_string_lossy()]);
    match daemon.client().submit(&sh("exit 3", 5.0)) {
        Err(ClientError::Refused(problem)) => assert!(problem.message.contains("adopted"), "{problem}"),
        other => panic!("no processor is left: {other:?}"),
    }
    daemon.client().cancel(job, false).expect("it is ended");
    until("its processors are free", SOON, || status(&daemon).adopted.is_empty().then_some(()));
    let next = daemon.submit(&sh("exit 3", 5.0));
    assert!(is_done(&daemon.wait(next), 3), "{:?}", daemon.job(next));
}

/// As on another machine: nothing is left of the attempts.
#[test]
fn a_job_that_ran_at_the_backup_and_left_nothing_is_lost_unless_it_may_run_again() {
    let mut daemon = Daemon::of_policy("miser");
    let job = daemon.submit(&until_file(&daemon, "go"));
    runs(&daemon, job);
    let again = daemon.submit(&Submission { restartable: true, ..until_file(&daemon, "go") });
    if has_two_cpus() {
        runs(&daemon, again);
    }
    let backup = back_up(&daemon);
    daemon.kill();
    processes::kill_all(&daemon.path(""));
    fs::remove_dir_all(daemon.state()).expect("a state that can be removed");
    touch(&daemon, "go");
    daemon.start_with(&["--restore", &backup.to_string_lossy()]);
    assert!(matches!(daemon.wait(job).phase, Phase::Lost { .. }), "{:?}", daemon.job(job));
    assert!(is_done(&daemon.wait(again), 7), "{:?}", daemon.job(again));
}

/// Promises that moved earlier are in values of their own, apart from the records.
#[test]
fn a_damaged_value_of_promises_is_named_with_its_jobs_and_costs_no_job() {
    let mut daemon = Daemon::of_policy("miser");
    let jobs = ["one", "two", "three"].map(|name| daemon.submit(&all_cpus(until_file(&daemon, name))));
    runs(&daemon, jobs[0]);
    let start =
        |daemon: &Daemon| daemon.job(jobs[2]).promise.expect("a promise").now.expect("a window").start;
    let first = start(&daemon);
    touch(&daemon, "one");
    runs(&daemon, jobs[1]);
    assert!(start(&daemon) < first, "its promise moved earlier");
    daemon.stop();
    // The next commit may put the promise into its record. So this value is of jobs that do not exist.
    let (key, value) = ("promises/9", "0 1 0 0 1");
    let values = vec![(key.to_owned(), value.to_owned())];
    let mut store = Store::open(&daemon.state()).expect("a state");
    store.commit(&JournalBatch { values, ..JournalBatch::default() }).expect("a commit");
    drop(store);
    drop(Store::open(&daemon.state()).expect("a state whose log is in the database"));
    let path = daemon.state().join("store/jobs.db");
    let (bytes, text) = (fs::read(&path).expect("the database"), format!("{key}{value}"));
    let file = File::options().write(true).open(&path).expect("the database");
    for at in (0..bytes.len()).filter(|at| bytes[*at..].starts_with(text.as_bytes())) {
        file.write_all_at(&[bytes[at + key.len() + 2] ^ 1], (at + key.len() + 2) as u64).expect("a byte");
    }
    let refused = daemon.command(&[]).status().expect("a program that starts");
    assert!(!refused.success() && daemon.log().contains("the value promises/9"), "{}", daemon.log());
    daemon.start_with(&["--recover"]);
    assert!(daemon.log().contains("lost: the value promises/9"), "{}", daemon.log());
    assert!(daemon.log().contains("among 2304 to 2559"), "{}", daemon.log());
    assert!(start(&daemon) <= first, "{} after {first}", start(&daemon));
    for name in ["two", "three"] {
        touch(&daemon, name);
    }
    for job in jobs {
        assert!(is_done(&daemon.wait(job), 7), "{:?}", daemon.job(job));
    }
}
