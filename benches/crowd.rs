//! The cost of requests to the daemon with thousands of waiting jobs behind one running job.
//!
//! `cargo bench --features full -p miserly --bench crowd -- --jobs 10000 --policy miser` measures a submission, the list of jobs, the
//! view of one job, and a restart on that state. Without `--policy` it measures `miser`, `easy` and `conservative`.
//!
//! `--flood` measures requests of one user beside two users that flood the daemon, 200 clients in all. It needs root.

#[path = "../tests/live/support/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "what the tests of the running daemon share, in part"
)]
mod support;

use std::time::{Duration, Instant};

use support::flood::flood;
use support::{Crowd, Daemon, SOON, miserly, queue, until};

/// The measurement.
struct Wanted {
    jobs: usize,
    policies: Vec<String>,
    flood: bool,
}

fn main() {
    let wanted = wanted(std::env::args().skip(1));
    if wanted.flood {
        return measure_flood();
    }
    println!("{:13} {:>7} {:>10} {:>10} {:>10}", "policy", "waiting", "median", "99 %", "most");
    for policy in &wanted.policies {
        measure(policy, wanted.jobs);
    }
}

/// Returns the measurement of the command line. Cargo's `--test` selects a small one.
fn wanted(arguments: impl Iterator<Item = String>) -> Wanted {
    let mut wanted = Wanted { jobs: 10_000, policies: vec![], flood: false };
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} needs a value"));
        match argument.as_str() {
            "--jobs" => wanted.jobs = value().parse().expect("--jobs is a number"),
            "--policy" => wanted.policies.push(value()),
            "--flood" => wanted.flood = true,
            "--test" => wanted.jobs = 20,
            // Cargo passes this to every benchmark.
            "--bench" => {}
            other => panic!("{other}: there is --jobs N, --policy P and --flood"),
        }
    }
    if wanted.policies.is_empty() {
        wanted.policies = ["miser", "easy", "conservative"].map(String::from).to_vec();
    }
    wanted
}

/// Fills a queue in ten steps and measures each. Then measures the requests.
fn measure(policy: &str, jobs: usize) {
    let mut daemon = Daemon::new(&queue(&policy.replace("miser", "miser(horizon=none)")));
    let mut crowd = Crowd::new(&daemon);
    let client = daemon.client();
    for step in 1..=10 {
        let mut took = vec![];
        while crowd.numbers.len() < jobs * step / 10 {
            took.push(time(|| crowd.join(&client)).0);
        }
        took.sort_unstable();
        let [median, most_but_few] = [50, 99].map(|percent| took[(took.len() - 1) * percent / 100]);
        let most = took[took.len() - 1];
        let waiting = crowd.numbers.len();
        println!("{policy:13} {waiting:7} {median:>10.1?} {most_but_few:>10.1?} {most:>10.1?}");
    }
    let socket = daemon.path("socket").to_string_lossy().into_owned();
    let number = crowd.numbers[jobs / 2].to_string();
    for command in [&["queue"][..], &["queue", "--json"], &["show", &number], &["status"], &["pools"]] {
        let (took, output) = time(|| miserly(&[command, &["--socket", &socket]].concat()));
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        println!("{policy:13} miserly {:20} {took:>10.1?}", command.join(" "));
    }
    daemon.kill();
    let (took, ()) = time(|| daemon.start());
    println!("{policy:13} {:28} {took:>10.1?}", "start over this state");
    let (took, _) = time(|| client.cancel(crowd.numbers[jobs / 2], false).expect("it can be cancelled"));
    println!("{policy:13} {:28} {took:>10.1?}", "cancel one that waits");
    let (took, ()) = time(|| crowd.leave(&daemon));
    println!("{policy:13} {:28} {took:>10.1?}", "end the one that runs");
    let runs = || daemon.client().status().ok().filter(|status| status.queues[0].running > 0);
    until("the next one runs", SOON, runs);
}

/// Measures the requests of an honest user beside others.
fn measure_flood() {
    let daemon = Daemon::for_everybody("");
    let (honest, others) = flood(&daemon);
    for (what, mut took) in [("submit", honest.submits), ("list", honest.lists)] {
        took.sort_unstable();
        let [median, most_but_few] = [50, 99].map(|percent| took[(took.len() - 1) * percent / 100]);
        println!("{what:6} median {median:.1?}, 99 % {most_but_few:.1?}, most {:.1?}", took[took.len() - 1]);
    }
    println!("{} answers to the others", others.len());
}

/// Returns the duration of a call, and its result.
#[allow(clippy::disallowed_methods)] // A benchmark reads the clock.
fn time<T>(what: impl FnOnce() -> T) -> (Duration, T) {
    let began = Instant::now();
    let came_to = what();
    (began.elapsed(), came_to)
}
