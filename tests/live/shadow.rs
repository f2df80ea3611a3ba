//! Shadows: another policy follows the queues, over kills of the daemon, and starts nothing.

use std::fs;

use miserly_api::model::{Phase, ShadowFilter, ShadowReport, ShadowView, Submission};
use rustix::process::{Signal, kill_process};

use crate::support::{Daemon, SOON, cpus, has_two_cpus, miserly, queue, sh, until};

fn configuration(policy: &str, shadow: &str) -> String {
    format!("{}shadow = '{shadow}'\n", queue(policy))
}

fn job(daemon: &Daemon, cpus: u64, time: f64, script: &str) -> i64 {
    daemon.submit(&Submission { cpus, directory: daemon.path(""), ..sh(script, time) })
}

fn report(daemon: &Daemon) -> ShadowReport {
    daemon.client().shadow(&ShadowFilter::default()).expect("a report")
}

/// Waits until the report of the only shadow is as wanted.
#[track_caller]
fn shadow(daemon: &Daemon, wanted: impl Fn(&ShadowView) -> bool) -> ShadowView {
    until("a report", SOON, || report(daemon).shadows.pop().filter(&wanted))
}

#[test]
fn a_shadow_goes_on_after_a_kill_and_agrees_with_the_journal() {
    if !has_two_cpus() {
        return;
    }
    let mut daemon = Daemon::with_faults(&configuration("fcfs", "easy"));
    assert!(shadow(&daemon, |_| true).all.jobs == 0);
    let begins = || shadow(&daemon, |shadow| shadow.until.is_some());
    begins();
    let all = cpus().len() as u64;
    let long = job(&daemon, 1, 600.0, "while [ ! -e go ]; do sleep 0.05; done");
    let wide = job(&daemon, all, 600.0, "exit 0");
    let narrow = job(&daemon, 1, 30.0, "exit 0");
    // It runs in the shadow, which waits for its runtime.
    let stands = |shadow: &ShadowView| shadow.waits_for == Some(narrow) && shadow.all.jobs == 1;
    let withdrawn = job(&daemon, 1, 30.0, "exit 0");
    daemon.client().cancel(withdrawn, false).expect("a cancellation");
    shadow(&daemon, stands);
    assert!(matches!(daemon.job(narrow).phase, Phase::Queued));
    daemon.kill();
    daemon.start();
    shadow(&daemon, stands);
    // Differences from a second on count.
    daemon.set_ahead(2.0);
    fs::write(daemon.path("go"), "").expect("a file");
    for number in [long, wide, narrow] {
        daemon.wait(number);
    }
    let one_more = job(&daemon, 1, 30.0, "exit 0");
    daemon.wait(one_more);
    let view = shadow(&daemon, |shadow| shadow.all.jobs == 4);
    assert_eq!((view.policy.as_str(), view.real_policy.as_deref()), ("easy", Some("fcfs")));
    assert_eq!((view.all.earlier, view.all.later), (1, 0), "{view:?}");
    assert_eq!((view.all.refused, view.all.waits_on_machine), (0, 0), "{view:?}");
    assert!(view.all.mean_wait > view.all.shadow_mean_wait, "{view:?}");
    // The journal, all at once, says the same.
    let state = daemon.state();
    let state = state.to_str().expect("a path");
    let command =
        |policy: &str| miserly(&["shadow", "report", "--policy", policy, "--state", state, "--json"]);
    let offline = command("easy").stdout;
    let offline: ShadowReport = serde_json::from_slice(&offline).expect("a report");
    assert_eq!(offline.shadows[0].all, view.all);
    assert_eq!(offline.shadows[0].sizes, view.sizes);
    // In its own shadow, a policy changes nothing.
    let same: ShadowReport = serde_json::from_slice(&command("fcfs").stdout).expect("a report");
    assert_eq!((same.shadows[0].all.earlier, same.shadows[0].all.later), (0, 0), "{same:?}");
    assert_eq!(same.shadows[0].all.jobs, 4);
    let refused = command("gang");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("it slices time"), "{refused:?}");
    // Another policy begins anew.
    daemon.configure(&configuration("fcfs", "conservative"));
    kill_process(daemon.pid().expect("a daemon"), Signal::HUP).expect("a signal");
    let view = shadow(&daemon, |shadow| shadow.policy == "conservative");
    assert!(view.all.jobs < 4, "{view:?}");
    assert_eq!(view.problem, None);
}

#[test]
fn without_its_database_the_daemon_works() {
    let mut daemon = Daemon::asleep(&configuration("fcfs", "easy"));
    fs::create_dir_all(daemon.state()).expect("a folder");
    fs::write(daemon.state().join("shadow.db"), "no database, but some text that is longer than its head")
        .expect("a file");
    daemon.start();
    let number = job(&daemon, 1, 30.0, "exit 0");
    assert!(matches!(daemon.wait(number).phase, Phase::Done { .. }));
    let error = daemon.client().shadow(&ShadowFilter::default()).expect_err("a problem").to_string();
    assert!(error.contains("shadow.db"), "{error}");
    until("the log", SOON, || daemon.log().contains("there are no shadows").then_some(()));
}
