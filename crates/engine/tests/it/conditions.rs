//! Jobs that wait for the success or the failure of others.

use miserly_api::model::{
    Array, Condition, Exit, Failure, KilledBy, Phase, ProblemCode, Submission, WaitReason, When,
};
use miserly_engine::{
    Absence, Account, Action, Attempt, AttemptOutcome, Caller, Credential, DaemonReply, DaemonRequest, Input,
    Journal,
};

use super::life::{Life, job, seconds};
use super::support::damage;

fn on(when: When, job: i64) -> Condition {
    Condition { when, job: Some(job), ..Condition::default() }
}

/// Returns a job of one processor that waits for others.
fn after(conditions: &[Condition]) -> Submission {
    Submission { conditions: conditions.to_vec(), ..job(1, 10) }
}

fn array(last: u32) -> Array {
    Array::range(0, last, 1)
}

fn launched(life: &Life, job: i64) -> bool {
    life.actions(job).iter().any(|action| matches!(action, Action::Launch(_)))
}

fn exits(life: &mut Life, second: i64, job: i64, code: i32) {
    let outcome = AttemptOutcome::Ended { at: seconds(second), exit: Exit::Code(code), by: None };
    life.turn(second, vec![Input::AttemptEnded(Attempt { job, nth: 1 }, outcome)]);
}

/// Checks that a job ended as failed because of its conditions, for this reason.
#[track_caller]
fn check_failed(life: &mut Life, second: i64, job: i64, reason: &str) {
    match life.job(second, job).phase {
        Phase::Failed { why: Failure::Dependency, message, .. } => assert_eq!(message, reason),
        other => panic!("{other:?}"),
    }
    assert!(!launched(life, job));
}

#[test]
fn a_job_waits_for_success() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, job(1, 20));
    let second = life.submit(1, after(&[on(When::Ok, first)]));
    let view = life.job(1, second);
    assert_eq!((&view.after, &view.after_ok, &view.after_not_ok), (&vec![first], &vec![first], &vec![]));
    assert_eq!(view.reasons, [WaitReason::After { jobs: vec![first] }]);
    // Its promise is the latest end of the first, as with any end.
    assert_eq!(Life::second(view.promise.unwrap().now.unwrap().start), 22);
    exits(&mut life, 5, first, 0);
    assert!(launched(&life, second));
    let view = life.job(5, second);
    assert_eq!((view.after, view.after_ok), (vec![], vec![]));
}

#[test]
fn a_failure_ends_all_that_wait_for_success_in_turn() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, job(1, 20));
    let second = life.submit(1, after(&[on(When::Ok, first)]));
    let third = life.submit(1, after(&[on(When::Ok, second)]));
    let held = life.submit(1, Submission { hold: true, ..after(&[on(When::Ok, second)]) });
    let clean = life.submit(1, after(&[on(When::NotOk, second)]));
    let last = life.submit(1, Submission { after: vec![third], ..job(1, 10) });
    let promises = life.status(1).promises;
    exits(&mut life, 5, first, 3);
    check_failed(&mut life, 5, second, "job 1 ended with exit code 3, and this job waits for its success");
    for job in [third, held] {
        check_failed(&mut life, 5, job, "job 2 could not run, and this job waits for its success");
    }
    for job in [clean, last] {
        assert!(launched(&life, job), "{job}");
    }
    let status = life.status(6);
    assert_eq!((status.promises, status.late, status.lost, status.withdrawn), (promises, 0, 0, 2));
}

#[test]
fn a_success_ends_what_waits_for_failure() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, job(1, 20));
    let clean = life.submit(1, after(&[on(When::NotOk, first)]));
    exits(&mut life, 5, first, 0);
    check_failed(&mut life, 5, clean, "job 1 succeeded, and this job waits for its failure");
}

#[test]
fn other_ends_are_failures() {
    let signal = Exit::Signal(15);
    for (by, expect) in [
        (Some(KilledBy::Time), "reached its time limit"),
        (Some(KilledBy::Memory), "needed more memory than it had requested"),
        (None, "was ended by signal 15"),
    ] {
        let mut life = Life::new(2, 2);
        let first = life.submit(1, job(1, 20));
        let second = life.submit(1, after(&[on(When::Ok, first)]));
        let clean = life.submit(1, after(&[on(When::NotOk, first)]));
        let outcome = AttemptOutcome::Ended { at: seconds(5), exit: signal, by };
        life.turn(5, vec![Input::AttemptEnded(Attempt { job: first, nth: 1 }, outcome)]);
        check_failed(&mut life, 5, second, &format!("job 1 {expect}, and this job waits for its success"));
        assert!(launched(&life, clean));
    }
}

#[test]
fn a_cancelled_job_failed() {
    let mut life = Life::new(1, 1);
    life.submit(1, job(1, 50));
    let first = life.submit(1, job(1, 20));
    let second = life.submit(1, after(&[on(When::Ok, first)]));
    life.ask(2, DaemonRequest::Cancel { job: first, array: false }).unwrap();
    check_failed(&mut life, 2, second, "job 2 was cancelled, and this job waits for its success");
}

#[test]
fn a_held_job_waits_on_after_its_release() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, job(1, 20));
    let [second, third] = [1, 1].map(|at| life.submit(at, after(&[on(When::Ok, first)])));
    for job in [second, third] {
        life.ask(2, DaemonRequest::Hold { job, move_promises: true }).unwrap();
    }
    life.ask(3, DaemonRequest::Release(second)).unwrap();
    assert_eq!(life.job(3, second).after_ok, [first]);
    exits(&mut life, 5, first, 1);
    for job in [second, third] {
        check_failed(&mut life, 5, job, "job 1 ended with exit code 1, and this job waits for its success");
    }
}

#[test]
fn the_end_may_have_been_before_the_submission() {
    let mut life = Life::new(2, 2);
    let [good, bad] = [1, 1].map(|at| life.submit(at, job(1, 20)));
    exits(&mut life, 5, good, 0);
    exits(&mut life, 6, bad, 1);
    let second = life.submit(7, after(&[on(When::Ok, good), on(When::NotOk, bad)]));
    assert!(launched(&life, second));
    let never = life.submit(8, after(&[on(When::Ok, bad)]));
    check_failed(&mut life, 8, never, "job 2 ended with exit code 1, and this job waits for its success");
    let never = life.submit(9, after(&[on(When::NotOk, good)]));
    check_failed(&mut life, 9, never, "job 1 succeeded, and this job waits for its failure");
}

#[test]
fn the_number_of_an_array_means_all_its_jobs() {
    let mut life = Life::new(4, 4);
    let first = life.submit(1, Submission { array: Some(array(2)), ..job(1, 20) });
    let all = life.submit(1, after(&[on(When::Ok, first)]));
    let any = life.submit(1, Submission { after: vec![first], ..job(1, 10) });
    let of_index = life.submit(1, after(&[Condition { index: Some(1), ..on(When::Ok, first) }]));
    for job in [all, any] {
        assert_eq!(life.job(1, job).after, [first, first + 1, first + 2]);
    }
    assert_eq!(life.job(1, of_index).after, [first + 1]);
    exits(&mut life, 4, first, 0);
    exits(&mut life, 5, first + 1, 1);
    check_failed(&mut life, 5, all, "job 2 ended with exit code 1, and this job waits for its success");
    check_failed(&mut life, 5, of_index, "job 2 ended with exit code 1, and this job waits for its success");
    // Of an array that is partly over, the ended jobs count, too.
    let never = life.submit(6, after(&[on(When::Ok, first)]));
    check_failed(&mut life, 6, never, "job 2 ended with exit code 1, and this job waits for its success");
    exits(&mut life, 7, first + 2, 0);
    assert!(launched(&life, any));
}

#[test]
fn each_job_of_an_array_waits_for_the_one_with_its_index() {
    let mut life = Life::new(4, 4);
    let first = life.submit(1, Submission { array: Some(array(2)), ..job(1, 20) });
    let each = Submission { array: Some(Array::range(1, 2, 1)), ..after(&[on(When::EachOk, first)]) };
    let second = life.submit(1, each.clone());
    assert_eq!(life.job(1, second).after, [first + 1]);
    assert_eq!(life.job(1, second + 1).after, [first + 2]);
    exits(&mut life, 5, first + 2, 0);
    assert!(launched(&life, second + 1) && !launched(&life, second));
    exits(&mut life, 6, first + 1, 9);
    check_failed(&mut life, 6, second, "job 2 ended with exit code 9, and this job waits for its success");
    let refused = |life: &mut Life, submission: Submission, says: &str| {
        let problem = life.ask(7, DaemonRequest::Submit(submission)).unwrap_err();
        assert!(problem.message.contains(says), "{problem:?}");
    };
    refused(&mut life, Submission { array: Some(array(3)), ..each.clone() }, "no job with index 3");
    refused(&mut life, Submission { array: None, ..each.clone() }, "has to be an array");
    let single = life.submit(7, job(1, 5));
    refused(&mut life, Submission { conditions: vec![on(When::EachOk, single)], ..each }, "is no array");
}

#[test]
fn a_name_means_the_newest_job_of_the_user() {
    let mut life = Life::new(4, 4);
    life.info.runs_as_users = true;
    life.begin(0, &Absence::default());
    let named = |name: &str, submission: Submission| Submission { name: Some(name.into()), ..submission };
    let by_name = Condition { when: When::Ok, name: Some("prepare".into()), ..Condition::default() };
    let problem = life.ask(1, DaemonRequest::Submit(after(std::slice::from_ref(&by_name)))).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Malformed);
    assert!(problem.message.contains("\"prepare\""), "{problem:?}");
    life.submit(1, named("prepare", job(1, 20)));
    let newest = life.submit(1, named("prepare", job(1, 20)));
    life.submit(1, named("other", job(1, 20)));
    let account = Account { name: "ada".into(), ..Account::default() };
    let ada = Caller {
        account: Some(account.into()),
        credential: Some(Credential::from("a seal".to_owned())),
        ..Caller::new(1000)
    };
    life.ask_as(ada, 1, DaemonRequest::Submit(named("prepare", job(1, 20)))).unwrap();
    let second = life.submit(2, after(std::slice::from_ref(&by_name)));
    assert_eq!(life.job(2, second).after, [newest]);
    exits(&mut life, 3, newest, 4);
    check_failed(&mut life, 3, second, "job 2 ended with exit code 4, and this job waits for its success");
    // It is the newest one still, although an older one has not ended.
    let never = life.submit(4, after(&[by_name]));
    check_failed(&mut life, 4, never, "job 2 ended with exit code 4, and this job waits for its success");
}

#[test]
fn a_condition_names_one_job() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, job(1, 20));
    let both = Condition { name: Some("true".into()), ..on(When::Ok, first) };
    for condition in [Condition::default(), both, on(When::Ok, 99), on(When::Any, 0)] {
        let problem = life.ask(2, DaemonRequest::Submit(after(&[condition]))).unwrap_err();
        assert_eq!(problem.field.as_deref(), Some("conditions"));
    }
}

/// The end of the first and the submission of the second are in one batch.
#[test]
fn an_end_that_is_not_durable_yet_counts() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, Submission { name: Some("a".into()), ..job(1, 20) });
    let outcome = AttemptOutcome::Ended { at: seconds(5), exit: Exit::Code(2), by: None };
    let by_name = Condition { when: When::Ok, name: Some("a".into()), ..Condition::default() };
    let (input, reply) = super::support::request(DaemonRequest::Submit(after(&[by_name])));
    life.turn(5, vec![Input::AttemptEnded(Attempt { job: first, nth: 1 }, outcome), input]);
    let Ok(DaemonReply::Submitted(submitted)) = reply.try_recv().unwrap() else { panic!("not accepted") };
    let second = submitted.jobs[0].number;
    check_failed(&mut life, 5, second, "job 1 ended with exit code 2, and this job waits for its success");
}

/// The attempt ends while no daemon runs. The next daemon knows what waits for it, and for which end.
#[test]
fn conditions_outlive_the_daemon() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, job(1, 20));
    let second = life.submit(1, after(&[on(When::Ok, first)]));
    let clean = life.submit(1, after(&[on(When::NotOk, first)]));
    let outcome = AttemptOutcome::Ended { at: seconds(5), exit: Exit::Code(2), by: None };
    let ended = vec![(Attempt { job: first, nth: 1 }, outcome)];
    life.begin(9, &Absence { ended, ..Absence::default() });
    check_failed(&mut life, 9, second, "job 1 ended with exit code 2, and this job waits for its success");
    assert!(launched(&life, clean));
}

/// A policy without earliest starts gets the job once its conditions hold.
#[test]
fn a_policy_without_promises_never_sees_a_job_that_cannot_run() {
    let mut life = Life::of_policy("easy", 2, 2);
    let [first, other] = [1, 1].map(|at| life.submit(at, job(1, 20)));
    let second = life.submit(1, after(&[on(When::Ok, first), on(When::Ok, other)]));
    exits(&mut life, 4, first, 0);
    assert_eq!(life.job(4, second).after_ok, [other]);
    exits(&mut life, 5, other, 1);
    check_failed(&mut life, 5, second, "job 2 ended with exit code 1, and this job waits for its success");
    assert!(life.lines().iter().all(|line| !line.contains(&format!("\"number\":{second},"))));
}

/// Too many jobs that wait for too many.
#[test]
fn the_number_of_dependencies_is_limited() {
    let mut life = Life::new(2, 2);
    let many = Some(Array::range(1, 1000, 1));
    let first = life.submit(1, Submission { array: many.clone(), hold: true, ..job(1, 20) });
    let submission = Submission { array: many, ..after(&[on(When::Ok, first)]) };
    let problem = life.ask(2, DaemonRequest::Submit(submission)).unwrap_err();
    assert!(problem.message.contains("let one job wait for these"), "{problem:?}");
    life.submit(3, Submission { array: Some(array(9)), ..after(&[on(When::Ok, first)]) });
}

#[track_caller]
fn refused(life: &mut Life, second: i64, condition: Condition, says: &str) {
    let problem = life.ask(second, DaemonRequest::Submit(after(&[condition]))).unwrap_err();
    assert!(problem.message.contains(says), "{problem:?}");
    assert_eq!(problem.field.as_deref(), Some("conditions"));
}

#[test]
fn an_array_has_the_index_that_a_condition_names() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, Submission { array: Some(Array::range(3, 5, 2)), ..job(1, 20) });
    let single = life.submit(1, job(1, 20));
    let of_index = |index: u32, when: When, job: i64| Condition { index: Some(index), ..on(when, job) };
    for code in [0, 1] {
        refused(&mut life, 2, of_index(4, When::Any, first), "array 1 has no job with index 4");
        refused(&mut life, 2, of_index(4, When::Any, single), "job 3 is no array");
        exits(&mut life, 2, first + i64::from(code), code);
    }
    exits(&mut life, 3, single, 0);
    refused(&mut life, 4, of_index(4, When::Any, first), "array 1 has no job with index 4");
    let second = life.submit(4, after(&[of_index(5, When::Any, first), of_index(3, When::Ok, first)]));
    assert!(launched(&life, second));
    life.end(5, second);
    let never = life.submit(5, after(&[of_index(5, When::Ok, first)]));
    check_failed(&mut life, 5, never, "job 2 ended with exit code 1, and this job waits for its success");
}

#[test]
fn a_result_that_was_pruned_is_unknown() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, Submission { array: Some(array(2)), ..job(1, 20) });
    for job in first..=first + 2 {
        exits(&mut life, 1 + job, job, i32::from(job == first + 1));
    }
    life.journal.forget(&[first + 1]).unwrap();
    for when in [When::Ok, When::NotOk, When::EachOk] {
        refused(&mut life, 9, on(when, first), "the result of job 2 of array 1 is not known any more");
    }
    let any =
        life.submit(9, after(&[on(When::Any, first), Condition { index: Some(2), ..on(When::Ok, first) }]));
    assert!(launched(&life, any));
    life.journal.forget(&[first, first + 2]).unwrap();
    refused(&mut life, 10, on(When::Ok, first), "the result of job 1 is not known any more");
    refused(&mut life, 10, Condition { index: Some(1), ..on(When::Any, first) }, "not known any more");
}

/// An unknown result is neither a success nor a failure.
#[test]
fn a_result_that_cannot_be_read_is_unknown() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, job(1, 20));
    exits(&mut life, 2, first, 1);
    damage(&life.journal, first);
    for when in [When::Ok, When::NotOk] {
        refused(&mut life, 3, on(when, first), "the result of job 1 is not known: its record cannot be read");
    }
    let any = life.submit(3, after(&[on(When::Any, first)]));
    assert!(launched(&life, any));
}

#[test]
fn an_end_that_cannot_be_read_meets_no_condition() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, Submission { hold: true, ..job(1, 20) });
    let [good, bad] = [When::Ok, When::NotOk].map(|when| life.submit(1, after(&[on(when, first)])));
    let any = life.submit(1, Submission { after: vec![first], ..job(1, 10) });
    damage(&life.journal, first);
    life.begin(2, &Absence::default());
    let unknown = "job 1 ended with an unknown result, and this job waits for its";
    check_failed(&mut life, 2, good, &format!("{unknown} success"));
    check_failed(&mut life, 2, bad, &format!("{unknown} failure"));
    assert!(launched(&life, any));
}

/// Each failure of the chain and of the array is the end that others wait for.
#[test]
fn failures_spread_along_chains_and_from_arrays() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, Submission { array: Some(array(999)), hold: true, ..job(1, 20) });
    let mut last = first;
    let chain: Vec<i64> = (0..500)
        .map(|_| {
            last = life.submit(1, after(&[on(When::Ok, last)]));
            last
        })
        .collect();
    let clean = life.submit(1, after(&[on(When::NotOk, last), on(When::NotOk, first + 1)]));
    let both = life.submit(1, after(&[on(When::NotOk, last), on(When::Ok, first + 7)]));
    life.ask(2, DaemonRequest::Cancel { job: first, array: true }).unwrap();
    check_failed(&mut life, 2, chain[0], "job 1 was cancelled, and this job waits for its success");
    check_failed(
        &mut life,
        2,
        last,
        &format!("job {} could not run, and this job waits for its success", last - 1),
    );
    check_failed(&mut life, 2, both, "job 8 was cancelled, and this job waits for its success");
    assert!(launched(&life, clean));
}

#[test]
fn the_dependencies_of_all_jobs_of_a_user_are_limited() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, Submission { array: Some(array(999)), hold: true, ..job(1, 20) });
    let many = Submission { array: Some(array(149)), ..after(&[on(When::Ok, first)]) };
    let second = life.submit(2, many.clone());
    let problem = life.ask(2, DaemonRequest::Submit(many.clone())).unwrap_err();
    assert!(problem.message.contains("wait for 300000 jobs in total"), "{problem:?}");
    life.submit(2, job(1, 20));
    life.ask(3, DaemonRequest::Cancel { job: second, array: true }).unwrap();
    life.submit(4, many);
}
