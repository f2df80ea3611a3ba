//! Jobs that take turns on their processors: real processes, stopped and let go on.

use std::collections::BTreeSet;
use std::fs;

use miserly_api::model::{Exit, Phase, Slots, Submission};

use crate::support::{Daemon, SOON, cpus, queue, sh, until};

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
/// order and no shorter than it should be.
///
/// On a busy machine a job may have its turn and note nothing: the turns that are missing in the order took their time as well. Two that
/// ran at once would seem to have taken turns much faster.
#[track_caller]
fn check_turns(daemon: &Daemon, names: &[&str], count: usize) {
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
}

/// Lets them go, and waits for all.
#[track_caller]
fn finish(daemon: &Daemon, jobs: &[i64]) {
    fs::write(daemon.path("go"), "").expect("a file");
    for job in jobs {
        let ended = daemon.wait(*job);
        assert!(matches!(ended.phase, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
        assert_eq!(ended.runs, 1);
    }
    daemon.wait_for_all();
}

#[test]
fn a_daemon_that_is_killed_between_turns_leaves_nothing_stopped_and_the_next_one_rotates_on() {
    let mut daemon = Daemon::new(&format!("orphan-resume-delay = 1\n{}", gang()));
    let names = ["x", "y"];
    let jobs = names.map(|name| daemon.submit(&notes(&daemon, name, all())));
    for (job, own) in jobs.into_iter().zip(0..) {
        let slots = daemon.job(job).slots.expect("its queue's jobs take turns");
        assert_eq!(slots, Slots { own, runs_in: vec![own], used: 2, fraction: 0.5 });
    }
    check_turns(&daemon, &names, 3);
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
    check_turns(&daemon, &names, 2);
    finish(&daemon, &jobs);
}
