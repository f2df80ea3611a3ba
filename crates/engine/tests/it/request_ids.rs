//! Submissions that are repeated because their reply was lost.

use miserly_api::model::{Filter, Problem, ProblemCode, Submission};
use miserly_engine::{
    Absence, Attempt, AttemptOutcome, Caller, DaemonInfo, DaemonReply, DaemonRequest, Input,
};

use super::life::{Life, job, seconds};
use super::support::request;

fn named(id: &str) -> Submission {
    Submission { request_id: Some(id.into()), ..job(1, 50) }
}

fn submit(life: &mut Life, second: i64, submission: &Submission) -> Result<Vec<i64>, Problem> {
    match life.ask(second, DaemonRequest::Submit(submission.clone()))? {
        DaemonReply::Submitted(submitted) => Ok(submitted.jobs.into_iter().map(|job| job.number).collect()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_repeated_request_submits_nothing() {
    let mut life = Life::new(1, 1);
    assert_eq!(submit(&mut life, 1, &named("a")), Ok(vec![1]));
    assert_eq!(submit(&mut life, 2, &named("a")), Ok(vec![1]));
    assert_eq!(submit(&mut life, 3, &named("b")), Ok(vec![2]));
    assert_eq!(submit(&mut life, 4, &job(1, 50)), Ok(vec![3]));
    // The next daemon knows it, too, also when the job is over.
    life.begin(5, &Absence::default());
    assert_eq!(submit(&mut life, 6, &named("a")), Ok(vec![1]));
    life.end(7, 1);
    assert_eq!(submit(&mut life, 8, &named("a")), Ok(vec![1]));
    life.begin(9, &Absence::default());
    assert_eq!(submit(&mut life, 10, &named("a")), Ok(vec![1]));
    let array = Some(serde_json::from_str(r#"{"first":3,"last":5}"#).unwrap());
    let array = Submission { array, ..named("c") };
    assert_eq!(submit(&mut life, 11, &array), Ok(vec![4, 5, 6]));
    assert_eq!(submit(&mut life, 12, &array), Ok(vec![4, 5, 6]));
}

#[test]
fn an_identifier_is_one_of_a_user_and_of_one_submission() {
    let mut life = Life::new(1, 1);
    submit(&mut life, 1, &named("a")).unwrap();
    let problem = submit(&mut life, 2, &Submission { cpus: 1, time: 70.0, ..named("a") }).unwrap_err();
    assert_eq!((problem.code, problem.job), (ProblemCode::Conflict, Some(1)));
    life.info = DaemonInfo { owner: 7, ..DaemonInfo::default() };
    life.begin(3, &Absence::default());
    let other = life.ask_as(Caller::new(7), 4, DaemonRequest::Submit(named("a"))).unwrap();
    assert!(matches!(other, DaemonReply::Submitted(jobs) if jobs.jobs[0].number == 2));
}

/// What was not stored was not submitted.
#[test]
fn a_request_that_found_no_room_is_not_remembered() {
    let mut life = Life::new(1, 1);
    life.journal.set_full(true);
    assert_eq!(submit(&mut life, 1, &named("a")).unwrap_err().code, ProblemCode::Storage);
    life.journal.set_full(false);
    assert_eq!(submit(&mut life, 8, &named("a")), Ok(vec![1]));
    assert_eq!(submit(&mut life, 9, &named("a")), Ok(vec![1]));
}

#[test]
fn reads_are_answered_when_there_is_no_room() {
    let mut life = Life::new(1, 1);
    submit(&mut life, 1, &named("a")).unwrap();
    life.journal.set_full(true);
    let outcome = AttemptOutcome::Ended { at: seconds(2), exit: miserly_api::model::Exit::Code(0), by: None };
    let (list, listed) = request(DaemonRequest::Jobs(Filter::default()));
    let (drain, drained) = request(DaemonRequest::Drain(true));
    life.turn(2, vec![Input::AttemptEnded(Attempt { job: 1, nth: 1 }, outcome), list, drain]);
    assert_eq!(drained.try_recv().unwrap().unwrap_err().code, ProblemCode::Storage);
    // The end of the job is not stored yet.
    assert!(matches!(listed.try_recv().unwrap(), Ok(DaemonReply::Jobs(jobs)) if jobs.len() == 1));
}

/// A batch lists so many jobs; the other reads are answered in the next ones.
#[test]
fn the_lists_of_one_batch_are_bounded() {
    let mut life = Life::of_policy("easy", 1, 1);
    let array = Some(serde_json::from_str(r#"{"first":1,"last":600}"#).unwrap());
    submit(&mut life, 1, &Submission { array, ..job(1, 5) }).unwrap();
    let (inputs, replies): (Vec<_>, Vec<_>) =
        (0..4).map(|_| request(DaemonRequest::Jobs(Filter::default()))).unzip();
    life.turn(2, inputs);
    let answered = |replies: &[std::sync::mpsc::Receiver<_>]| {
        replies.iter().filter(|reply| reply.try_recv().is_ok()).count()
    };
    assert_eq!(answered(&replies), 2);
    assert_eq!(life.next_wakeup(), Some(seconds(0)));
    life.late_turn(Life::now(2), vec![]);
    assert_eq!(answered(&replies), 2);
    assert_ne!(life.next_wakeup(), Some(seconds(0)));
}
