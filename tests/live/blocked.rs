//! What a user makes block or fail before the command runs moves no window, neither the user's own nor another's.

use std::fs;

use miserly_api::model::{Failure, Phase, Submission};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{Daemon, kept_but_for_stalls, sh};

fn job(daemon: &Daemon, script: &str, time: f64) -> Submission {
    Submission { directory: daemon.path(""), no_opportunistic: true, ..sh(script, time) }
}

/// Returns why a job failed that had one attempt only.
#[track_caller]
fn failure(daemon: &Daemon, number: i64) -> String {
    let ended = daemon.wait(number);
    let Phase::Failed { why: Failure::Output, message, .. } = &ended.phase else { panic!("{ended:?}") };
    assert_eq!(ended.runs, 1, "{ended:?}");
    message.clone()
}

/// The user decides how long an output cannot be opened, and gets no other window for that. The processor is then another job's.
#[test]
fn an_output_that_cannot_be_opened_fails_its_job_in_its_window() {
    let pool = "cleanup-time = 1\n[pool]\ncpus = 1\n[[queue]]\nname = \"batch\"\npolicy = \"miser\"\n";
    let daemon = Daemon::new(pool);
    mknodat(CWD, daemon.path("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
    let at_once = daemon.submit(&Submission { output: Some("fifo".into()), ..job(&daemon, "true", 600.0) });
    assert!(failure(&daemon, at_once).contains("it is a FIFO that no process reads"));
    let shortage = daemon.state().join("attempts/shortage");
    fs::write(&shortage, "open-outputs 11 1000000").expect("a file");
    let at_the_end = Submission { output: Some("out".into()), ..job(&daemon, "true", 1.0) };
    let [at_the_end, next] = [at_the_end, job(&daemon, "true", 600.0)].map(|job| daemon.submit(&job));
    let message = failure(&daemon, at_the_end);
    fs::remove_file(&shortage).expect("a file");
    assert!(message.contains("out for output: Resource temporarily unavailable"), "{message}");
    let ended = daemon.wait(next);
    assert!(matches!(ended.phase, Phase::Done { .. }), "{ended:?}");
    kept_but_for_stalls(&ended);
    let status = daemon.client().status().expect("a status");
    assert_eq!(status.broken, 0, "{status:?}");
}
