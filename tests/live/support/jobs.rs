//! Jobs to submit.

use miserly_api::model::{JobView, Phase, PromiseChangeReason, Submission};

/// Returns a shell script with this time limit on one processor.
pub(crate) fn sh(script: &str, time: f64) -> Submission {
    Submission {
        command: ["/bin/sh", "-c", script].map(String::from).to_vec(),
        directory: "/".into(),
        environment: [("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())].into(),
        output: Some("/dev/null".into()),
        cpus: 1,
        time,
        ..Submission::default()
    }
}

/// The longest delay of a stalled daemon, in seconds.
const STALL: f64 = 5.0;

/// Checks that the promise to a job is kept, or late only by its launch or because the daemon stalled.
#[track_caller]
pub(crate) fn kept_but_for_stalls(job: &JobView) {
    if let Some(risk) = job.promise.as_ref().and_then(|promise| promise.at_risk) {
        assert_eq!(risk.why, PromiseChangeReason::Away, "{job:?}");
    }
    if let Some(late) = job.late {
        let is_delay = matches!(late.why, PromiseChangeReason::Away | PromiseChangeReason::Launch);
        assert!(is_delay && late.by < STALL, "{job:?}");
    }
}

/// Returns whether a job has ended.
pub(crate) fn is_over(phase: &Phase) -> bool {
    matches!(phase, Phase::Done { .. } | Phase::Killed { .. } | Phase::Failed { .. } | Phase::Lost { .. })
}
