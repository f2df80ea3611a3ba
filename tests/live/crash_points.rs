//! The daemon dies at each step between the record of a decision and its effect, and the next daemon keeps every promise.
//!
//! The steps are the crash points of `miserly_live::crash_point`. One seed of `miserly-world` kills the daemon at more of them, under
//! all policies and without processes.

use miserly_api::client::ClientError;
use miserly_api::model::Submission;
use miserly_live::crash_point::CrashPoint;

use crate::kills::{Accepted, SIGN, check, check_promises};
use crate::support::{Daemon, SOON, queue, rounds, sh, until};

/// One state has all of the crashes. There is a further pass of each point for each five of `MISERLY_ROUNDS`.
#[test]
fn a_daemon_dies_at_each_crash_point_and_nothing_is_lost_or_run_twice() {
    let mut daemon = Daemon::asleep(&queue("miser"));
    let mut accepted = Accepted::default();
    for pass in 1..=rounds().div_ceil(5) {
        for point in CrashPoint::ALL {
            crash(&mut daemon, point, pass, &mut accepted);
        }
    }
    daemon.start();
    accepted.cancelled.extend(daemon.release_held());
    daemon.wait_for_all();
    check(&daemon, &accepted);
    check_promises(&mut daemon);
}

/// Starts a daemon, and submits and changes jobs until it dies at this pass of the point.
#[track_caller]
fn crash(daemon: &mut Daemon, point: CrashPoint, pass: u64, accepted: &mut Accepted) {
    daemon.start_to_crash(&format!("{}:{pass}", point.name()));
    let mut nth = 0;
    until(&format!("it dies at {}", point.name()), SOON, || {
        if daemon.client().status().is_ok() {
            change(daemon, nth % 6, accepted);
            nth += 1;
        }
        daemon.is_dead().then_some(())
    });
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
