//! Jobs whose processors change while they run.

use std::fs;
use std::process::Command;

use miserly_api::model::{Exit, JobSignal, JobView, KilledBy, Phase, SignalRequest, Submission};

use miserly_test_support::Requirement;

use crate::support::{Daemon, SOON, cpus, has_two_cpus, miserly, queue, sh, until};

/// Notes its processors, by the file and by the kernel, at the beginning and at each signal, until there is a file `go`.
const NOTES: &str = "
look() { echo $(cat $MISERLY_CPUS_FILE) $(grep Cpus_allowed_list /proc/self/status | cut -f2) >> seen; }
trap look USR1
look
while [ ! -e go ]; do sleep 0.05; done
exit 7";

/// A resizable job on at most all processors, which gets `USR1`.
fn resizable(daemon: &Daemon, script: &str) -> Submission {
    Submission {
        cpus: 2,
        resizable: Some(1),
        resize_signal: Some(SignalRequest { signal: JobSignal::Usr1, main: true }),
        directory: daemon.path(""),
        ..sh(script, 600.0)
    }
}

/// A queue of two processors that are divided equally.
fn equal() -> String {
    let cpus = cpus().len();
    queue("eqspatial").replace(&format!("cpus = {cpus}"), "cpus = 2")
}

/// What the job noted: the number of its processors by the file, each time. Fails if the kernel says otherwise.
fn seen(daemon: &Daemon) -> Vec<usize> {
    let text = fs::read_to_string(daemon.path("seen")).unwrap_or_default();
    let numbers = |list: &str| -> Vec<u32> {
        let range = |part: &str| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            low.parse::<u32>().expect("a number")..=high.parse().expect("a number")
        };
        list.split(',').flat_map(range).collect()
    };
    let line = |line: &str| {
        let (file, kernel) = line.split_once(' ').expect("two lists");
        assert_eq!(numbers(file), numbers(kernel), "{text}");
        numbers(file).len()
    };
    text.lines().map(line).collect()
}

#[track_caller]
fn code(job: &JobView) -> Option<i32> {
    match job.phase {
        Phase::Done { exit: Exit::Code(code), .. } => Some(code),
        _ => None,
    }
}

#[test]
fn a_running_job_gives_processors_to_another_and_gets_them_back() {
    if !has_two_cpus() {
        return;
    }
    let mut daemon = Daemon::new(&equal());
    let first = daemon.submit(&resizable(&daemon, NOTES));
    until("it is on both", SOON, || (seen(&daemon) == [2]).then_some(()));
    let waits = "while [ ! -e on ]; do sleep 0.05; done; exit 3";
    let second = daemon.submit(&resizable(&daemon, waits));
    until("it is on one", SOON, || (seen(&daemon) == [2, 1]).then_some(()));
    // The ledger and the shim agree after a restart, and nothing changes.
    daemon.stop();
    daemon.start();
    let runs = |job| matches!(daemon.job(job).phase, Phase::Running(_));
    assert!(runs(first) && runs(second));
    fs::write(daemon.path("on"), "").expect("a file");
    assert_eq!(code(&daemon.wait(second)), Some(3));
    until("it is on both again", SOON, || (seen(&daemon) == [2, 1, 2]).then_some(()));
    fs::write(daemon.path("go"), "").expect("a file");
    let ended = daemon.wait(first);
    assert_eq!((code(&ended), ended.runs), (Some(7), 1));
}

#[test]
fn a_job_asks_for_fewer_processors_and_for_those_that_it_had() {
    if !has_two_cpus() {
        return;
    }
    let daemon = Daemon::new(&equal());
    let job = daemon.submit(&resizable(&daemon, NOTES));
    until("it is on both", SOON, || (seen(&daemon) == [2]).then_some(()));
    daemon.client().resize(job, 1).expect("fewer");
    until("it is on one", SOON, || (seen(&daemon) == [2, 1]).then_some(()));
    // A job that is not resizable takes the other one, and keeps it.
    let narrow = Submission { cpus: 1, directory: daemon.path(""), ..sh("sleep 0.5; exit 4", 60.0) };
    let narrow = daemon.submit(&narrow);
    until("the other one runs", SOON, || matches!(daemon.job(narrow).phase, Phase::Running(_)).then_some(()));
    let refused = daemon.client().resize(narrow, 1).expect_err("it is not resizable").to_string();
    assert!(refused.contains("keeps its processors"), "{refused}");
    let refused = daemon.client().resize(job, 3).expect_err("it is too much").to_string();
    assert!(refused.contains("1 to 2 processors"), "{refused}");
    assert_eq!(code(&daemon.wait(narrow)), Some(4));
    assert_eq!(seen(&daemon), [2, 1], "it wants no more");
    let job_view = daemon.job(job);
    assert_eq!((job_view.resizable, job_view.cpus, job_view.wanted), (Some(1), 2, Some(1)));
    let socket = daemon.path("socket");
    let shown = miserly(&["show", &job.to_string(), "--socket", &socket.to_string_lossy()]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("1 to 2 cpus (wants 1 at most)"), "{shown}");
    let asked = miserly(&["resize", "2", &job.to_string(), "--socket", &socket.to_string_lossy()]);
    assert!(asked.status.success(), "{asked:?}");
    until("it is on both again", SOON, || (seen(&daemon) == [2, 1, 2]).then_some(()));
    fs::write(daemon.path("go"), "").expect("a file");
    assert_eq!(code(&daemon.wait(job)), Some(7));
}

/// A job asks for itself: `miserly` and its job's number are in its environment.
#[test]
fn a_running_job_asks_the_daemon_for_other_processors() {
    if !has_two_cpus() {
        return;
    }
    let daemon = Daemon::new(&equal());
    let asks = format!(
        "trap : USR1; for cpus in 1 2; do {} resize $cpus $MISERLY_JOB_ID || exit 1; \
         while [ $(tr , '\\n' < $MISERLY_CPUS_FILE | wc -l) != $cpus ]; do sleep 0.05; done; nproc >> seen; done; exit 7",
        env!("CARGO_BIN_EXE_miserly")
    );
    let job = daemon.submit(&resizable(&daemon, &asks));
    assert_eq!(code(&daemon.wait(job)), Some(7));
    assert_eq!(fs::read_to_string(daemon.path("seen")).expect("a file"), "1\n2\n");
}

#[test]
fn a_queue_that_resizes_no_job_refuses_a_resizable_one() {
    let daemon = Daemon::new(&queue("easy"));
    let refused = daemon.client().submit(&Submission { cpus: 1, ..resizable(&daemon, "true") });
    let refused = refused.expect_err("it would never be resized").to_string();
    assert!(refused.contains("resizes no job: its policy is easy"), "{refused}");
}

#[test]
fn a_job_of_a_fixed_size_waits_until_others_have_left_enough() {
    if !has_two_cpus() {
        return;
    }
    let daemon = Daemon::new(&equal());
    let first = daemon.submit(&resizable(&daemon, NOTES));
    until("it is on both", SOON, || (seen(&daemon) == [2]).then_some(()));
    let wide = Submission { cpus: 2, directory: daemon.path(""), ..sh("exit 5", 60.0) };
    let wide = daemon.submit(&wide);
    assert!(matches!(daemon.job(wide).phase, Phase::Queued), "the first one keeps one processor");
    fs::write(daemon.path("go"), "").expect("a file");
    assert_eq!((code(&daemon.wait(first)), code(&daemon.wait(wide))), (Some(7), Some(5)));
    assert_eq!(seen(&daemon), [2]);
}

/// The limit bounds the work: on half of the processors a job has twice the time.
#[test]
fn a_limit_lasts_longer_on_fewer_processors() {
    if !has_two_cpus() {
        return;
    }
    let daemon = Daemon::new(&equal());
    // No shell that waits for a sleep would handle the signal in time.
    let short = |time| Submission { time, resize_signal: None, ..resizable(&daemon, "exec sleep 100") };
    let alone = daemon.submit(&short(3.0));
    let ran = |job: i64| {
        let ended = daemon.wait(job);
        let Phase::Killed { start: Some(start), end, by: KilledBy::Time, .. } = ended.phase else {
            panic!("{ended:?}")
        };
        (end - start).total(jiff::Unit::Second).expect("seconds")
    };
    let alone = ran(alone);
    let both = [daemon.submit(&short(3.0)), daemon.submit(&short(3.0))].map(ran);
    assert!((2.5..4.5).contains(&alone), "{alone}");
    assert!(both.iter().all(|ran| (5.0..8.5).contains(ran)), "{both:?}");
}

/// Runs a program of `contrib/resizable` on two processors, on one, and on two again.
#[track_caller]
fn follows(daemon: &Daemon, command: &[&str], unit: &str) {
    let output = daemon.path("output");
    let job = daemon.submit(&Submission {
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        output: Some(output.clone()),
        ..resizable(daemon, "")
    });
    let said = || fs::read_to_string(&output).unwrap_or_default();
    for (nth, (cpus, last)) in [(2, false), (1, false), (2, true)].into_iter().enumerate() {
        let line = format!(": {cpus} {unit}");
        let shows = || said().lines().nth(nth).is_some_and(|shown| shown.ends_with(&line));
        until(&line, SOON, || shows().then_some(()));
        if !last {
            daemon.client().resize(job, 3 - cpus).expect("the other number");
        }
    }
    daemon.client().cancel(job, false).expect("it runs");
    daemon.wait(job);
}

fn example(name: &str) -> String {
    format!("{}/contrib/resizable/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_example_in_openmp_follows_its_processors() {
    if !has_two_cpus() {
        return;
    }
    let daemon = Daemon::new(&equal());
    let program = daemon.path("openmp").to_string_lossy().into_owned();
    let compiled =
        Command::new("cc").args(["-O2", "-fopenmp", &example("openmp.c"), "-o", &program]).output();
    let made = compiled.is_ok_and(|compiled| compiled.status.success());
    if Requirement::Languages.is_met(made, "needs a compiler of C with OpenMP") {
        follows(&daemon, &[&program, "1000000"], "threads");
    }
}

#[test]
fn the_example_in_python_follows_its_processors() {
    if !has_two_cpus() {
        return;
    }
    let found = Command::new("python3").args(["-c", "print()"]).output();
    let there = found.is_ok_and(|found| found.status.success());
    if Requirement::Languages.is_met(there, "needs Python 3") {
        follows(&Daemon::new(&equal()), &["python3", &example("processes.py"), "1000000"], "processes");
    }
}
