//! A configuration that is read again, under jobs that run.

use std::fs;

use miserly_api::model::{Exit, Phase, Submission};
use rustix::process::{Signal, kill_process};

use crate::same::play;
use crate::support::{Daemon, SOON, has_two_cpus, processes, sh, until};

const WAITS: &str = "echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done; exit 7";

/// A pool of so many processors, and queues with their parts of it.
fn configuration(pool: usize, queues: &[(&str, usize)]) -> String {
    let queue = |(name, cpus): &(&str, usize)| {
        format!(
            "[[queue]]\nname = \"{name}\"\ncpus = {cpus}\nmemory = \"{cpus}00000KB\"\npolicy = \"miser\"\n"
        )
    };
    let queues: String = queues.iter().map(queue).collect();
    format!(
        "cleanup-time = 1\nopportunistic = false\n[pool]\ncpus = {pool}\nmemory = \"{pool}00000KB\"\n{queues}"
    )
}

/// Has the daemon read its configuration again; what it says of that.
#[track_caller]
fn read_again(daemon: &Daemon, text: &str) -> String {
    let before = daemon.log().len();
    daemon.configure(text);
    kill_process(daemon.pid().expect("it runs"), Signal::HUP).expect("a signal");
    until("it says something", SOON, || {
        let said = daemon.log().get(before..)?.to_owned();
        said.contains("the configuration ").then_some(said)
    })
}

/// A job that runs, on one processor, and the number of its process.
fn running(daemon: &Daemon) -> (i64, u32) {
    let number = daemon.submit(&Submission { directory: daemon.path(""), ..sh(WAITS, 600.0) });
    (number, daemon.pid_in("pid"))
}

/// Lets it end as if nothing had happened.
#[track_caller]
fn check_ends(daemon: &Daemon, number: i64) {
    fs::write(daemon.path("go"), "").expect("a file");
    let ended = daemon.wait(number);
    assert!(matches!(ended.phase, Phase::Done { exit: Exit::Code(7), .. }), "{:?}", ended.phase);
    assert_eq!(ended.runs, 1);
}

/// What of a job no reading may touch: its processors, its attempts, and what it was told.
fn look(daemon: &Daemon, number: i64) -> (Vec<u32>, u32, usize) {
    let job = daemon.job(number);
    let cpus = if let Phase::Running(holding) = &job.phase { holding.cpus.clone() } else { vec![] };
    (cpus, job.runs, job.promise.expect("miser promises").history.len())
}

fn names(daemon: &Daemon) -> Vec<String> {
    daemon.client().status().expect("a status").queues.into_iter().map(|queue| queue.name).collect()
}

#[test]
fn a_larger_pool_and_a_new_queue_are_taken_and_running_jobs_are_not_touched() {
    if !has_two_cpus() {
        return;
    }
    let mut daemon = Daemon::new(&configuration(1, &[("batch", 1)]));
    let (number, pid) = running(&daemon);
    let before = (look(&daemon, number), processes::allowed(pid));
    let said = read_again(&daemon, &configuration(2, &[("batch", 1), ("more", 1)]));
    assert!(said.contains("was read again"), "{said}");
    assert_eq!(names(&daemon), ["batch", "more"]);
    let other = Submission { queue: Some("more".into()), ..sh("exit 3", 20.0) };
    let other = daemon.wait(daemon.submit(&other));
    assert!(matches!(other.phase, Phase::Done { exit: Exit::Code(3), .. }), "{:?}", other.phase);
    assert_eq!((look(&daemon, number), processes::allowed(pid)), before);
    check_ends(&daemon, number);
    daemon.stop();
    // Across the change, too.
    let played = play(&daemon.state());
    assert!(played.get("difference").is_none() && played["starts"] == 2, "{played:#}");
}

#[test]
fn what_would_break_a_promise_is_refused_and_the_promise_is_named() {
    if !has_two_cpus() {
        return;
    }
    let daemon = Daemon::new(&configuration(2, &[("batch", 2)]));
    let (number, pid) = running(&daemon);
    let wide = daemon.submit(&Submission { cpus: 2, ..sh("true", 20.0) });
    let looks = || [number, wide].map(|number| look(&daemon, number));
    let before = (looks(), names(&daemon), processes::allowed(pid));
    let promise = format!("the promise to job {wide} would break");
    let need = format!("job {wide} needs more than queue batch would have");
    for (text, reason) in [
        (configuration(1, &[("batch", 1)]), "job 1 runs on processors that are gone"),
        (configuration(2, &[("batch", 1), ("more", 1)]), need.as_str()),
        (configuration(2, &[("other", 2)]), "which is gone"),
        (configuration(2, &[("batch", 2)]).replace("miser", "fcfs"), promise.as_str()),
    ] {
        let said = read_again(&daemon, &text);
        assert!(said.contains("stays as it was") && said.contains(reason), "{said}");
        assert_eq!((looks(), names(&daemon), processes::allowed(pid)), before);
    }
    daemon.client().cancel(wide, false).expect("it can be cancelled");
    check_ends(&daemon, number);
}

#[test]
fn a_broken_file_changes_nothing_and_is_told_by_line_and_field() {
    let daemon = Daemon::new(&configuration(1, &[("batch", 1)]));
    let (number, _) = running(&daemon);
    let before = (look(&daemon, number), names(&daemon));
    for (text, told) in [
        (
            configuration(1, &[("batch", 1)]).replace("cleanup-time = 1", "cleanup-time = \"soon\""),
            ["toml:1:", "cleanup-time"],
        ),
        (
            configuration(1, &[("batch", 1)]).replace("opportunistic", "oportunistic"),
            ["toml:2:", "oportunistic"],
        ),
        (configuration(1, &[("batch", 1)]).replace("miser", "misery"), ["toml:10:", "policy"]),
    ] {
        let said = read_again(&daemon, &text);
        assert!(said.contains("stays as it was") && told.iter().all(|part| said.contains(part)), "{said}");
        assert_eq!((look(&daemon, number), names(&daemon)), before);
    }
    // And it goes on from what it was.
    check_ends(&daemon, number);
}
