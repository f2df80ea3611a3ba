//! Jobs to submit.

use miserly_api::model::{Phase, Submission};

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

/// Returns whether a job has ended.
pub(crate) fn is_over(phase: &Phase) -> bool {
    matches!(phase, Phase::Done { .. } | Phase::Killed { .. } | Phase::Failed { .. } | Phase::Lost { .. })
}
