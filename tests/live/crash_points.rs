//! The daemon dies at each step between the record of a decision and its effect, and the next daemon keeps every promise.
//!
//! The steps are the crash points of `miserly_live::crash_point`. A run with more passes of a point than there are proves that
//! the run before was the last one.

use std::thread::sleep;
use std::time::Duration;

use miserly_api::client::ClientError;
use miserly_api::model::{Filter, Submission};
use miserly_live::crash_point::CrashPoint;

use crate::kills::{Accepted, SIGN, check, check_promises};
use crate::support::{Daemon, SOON, now, queue, rounds, sh};

/// Kills the daemon at the first passes of a point, in a run each.
///
/// There is a run for each five of `MISERLY_ROUNDS`, or fewer if the point is passed less often.
#[track_caller]
fn each_pass(point: CrashPoint, policy: &str) {
    let mut crashes = 0;
    for pass in 1..=rounds().div_ceil(5) {
        if !crash_and_go_on(point, pass, policy) {
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 0, "{} is passed under {policy}", point.name());
}

/// Returns whether the daemon died at that pass.
fn crash_and_go_on(point: CrashPoint, pass: u64, policy: &str) -> bool {
    let mut daemon = Daemon::asleep(&queue(policy));
    daemon.start_to_crash(&format!("{}:{pass}", point.name()));
    let mut accepted = Accepted::default();
    let mut crashed = wait_for_answer(&mut daemon);
    for nth in 0..6 {
        change(&daemon, nth, &mut accepted);
        crashed |= restart_if_dead(&mut daemon);
    }
    let began = now();
    while unfinished(&daemon) {
        assert!(began.elapsed() < SOON, "all jobs end: {:#?}", daemon.client().jobs(&Filter::default()));
        sleep(Duration::from_millis(20));
        crashed |= restart_if_dead(&mut daemon);
        daemon.release_held();
    }
    // It may die while it forgets the last attempt.
    sleep(Duration::from_millis(50));
    crashed |= restart_if_dead(&mut daemon);
    check(&daemon, &accepted);
    check_promises(&mut daemon);
    crashed
}

/// Waits until the daemon answers. Starts it again if it dies before.
fn wait_for_answer(daemon: &mut Daemon) -> bool {
    loop {
        if daemon.client().status().is_ok() {
            return false;
        }
        if restart_if_dead(daemon) {
            return true;
        }
        sleep(Duration::from_millis(5));
    }
}

fn restart_if_dead(daemon: &mut Daemon) -> bool {
    let dead = daemon.is_dead();
    if dead {
        daemon.start();
    }
    dead
}

/// Submits a job, and changes it in one of several ways. A daemon that dies meanwhile may have accepted it or not.
#[track_caller]
fn change(daemon: &Daemon, nth: u64, accepted: &mut Accepted) {
    // The first ones run when they are changed, and the others wait.
    let rest = if nth < 2 { "; sleep 0.3" } else { "" };
    let job = Submission {
        directory: daemon.path(""),
        // A job that runs again at the request of its user counts as one.
        restartable: nth % 2 == 1,
        no_opportunistic: nth == 3,
        ..sh(&format!("{SIGN}{}{rest}", nth % 3), 4.0)
    };
    let client = daemon.client();
    let number = match client.submit(&job) {
        Ok(submitted) => submitted.jobs[0].number,
        Err(ClientError::Gone { .. } | ClientError::NoDaemon { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    accepted.jobs.push(number);
    match nth {
        0 => drop(client.extend(number, 1.0)),
        1 => drop(client.requeue(number, true)),
        2 | 5 => {
            accepted.cancelled.insert(number);
            let _ = client.cancel(number, false);
        }
        3 => drop(client.hold(number, false).and_then(|_| client.release(number))),
        _ => {}
    }
}

/// Returns whether a job is unfinished, or the daemon does not answer.
fn unfinished(daemon: &Daemon) -> bool {
    daemon.client().jobs(&Filter::default()).map_or(true, |jobs| !jobs.is_empty())
}

macro_rules! crash_tests {
    ($($name:ident: $point:ident,)*) => {
        $(
            #[test]
            fn $name() {
                for policy in ["miser", "conservative"] {
                    each_pass(CrashPoint::$point, policy);
                }
            }
        )*

        #[test]
        fn every_crash_point_has_a_test() {
            assert_eq!([$(CrashPoint::$point),*], CrashPoint::ALL);
        }
    };
}

crash_tests! {
    before_a_commit: BeforeCommit,
    after_a_commit: AfterCommit,
    before_a_launch: BeforeLaunch,
    after_a_launch: AfterLaunch,
    before_a_command: BeforeCommand,
    after_a_command: AfterCommand,
    before_a_report: BeforeReport,
    before_files_are_removed: BeforeForget,
    before_a_reply: BeforeReply,
}
