//! Many clients at once, and many jobs that wait: nobody is lost, nobody is passed over.

use std::collections::BTreeSet;
use std::fs;
use std::thread;

use jiff::SignedDuration;
use miserly_api::model::{Exit, Filter, JobView, Phase, Submission};

use crate::support::{Crowd, Daemon, SOON, miserly, queue, sh, until};

/// Clients at once.
const CLIENTS: usize = 200;

/// Jobs that wait. `benches/crowd.rs` takes more, and measures.
const JOBS: usize = 300;

#[test]
fn two_hundred_clients_submit_ask_and_wait() {
    let daemon = Daemon::of_policy("miser");
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let client = daemon.client();
            let job = Submission { directory: daemon.path(""), ..sh("echo $MISERLY_JOB_ID >> ran", 60.0) };
            thread::spawn(move || {
                let number = client.submit(&job).expect("it is accepted").jobs[0].number;
                assert_eq!(client.job(number).expect("the daemon knows it").number, number);
                let ended = client.wait(number).expect("it ends");
                assert!(matches!(ended.phase, Phase::Done { exit: Exit::Code(0), .. }), "{:?}", ended.phase);
                number
            })
        })
        .collect();
    let told: Vec<i64> = clients.into_iter().map(|client| client.join().expect("it is served")).collect();
    let told_once: BTreeSet<i64> = told.iter().copied().collect();
    assert_eq!((told.len(), told_once.len()), (CLIENTS, CLIENTS), "each has a number of its own");
    let mut ran: Vec<i64> = fs::read_to_string(daemon.path("ran"))
        .expect("what ran")
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect();
    ran.sort_unstable();
    assert!(ran.into_iter().eq(told_once.iter().copied()), "each ran once");
    assert!(daemon.history().iter().map(|job| job.number).eq(told_once), "each is remembered once");
}

/// All are there, in the order in which they came, before a kill and after; and the first of them is the next one.
#[test]
fn a_crowd_waits_for_its_turn() {
    let mut daemon = Daemon::new(&queue("miser(horizon=none)"));
    let mut crowd = Crowd::new(&daemon);
    let client = daemon.client();
    for _ in 0..JOBS {
        crowd.join(&client);
    }
    let before = waiting(&daemon);
    assert!(before.iter().map(|job| job.number).eq(crowd.numbers.iter().copied()), "each once, in order");
    assert!(before.iter().all(|job| job.phase == Phase::Queued), "nobody runs");
    let promised = before.iter().filter(|job| job.promise.is_some()).count();
    assert_eq!(promised, JOBS, "all are promised a start");
    listed(&daemon, &crowd);

    daemon.kill();
    daemon.start();
    let after = waiting(&daemon);
    assert!(before.iter().map(|job| job.number).eq(after.iter().map(|job| job.number)), "nobody is lost");
    for (before, after) in before.iter().zip(&after) {
        let [told, now] = [before, after]
            .map(|job| job.promise.as_ref().map(|promise| promise.now.as_ref().expect("a window").start));
        let same = told
            .zip(now)
            .is_none_or(|(told, now)| told.duration_since(now).abs() < SignedDuration::from_secs(1));
        assert!(same && told.is_some() == now.is_some(), "job {}: {told:?}, then {now:?}", before.number);
    }

    crowd.leave(&daemon);
    let next = crowd.numbers[0];
    until("the next one runs", SOON, || matches!(daemon.job(next).phase, Phase::Running(_)).then_some(()));
}

/// The jobs that are not over, but for the one that runs.
fn waiting(daemon: &Daemon) -> Vec<JobView> {
    let jobs = daemon.client().all_jobs(&Filter::default()).expect("a list");
    jobs.into_iter().filter(|job| !matches!(job.phase, Phase::Running(_))).collect()
}

/// The program lists them all, too: a line each, under a header.
#[track_caller]
fn listed(daemon: &Daemon, crowd: &Crowd) {
    let socket = daemon.path("socket").to_string_lossy().into_owned();
    let output = miserly(&["queue", "--socket", &socket]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let numbers =
        text.lines().skip(1).map(|line| line.split_whitespace().next().and_then(|word| word.parse().ok()));
    let expected = [crowd.first].into_iter().chain(crowd.numbers.iter().copied()).map(Some);
    assert!(numbers.eq(expected), "{text}");
}
