//! Many running jobs under one daemon: its threads, its descriptors, its memory, and the time of its restart.
//!
//! `MISERLY_JOBS` is the number of jobs (default: 60). The test prints its figures:
//!
//! ```sh
//! MISERLY_JOBS=2000 cargo test --workspace --features full --test live -- --nocapture many
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use miserly_api::model::{Array, Filter, Phase, Submission};

use crate::support::{Daemon, SOON, is_over, now, queue, sh, until};

/// The time in which a daemon takes over all attempts, and starts besides.
const RESTART: Duration = Duration::from_secs(9);
/// Descriptors that come and go: connections of clients, and files.
const PASSING: usize = 24;
/// The jobs of one slot of this queue share the processors, and the first slot keeps its turn.
const GANG: &str = "gang(quantum=1d)";

fn jobs() -> u32 {
    std::env::var("MISERLY_JOBS").map_or(60, |text| text.parse().expect("MISERLY_JOBS is a number of jobs"))
}

/// What a daemon uses.
#[derive(Clone, Copy)]
struct Usage {
    threads: usize,
    descriptors: usize,
    /// Kilobytes.
    memory: usize,
}

impl Usage {
    fn of(daemon: &Daemon) -> Usage {
        let pid = daemon.pid().expect("a daemon").as_raw_nonzero();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a field");
            line.split_whitespace().next().expect("a number").parse().expect("a number")
        };
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).expect("a process").count();
        Usage { threads: field("Threads:"), descriptors, memory: field("VmRSS:") }
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Usage { threads, descriptors, memory } = self;
        write!(f, "{threads} threads, {descriptors} descriptors, {memory} kB of memory")
    }
}

/// Waits until each job has a shim to which the daemon is connected, and nothing else is open.
#[track_caller]
fn supervised(daemon: &Daemon, jobs: u32, before: Usage) -> Usage {
    let expected = before.descriptors + 2 * jobs as usize;
    let within = SOON + Duration::from_millis(100) * jobs;
    until("all jobs are supervised", within, || {
        let usage = Usage::of(daemon);
        let is_complete =
            begun(daemon).len() == jobs as usize && usage.descriptors.abs_diff(expected) <= PASSING;
        is_complete.then_some(usage)
    })
}

/// Returns the folders of the attempts whose shims have begun.
fn begun(daemon: &Daemon) -> BTreeSet<PathBuf> {
    let attempts = fs::read_dir(daemon.state().join("attempts")).expect("a folder").flatten();
    attempts.map(|attempt| attempt.path()).filter(|path| path.join("shim.json").exists()).collect()
}

fn submit(daemon: &Daemon, jobs: u32) -> i64 {
    let job = Submission {
        array: Some(Array::range(0, jobs - 1, 1)),
        no_opportunistic: true,
        // The jobs that wait for their turn keep their memory.
        memory: Some(4 << 20),
        ..sh("exec sleep 86400", 86_400.0)
    };
    daemon.client().submit(&job).expect("it is accepted").jobs[0].number
}

#[test]
fn a_daemon_has_two_descriptors_and_no_thread_for_each_job() {
    let jobs = jobs();
    let mut daemon = Daemon::of_policy(GANG);
    let before = Usage::of(&daemon);
    let began = now();
    let first = submit(&daemon, jobs);
    let with = supervised(&daemon, jobs, before);
    eprintln!("{jobs} jobs begin within {:.1} s", began.elapsed().as_secs_f64());
    eprintln!("without jobs: {before}\nwith jobs:    {with}");
    // The thread of the turns.
    assert!(with.threads <= before.threads + 1, "{} threads, {} before", with.threads, before.threads);

    daemon.kill();
    let began = now();
    daemon.start();
    let took = began.elapsed();
    let again = supervised(&daemon, jobs, before);
    eprintln!("a restart takes {:.2} s; then: {again}", took.as_secs_f64());
    assert!(took < RESTART, "the restart took {took:?}");
    assert!(!daemon.log().contains("does not answer yet") && !daemon.log().contains("cannot be taken up"));
    let attempts = fs::read_dir(daemon.state().join("attempts")).expect("a folder").count();
    assert_eq!(attempts, jobs as usize, "no job has a second attempt");
    let running = daemon.client().all_jobs(&Filter::default()).expect("a list");
    assert!(running.iter().all(|job| matches!(job.phase, Phase::Running(_))));
    daemon.client().cancel(first, true).expect("it can be cancelled");
    daemon.wait_for_all();
    assert!(daemon.history().iter().all(|job| is_over(&job.phase)));
}

/// The daemon cannot raise its limit, and some clients connect, too.
#[test]
fn launches_wait_while_the_daemon_is_short_of_descriptors() {
    let mut daemon = Daemon::asleep(&queue(GANG));
    let command = daemon.command(&[]);
    let mut limited = std::process::Command::new("/bin/sh");
    limited
        .args(["-c", "ulimit -n 120; exec 2>> \"$0\"; exec \"$@\""])
        .arg(daemon.path("log"))
        .arg(command.get_program())
        .args(command.get_args());
    daemon.run(limited.stdin(Stdio::null()).stdout(Stdio::null()));
    let first = submit(&daemon, 60);
    let is_short = || {
        let notes = daemon.client().status().expect("a status").launcher;
        notes.iter().any(|note| note.starts_with("short of descriptors; "))
    };
    until("launches wait", SOON, || is_short().then_some(()));
    let before = begun(&daemon);
    assert!((1..60).contains(&before.len()), "{before:?} have begun");
    // Ends make room for other jobs.
    let mut all = first..;
    until("another one begins", SOON, || {
        let number = all.next()?;
        daemon.client().cancel(number, false).expect("it can be cancelled");
        assert!(matches!(daemon.wait(number).phase, Phase::Killed { .. }));
        (!begun(&daemon).is_subset(&before)).then_some(())
    });
    daemon.client().cancel(first, true).expect("they can be cancelled");
    daemon.wait_for_all();
    until("nothing waits", SOON, || (!is_short()).then_some(()));
    assert!(daemon.log().contains("short of descriptors"), "{}", daemon.log());
}
