//! Requests that are rejected.

use miserly_api::model::{
    Filter, JobChange, Modification, Possible, ProblemCode, Reservation, ReservedTime, Submission,
};
use miserly_engine::{DaemonReply, DaemonRequest};

use super::life::{Life, job, wall};

#[test]
fn a_submission_that_the_launcher_rejects_is_not_accepted() {
    let mut life = Life::new(1, 1);
    let problem =
        life.ask(1, DaemonRequest::Submit(Submission { command: vec![], ..job(1, 10) })).unwrap_err();
    assert_eq!((problem.code, problem.field.as_deref()), (ProblemCode::Malformed, Some("command")));
    assert!(
        matches!(life.ask(2, DaemonRequest::Jobs(Filter::default())), Ok(DaemonReply::Jobs(jobs)) if jobs.is_empty())
    );
}

#[test]
fn a_submission_that_is_too_short_or_too_large_is_refused() {
    let mut life = Life::new(1, 1);
    let mut check = |submission: Submission, field: &str, says: &str| {
        let problem = life.ask(1, DaemonRequest::Submit(submission)).unwrap_err();
        assert_eq!((problem.code, problem.field.as_deref()), (ProblemCode::Malformed, Some(field)));
        assert!(problem.message.contains(says), "{problem:?}");
    };
    check(Submission { time: 1e-12, ..job(1, 1) }, "time", "at least a microsecond");
    let array = |step: u32| Some(miserly_api::model::Array::range(0, 3, step));
    check(Submission { array: array(0), ..job(1, 1) }, "array", "at least 1");
    check(Submission { directory: "/x".repeat(2048).into(), ..job(1, 1) }, "directory", "the limit is 4095");
    check(Submission { script: Some("#!/bin/sh\r\ntrue\r\n".into()), ..job(1, 1) }, "script", "CR LF");
}

/// For the kernel 0 would be no limit.
#[test]
fn no_amount_of_memory_is_below_a_page() {
    let mut life = Life::new(4, 1);
    let number = life.submit(1, Submission { hold: true, ..job(1, 10) });
    for bytes in [0, 1, 4095] {
        let submission = || Submission { memory: Some(bytes), ..job(1, 10) };
        let reserve = Reservation {
            name: "course".into(),
            cpus: 1,
            memory: Some(bytes),
            users: vec!["ann".into()],
            times: vec![ReservedTime { from: wall(50), to: wall(60) }],
            ..Reservation::default()
        };
        let changes = Box::new(Modification { memory: Some(bytes), ..Modification::default() });
        let requests = [
            DaemonRequest::Submit(submission()),
            DaemonRequest::Quote(submission()),
            DaemonRequest::Modify { job: number, changes: changes.clone(), move_promises: false },
            DaemonRequest::Preview { job: number, change: Box::new(JobChange::Modify(changes)) },
            DaemonRequest::Reserve(Box::new(reserve)),
        ];
        for request in requests {
            let problem = life.ask(2, request.clone()).unwrap_err();
            assert_eq!(problem.field.as_deref(), Some("memory"), "{request:?}: {problem:?}");
        }
    }
    life.submit(3, Submission { memory: Some(4096), ..job(1, 10) });
}

/// The default horizon of `miser` is 30 days.
#[test]
fn a_window_is_not_made_longer_than_the_horizon_lets_it() {
    let mut life = Life::new(2, 2);
    let day = 86_400.0;
    let number = life.submit(1, job(1, 20));
    let waits = life.submit(1, job(2, 20));
    for (job, by) in [(number, 30.0 * day), (waits, 30.0 * day), (number, 9.2e12)] {
        let problem = life.ask(2, DaemonRequest::Extend { job, by }).unwrap_err();
        assert_eq!(problem.code, ProblemCode::Refused);
        assert!(problem.message.contains("horizon") || problem.message.contains("at most"), "{problem:?}");
        let Some(Possible::Extension(secs)) = problem.possible else { panic!("{problem:?}") };
        // Behind the first job is the window of the second one.
        assert_eq!(secs > 29 * 86_400, job == waits, "{problem:?}");
    }
    life.ask(2, DaemonRequest::Extend { job: waits, by: 29.0 * day }).unwrap();
}

/// What a refusal offers is accepted, and a little more is not.
#[test]
fn a_refused_extension_tells_which_one_is_possible() {
    let mut life = Life::new(1, 1);
    let number = life.submit(1, job(1, 20));
    life.submit(1, Submission { deadline: Some(wall(61)), ..job(1, 20) });
    let problem = life.ask(2, DaemonRequest::Extend { job: number, by: 100.0 }).unwrap_err();
    let Some(Possible::Extension(secs)) = problem.possible else { panic!("{problem:?}") };
    assert!(secs < 100, "{problem:?}");
    let by = |secs: u64| DaemonRequest::Extend { job: number, by: secs as f64 };
    life.ask(3, by(secs + 1)).unwrap_err();
    if secs > 0 {
        life.ask(3, by(secs)).unwrap();
    }
}

#[test]
fn no_extension_goes_beyond_the_deadline() {
    let mut life = Life::new(1, 1);
    let number = life.submit(1, Submission { deadline: Some(wall(61)), ..job(1, 20) });
    let by = |secs: f64| DaemonRequest::Extend { job: number, by: secs };
    let problem = life.ask(2, by(60.0)).unwrap_err();
    assert!(problem.message.contains("deadline"), "{problem:?}");
    let Some(Possible::Extension(secs)) = problem.possible else { panic!("{problem:?}") };
    assert!((30..=40).contains(&secs), "{problem:?}");
    life.ask(3, by(secs as f64)).unwrap();
    life.ask(3, by(10.0)).unwrap_err();
}

#[test]
fn a_refused_deadline_tells_the_earliest_window() {
    let mut life = Life::new(1, 1);
    life.submit(1, job(1, 20));
    let late = Submission { deadline: Some(wall(30)), ..job(1, 20) };
    let array = serde_json::from_str(r#"{"first":0,"last":1}"#).unwrap();
    for (submission, jobs) in [(late.clone(), 1), (Submission { array: Some(array), ..late }, 2)] {
        let problem = life.ask(2, DaemonRequest::Submit(submission.clone())).unwrap_err();
        let Some(Possible::Window(window)) = problem.possible else { panic!("{problem:?}") };
        assert_eq!(Life::second(window.end), 21 * (jobs + 1), "{problem:?}");
    }
}

/// In a queue without a horizon, too, no job runs until the end of time.
#[test]
fn a_job_is_not_made_longer_than_any_may_be() {
    let mut life = Life::of_policy("easy", 1, 1);
    let number = life.submit(1, job(1, 20));
    let problem = life.ask(2, DaemonRequest::Extend { job: number, by: 9.2e12 }).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Refused);
}

#[test]
fn a_job_that_is_no_array_is_not_cancelled_as_one() {
    let mut life = Life::new(2, 2);
    let number = life.submit(1, job(1, 20));
    let problem = life.ask(2, DaemonRequest::Cancel { job: number, array: true }).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Conflict);
    let array = Some(serde_json::from_str(r#"{"first":0,"last":1}"#).unwrap());
    let first = life.submit(3, Submission { array, ..job(1, 10) });
    let problem = life.ask(4, DaemonRequest::Cancel { job: first + 1, array: true }).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Conflict);
    life.ask(4, DaemonRequest::Cancel { job: first, array: true }).unwrap();
}

/// An existing queue or array without jobs is an empty list.
#[test]
fn a_list_of_a_queue_or_an_array_that_is_not_there_is_an_error() {
    let mut life = Life::new(1, 1);
    let number = life.submit(1, job(1, 20));
    life.end(5, number);
    let mut asked = |filter| match life.ask(6, DaemonRequest::Jobs(filter)) {
        Ok(DaemonReply::Jobs(jobs)) => Ok(jobs.len()),
        Ok(other) => panic!("{other:?}"),
        Err(problem) => Err(problem.code),
    };
    let of_queue = |name: &str| Filter { queue: Some(name.into()), ..Filter::default() };
    let of_array = |array| Filter { array: Some(array), ..Filter::default() };
    assert_eq!(asked(of_queue("batch")), Ok(0));
    assert_eq!(asked(of_queue("bach")), Err(ProblemCode::NotFound));
    assert_eq!(asked(of_array(number)), Ok(0));
    assert_eq!(asked(of_array(number + 1)), Err(ProblemCode::NotFound));
}
