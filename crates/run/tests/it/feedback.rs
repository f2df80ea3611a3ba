//! Runs in which jobs are submitted after the ends of others.

use miserly_run::{RunOptions, RunSetup, SetupError};
use miserly_workload::{Feedback, NoFeedback, Trace};

/// Returns the mean wait and the makespan in seconds of two jobs on the whole machine.
///
/// Job 1 runs from 0 to 100. Job 2 has these fields 17 and 18. By the log it is submitted at 110, 10 s after the recorded
/// end of job 1, and runs for 50 s.
fn run(preceding: &str, feedback: Option<Feedback>) -> Result<(Option<f64>, Option<f64>), SetupError> {
    let log = format!(
        "; MaxProcs: 4\n1 0 0 100 4 -1 -1 4 100 -1 1 1 -1 -1 -1 -1 -1 -1\n2 110 0 50 4 -1 -1 4 50 -1 1 1 -1 -1 -1 -1 {preceding}\n"
    );
    let options = RunOptions { feedback, ..RunOptions::default() };
    let setup = RunSetup::new(Trace::memory("log", log.into()), options)?;
    let outcome = setup.outcome(&"easy".parse().expect("a policy"), false, &mut [])?;
    Ok((outcome.metrics.wait.mean, outcome.makespan))
}

#[test]
fn submissions_follow_the_simulated_ends() {
    assert_eq!(run("1 300", None).unwrap(), (Some(0.0), Some(160.0)));
    assert_eq!(run("1 300", Some(Feedback::Fields)).unwrap(), (Some(0.0), Some(450.0)));
    assert_eq!(run("-1 -1", Some(Feedback::Sessions)).unwrap(), (Some(0.0), Some(160.0)));
}

#[test]
fn a_log_without_feedback_is_refused() {
    let refused = run("-1 -1", Some(Feedback::Fields)).unwrap_err();
    assert!(matches!(refused, SetupError::NoFeedback { why: NoFeedback::Fields, .. }), "{refused}");
}
