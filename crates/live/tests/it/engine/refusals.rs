//! What is asked and makes no sense.

use miserly_live::model::{ProblemCode, Submission};
use miserly_live::service::Question;

use super::life::{Life, job};

/// A submission that the launcher would not run is refused for this field.
#[track_caller]
fn refused(submission: Submission, field: &str) {
    let mut life = Life::new(1, 1);
    let problem = life.ask(1, Question::Submit(submission)).unwrap_err();
    assert_eq!(
        (problem.code, problem.field.as_deref()),
        (ProblemCode::Malformed, Some(field)),
        "{problem:?}"
    );
}

fn of_environment(name: &str, value: &str) -> Submission {
    Submission { environment: [(name.into(), value.into())].into(), ..job(1, 10) }
}

#[test]
fn what_could_not_be_launched_is_not_accepted() {
    refused(Submission { command: vec![], ..job(1, 10) }, "command");
    refused(Submission { command: vec!["a\0".into()], ..job(1, 10) }, "command");
    refused(Submission { directory: "here".into(), ..job(1, 10) }, "directory");
    refused(Submission { directory: "/a\0".into(), ..job(1, 10) }, "directory");
    refused(Submission { umask: 0o1777, ..job(1, 10) }, "umask");
    refused(of_environment("", "x"), "environment");
    refused(of_environment("a=b", "x"), "environment");
    refused(of_environment("a", "x\0"), "environment");
    refused(Submission { name: Some("a\0".into()), ..job(1, 10) }, "environment");
    refused(Submission { output: Some("a\0".into()), ..job(1, 10) }, "output");
    refused(Submission { error: Some("a\0".into()), ..job(1, 10) }, "output");
}

/// The horizon of `miser` is 30 days unless the queue says otherwise.
#[test]
fn a_window_is_not_made_longer_than_the_horizon_lets_it() {
    let mut life = Life::new(2, 2);
    let day = 86_400.0;
    let number = life.submit(1, job(1, 20));
    let waits = life.submit(1, job(2, 20));
    for (job, by) in [(number, 30.0 * day), (waits, 30.0 * day), (number, 9.2e12)] {
        let problem = life.ask(2, Question::Extend { job, by }).unwrap_err();
        assert_eq!(problem.code, ProblemCode::Refused);
        assert!(problem.message.contains("horizon") || problem.message.contains("at most"), "{problem:?}");
    }
    life.ask(2, Question::Extend { job: waits, by: 29.0 * day }).unwrap();
}

/// In a queue without a horizon, too, no job runs until the end of time.
#[test]
fn a_job_is_not_made_longer_than_any_may_be() {
    let mut life = Life::of_policy("easy", 1, 1);
    let number = life.submit(1, job(1, 20));
    let problem = life.ask(2, Question::Extend { job: number, by: 9.2e12 }).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Refused);
}
