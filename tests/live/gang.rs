//! Jobs that take turns on their processors: real processes, stopped and let go on.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::net::UnixStream;

use miserly_api::model::{Exit, JobView, KilledBy, Phase, Slots, Submission};

use crate::support::{Daemon, SOON, cpus, has_two_cpus, queue, sh, until};

/// In milliseconds.
const QUANTUM: u64 = 1000;

/// A queue with little memory for each job: those of all rows are there at once.
fn gang() -> String {
    format!("{}default-memory = \"8MB\"\n", queue("gang(quantum=1s)"))
}

/// A job of two processes, both of which note again and again when they run, until there is a file `go`; it exits with 7.
fn notes(daemon: &Daemon, name: &str, cpus: u64) -> Submission {
    let script = format!(
        "note() {{ while [ ! -e go ]; do date +%s%N >> {name}.$1; sleep 0.02; done; }}; note a & note b & wait; exit 7"
    );
    Submission { cpus, directory: daemon.path(""), ..sh(&script, 600.0) }
}

fn all() -> u64 {
    cpus().len() as u64
}

/// When each process of these jobs ran, in milliseconds, with the place of its job here; in order.
fn noted(daemon: &Daemon, names: &[&str]) -> Vec<(u64, usize)> {
    let mut noted = vec![];
    for (place, name) in names.iter().enumerate() {
        for process in ["a", "b"] {
            let text = fs::read_to_string(daemon.path(&format!("{name}.{process}"))).unwrap_or_default();
            let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
            let instants = whole.lines().map(|line| line.parse::<u64>().expect("nanoseconds") / 1_000_000);
            noted.extend(instants.map(|at| (at, place)));
        }
    }
    noted.sort_unstable();
    noted
}

/// Whose turn it was, from when until when, by what the jobs noted since an instant.
fn turns(noted: &[(u64, usize)], since: u64) -> Vec<(usize, u64, u64)> {
    let mut turns: Vec<(usize, u64, u64)> = vec![];
    for (at, job) in noted.iter().filter(|(at, _)| *at >= since) {
        match turns.last_mut() {
            Some((of, _, last)) if of == job => *last = *at,
            _ => turns.push((*job, *at, *at)),
        }
    }
    turns
}

/// Waits until these jobs, each in a row of its own, have had so many turns from now on, and checks that each was one job's alone, in
/// order and no shorter than it should be; the turns.
///
/// On a busy machine a job may have its turn and note nothing: the turns that are missing in the order took their time as well. Two that
/// ran at once would seem to have taken turns much faster.
#[track_caller]
fn check_turns(daemon: &Daemon, names: &[&str], count: usize) -> Vec<(usize, u64, u64)> {
    let since = noted(daemon, names).last().map_or(0, |(at, _)| *at);
    let turns = until("they take turns", SOON, || {
        let turns = turns(&noted(daemon, names), since);
        (turns.len() > count).then_some(turns)
    });
    let steps = |pair: &[(usize, u64, u64)]| (pair[1].0 + names.len() - pair[0].0) % names.len();
    let passed: usize = turns[..=count].windows(2).map(steps).sum();
    // Between the end of the first turn and the beginning of the last one there are all but one.
    let (first, last) = (turns[0].2, turns[count].1);
    assert!(last - first >= (passed as u64 - 1) * QUANTUM * 9 / 10, "{passed} turns: {turns:?}");
    turns
}

/// Whether a job that notes was not stopped for a turn, three turns long until now.
fn runs_on(daemon: &Daemon, name: &str) -> bool {
    let noted = noted(daemon, &[name]);
    let last = noted.last().map_or(0, |(at, _)| *at);
    let late = noted.windows(2).filter(|pair| pair[1].0 + 3 * QUANTUM > last);
    late.map(|pair| pair[1].0 - pair[0].0).all(|pause| pause < QUANTUM * 9 / 10)
}

#[track_caller]
fn exit_of(job: &JobView) -> Exit {
    match job.phase {
        Phase::Done { exit, .. } => exit,
        ref other => panic!("job {} came to {other:?}", job.number),
    }
}

#[track_caller]
fn slots(daemon: &Daemon, job: i64) -> Slots {
    daemon.job(job).slots.expect("its queue's jobs take turns")
}

/// Lets them go, and waits for all.
#[track_caller]
fn finish(daemon: &Daemon, jobs: &[i64]) {
    fs::write(daemon.path("go"), "").expect("a file");
    for job in jobs {
        let ended = daemon.wait(*job);
        assert_eq!((exit_of(&ended), ended.attempts), (Exit::Code(7), 1));
    }
    daemon.wait_for_all();
}

#[test]
fn rows_take_turns_and_no_two_run_at_once() {
    let daemon = Daemon::new(&gang());
    let names = ["x", "y", "z"];
    let jobs = names.map(|name| daemon.submit(&notes(&daemon, name, all())));
    for (job, own) in jobs.into_iter().zip(0..) {
        let slots = slots(&daemon, job);
        assert_eq!((slots.own, slots.runs_in, slots.used), (own, vec![own], 3));
        assert!((slots.fraction - 1.0 / 3.0).abs() < 1e-9);
    }
    check_turns(&daemon, &names, 6);
    finish(&daemon, &jobs);
}

#[test]
fn a_daemon_that_is_killed_between_turns_leaves_nothing_stopped_and_the_next_one_rotates_on() {
    let mut daemon = Daemon::new(&format!("orphan-resume-delay = 1\n{}", gang()));
    let names = ["x", "y"];
    let jobs = names.map(|name| daemon.submit(&notes(&daemon, name, all())));
    check_turns(&daemon, &names, 2);
    daemon.kill();
    let run = |since: u64| {
        let both = noted(&daemon, &names).into_iter().filter(|(at, _)| *at > since + 2 * QUANTUM);
        both.map(|(_, job)| job).collect::<BTreeSet<usize>>().len() == 2
    };
    let killed = noted(&daemon, &names).last().expect("they ran").0;
    until("both go on with no daemon", SOON, || run(killed).then_some(()));
    daemon.start();
    until("one of them is stopped", SOON, || {
        let last = |name| noted(&daemon, &[name]).last().map_or(0, |(at, _)| *at);
        (last("x").abs_diff(last("y")) > QUANTUM / 2).then_some(())
    });
    check_turns(&daemon, &names, 3);
    finish(&daemon, &jobs);
}

#[test]
fn a_shim_to_which_the_connection_is_cut_is_told_again() {
    let daemon = Daemon::new(&gang());
    let names = ["x", "y"];
    let jobs = names.map(|name| daemon.submit(&notes(&daemon, name, all())));
    check_turns(&daemon, &names, 2);
    for job in jobs {
        // The latest connection is the daemon's.
        let ctl = daemon.state().join(format!("attempts/{job}.1/ctl"));
        drop(UnixStream::connect(ctl).expect("a shim"));
    }
    let cut = noted(&daemon, &names).last().expect("they ran").0;
    until("each has run since", SOON, || {
        names
            .iter()
            .all(|name| noted(&daemon, &[name]).last().is_some_and(|(at, _)| *at > cut + QUANTUM))
            .then_some(())
    });
    check_turns(&daemon, &names, 3);
    finish(&daemon, &jobs);
}

#[test]
fn who_fits_beside_another_row_runs_there_too_and_rows_that_fit_together_become_one() {
    if !has_two_cpus() {
        return;
    }
    let daemon = Daemon::new(&gang().replace(&format!("cpus = {}", all()), "cpus = 2"));
    let waits = |file: &str| Submission {
        directory: daemon.path(""),
        ..sh(&format!("while [ ! -e {file} ]; do date +%s%N >> {file}.a; sleep 0.02; done; exit 7"), 600.0)
    };
    let [first, beside, other] = ["first", "beside", "go"].map(|file| daemon.submit(&waits(file)));
    assert_eq!(slots(&daemon, beside), Slots { own: 0, runs_in: vec![0, 1], used: 2, fraction: 1.0 });
    assert_eq!(slots(&daemon, other), Slots { own: 1, runs_in: vec![1], used: 2, fraction: 0.5 });
    let turns = check_turns(&daemon, &["first", "go"], 4);
    let noted = noted(&daemon, &["beside"]);
    for (_, from, until) in turns.iter().filter(|(_, from, until)| until - from >= QUANTUM / 2) {
        let within = noted.iter().any(|(at, _)| from <= at && at <= until);
        assert!(within, "who is in both rows runs in every turn: {turns:?}, {noted:?}");
    }
    fs::write(daemon.path("first"), "").expect("a file");
    assert_eq!(exit_of(&daemon.wait(first)), Exit::Code(7));
    assert_eq!(slots(&daemon, beside).used, 1);
    until("one row has all of the time", SOON, || {
        ["go", "beside"].iter().all(|name| runs_on(&daemon, name)).then_some(())
    });
    fs::write(daemon.path("beside"), "").expect("a file");
    fs::write(daemon.path("go"), "").expect("a file");
    assert_eq!([beside, other].map(|job| exit_of(&daemon.wait(job))), [Exit::Code(7); 2]);
}

#[test]
fn time_in_which_others_run_is_not_taken_from_a_job() {
    let daemon = Daemon::new(&gang());
    let counts = "i=0; while [ $i -lt 25 ]; do i=$((i+1)); sleep 0.1; done; exit 7";
    let wide = |script, time| Submission { cpus: all(), ..sh(script, time) };
    // Each runs for more than two seconds, with two others between.
    let jobs = [0; 2].map(|_| daemon.submit(&wide(counts, 10.0)));
    let endless = daemon.submit(&wide("while :; do sleep 0.1; done", 4.0));
    assert_eq!(jobs.map(|job| exit_of(&daemon.wait(job))), [Exit::Code(7); 2]);
    let ended = daemon.wait(endless);
    let Phase::Killed { start: Some(start), end, by: KilledBy::Time, .. } = ended.phase else {
        panic!("{:?}", ended.phase)
    };
    let lasted = (end - start).total(jiff::Unit::Millisecond).expect("a length");
    // Four seconds of its own, and at least two turns of each other one.
    assert!(lasted >= 7000.0, "it ran for four seconds in {lasted} ms");
}
