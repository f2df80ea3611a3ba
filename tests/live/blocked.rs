//! What a user makes block or fail before the command runs moves no window, neither the user's own nor another's.

use std::fs;

use miserly_api::model::{Failure, Phase, Submission};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{Daemon, kept_but_for_stalls, sh};

/// A delay that no blocked job explains: the windows of the blocked jobs are at least as long.
const STALL: f64 = 3.0;

fn configuration() -> String {
    "cleanup-time = 1\n[pool]\ncpus = 1\n[[queue]]\nname = \"batch\"\npolicy = \"miser\"\n".to_owned()
}

fn job(daemon: &Daemon, script: &str, time: f64) -> Submission {
    Submission { directory: daemon.path(""), no_opportunistic: true, ..sh(script, time) }
}

/// Returns why a job failed that had one attempt only.
#[track_caller]
fn failure(daemon: &Daemon, number: i64) -> String {
    let ended = daemon.wait(number);
    let Phase::Failed { why: Failure::Output, message, .. } = &ended.phase else { panic!("{ended:?}") };
    assert_eq!(ended.attempts, 1, "{ended:?}");
    message.clone()
}

/// Checks that a job began as promised, but for a stall of the machine.
#[track_caller]
fn is_on_time(daemon: &Daemon, number: i64) {
    let ended = daemon.wait(number);
    assert!(matches!(ended.phase, Phase::Done { .. }), "{ended:?}");
    kept_but_for_stalls(&ended);
    assert!(ended.late.is_none_or(|late| late.by < STALL), "{ended:?}");
}

#[test]
fn a_fifo_as_output_fails_its_job_and_delays_no_other() {
    let daemon = Daemon::new(&configuration());
    mknodat(CWD, daemon.path("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
    let blocked = Submission { output: Some("fifo".into()), ..job(&daemon, "sleep 20", 30.0) };
    let [blocked, victim] = [blocked, job(&daemon, "true", 5.0)].map(|job| daemon.submit(&job));
    assert!(failure(&daemon, blocked).contains("it is a FIFO that no process reads"));
    is_on_time(&daemon, victim);
}

/// The user decides how long the output cannot be opened. It gets no other window for that.
#[test]
fn an_output_that_stays_unavailable_ends_with_the_window_of_its_job() {
    let daemon = Daemon::new(&configuration());
    let shortage = daemon.state().join("attempts/shortage");
    fs::write(&shortage, "open-outputs 11 1000000").expect("a file");
    let output = Some("out".into());
    let blocked = Submission { output, ..job(&daemon, "true", 4.0) };
    let [blocked, victim] = [blocked, job(&daemon, "true", 5.0)].map(|job| daemon.submit(&job));
    let message = failure(&daemon, blocked);
    fs::remove_file(&shortage).expect("a file");
    assert!(message.contains("out for output: Resource temporarily unavailable"), "{message}");
    is_on_time(&daemon, victim);
    let status = daemon.client().status().expect("a status");
    assert_eq!(status.broken, 0, "{status:?}");
}
