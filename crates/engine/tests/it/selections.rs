//! One request that changes many jobs.

use std::sync::Arc;

use miserly_api::model::{
    Array, ChangeRequest, ChangedJobs, Condition, JobChange, JobRef, Phase, ProblemCode, Selection,
    StateName, Submission, When,
};
use miserly_engine::{Absence, Account, Caller, DaemonInfo, DaemonReply, DaemonRequest};

use super::life::{Life, job, wall};

fn jobs(text: &str) -> Selection {
    Selection::from_jobs(miserly_api::model::job_refs(text).unwrap())
}

fn request(change: JobChange, select: Selection) -> DaemonRequest {
    DaemonRequest::Change(Box::new(ChangeRequest { change, select, move_promises: false }))
}

fn changed(reply: Result<DaemonReply, miserly_api::model::Problem>) -> ChangedJobs {
    match reply.unwrap() {
        DaemonReply::Changed(changed) => *changed,
        other => panic!("{other:?}"),
    }
}

fn change(life: &mut Life, second: i64, change: JobChange, select: Selection) -> ChangedJobs {
    changed(life.ask(second, request(change, select)))
}

fn array(last: u32) -> Submission {
    Submission { array: Some(Array::range(0, last, 1)), ..job(1, 20) }
}

fn rounds(life: &Life) -> usize {
    life.lines().iter().filter(|line| line.contains("withdrawn")).count()
}

#[test]
fn many_withdrawals_are_one_round_and_one_commit() {
    for policy in ["miser", "conservative", "easy", "fcfs"] {
        let mut life = Life::of_policy(policy, 1, 1);
        let first = life.submit(1, array(499));
        let last = life.submit(1, job(1, 20));
        let (commits, before) = (life.journal.contents().commits, rounds(&life));
        // The first one runs.
        let outcome = change(&mut life, 2, JobChange::Cancel, jobs(&format!("{}-{}", first + 1, last - 1)));
        assert_eq!(outcome.jobs, (first + 1..last).collect::<Vec<_>>(), "{policy}");
        assert_eq!((life.journal.contents().commits - commits, rounds(&life) - before), (1, 1), "{policy}");
        assert!((first + 1..last).all(|job| life.job(2, job).phase.ended().is_some()));
        assert!(matches!(life.job(2, first).phase, Phase::Running(_)));
        if let Some(promise) = life.job(2, last).promise {
            assert_eq!(Life::second(promise.now.unwrap().start), 22, "{policy}: it is next");
        }
        life.end(10, first);
        assert!(matches!(life.job(10, last).phase, Phase::Running(_)), "{policy}");
    }
}

#[test]
fn a_range_skips_and_a_number_does_not() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, array(9));
    life.end(5, first);
    let outcome = change(&mut life, 6, JobChange::Cancel, jobs(&format!("{first}-{}", first + 3)));
    assert_eq!(outcome.jobs, [first + 1, first + 2, first + 3]);
    assert_eq!((outcome.refused.len(), outcome.skipped[0].count), (0, 1));
    life.end(6, first + 1);
    // Indexes begin with 0.
    let named = format!("{first},{first}_4,{first}[0-1,5-6],{first}[0-3],90-99,77");
    let outcome = change(&mut life, 7, JobChange::Cancel, jobs(&named));
    assert_eq!(outcome.jobs, [first + 4, first + 5, first + 6]);
    let skipped: Vec<(String, u64)> =
        outcome.skipped.iter().map(|skipped| (skipped.range.to_string(), skipped.count)).collect();
    assert_eq!(skipped, [(format!("{first}[0-1,5-6]"), 2)]);
    let refused: Vec<(String, ProblemCode)> =
        outcome.refused.iter().map(|of| (of.jobs[0].to_string(), of.problem.code)).collect();
    let expect = [
        (format!("{first}[0-3]"), ProblemCode::NotFound),
        ("90-99".to_owned(), ProblemCode::NotFound),
        (first.to_string(), ProblemCode::Conflict),
        ("77".to_owned(), ProblemCode::NotFound),
    ];
    assert_eq!(refused, expect);
    let problem = life.ask(8, request(JobChange::Cancel, Selection::default())).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Malformed, "an empty selection is not all jobs of all users");
}

#[test]
fn rights_are_checked_for_each_job() {
    let mut life = Life::new(1, 1);
    life.info = DaemonInfo { runs_as_users: true, ..DaemonInfo::default() };
    life.begin(0, &Absence::default());
    let first = life.submit(1, array(3));
    let caller = || {
        let account = Account { name: "ben".into(), groups: vec![] };
        Caller { account: Some(Arc::new(account)), ..Caller::new(7) }
    };
    let Ok(DaemonReply::Submitted(own)) = life.ask_as(caller(), 1, DaemonRequest::Submit(array(1))) else {
        panic!("it is accepted")
    };
    let own: Vec<i64> = own.jobs.iter().map(|job| job.number).collect();
    for change in [JobChange::Hold, JobChange::Release, JobChange::Cancel] {
        let all = jobs(&format!("{first}-{}", own[1]));
        let outcome = changed(life.ask_as(caller(), 2, request(change, all)));
        assert_eq!(outcome.jobs, own);
        let [refused] = &outcome.refused[..] else { panic!("{outcome:?}") };
        assert_eq!(refused.jobs, [JobRef::Range(first, first + 3)], "one reason for all");
        assert_eq!(refused.problem.code, ProblemCode::Forbidden);
    }
    let user = Selection { uid: Some(7), ..Selection::default() };
    let problem = life.ask(3, request(JobChange::Cancel, user)).unwrap_err();
    assert_eq!(problem.code, ProblemCode::NotFound, "all of them are over");
    assert!(life.job(3, first + 3).phase.ended().is_none());
}

#[test]
fn filters_select_unfinished_jobs() {
    let mut life = Life::new(1, 1);
    let named = |name: &str| Submission { name: Some(name.into()), ..job(1, 20) };
    let numbers: Vec<i64> =
        ["train1", "train2", "other", "train3"].map(|name| life.submit(1, named(name))).into();
    life.ask(2, DaemonRequest::Hold { job: numbers[3], move_promises: false }).unwrap();
    let by = |states: &[StateName], name: &str| Selection {
        states: states.to_vec(),
        name: Some(name.into()),
        queue: Some("batch".into()),
        user: Some("0".into()),
        ..Selection::default()
    };
    let waiting = change(&mut life, 3, JobChange::Cancel, by(&[StateName::Waiting], "train*"));
    assert_eq!(waiting.jobs, [numbers[1]], "the first runs, the last is held");
    let rest = change(&mut life, 4, JobChange::Cancel, by(&[StateName::Held, StateName::Running], "train?"));
    assert_eq!(rest.jobs, [numbers[0], numbers[3]]);
    let of_other = Selection { user: Some("ben".into()), ..Selection::default() };
    let problem = life.ask(5, request(JobChange::Cancel, of_other)).unwrap_err();
    assert_eq!(problem.code, ProblemCode::NotFound);
}

#[test]
fn jobs_are_held_and_released_together() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, array(99));
    let (commits, all) = (life.journal.contents().commits, jobs(&format!("{first}-{}", first + 99)));
    let held = change(&mut life, 2, JobChange::Hold, all.clone());
    assert_eq!((held.jobs.len(), held.refused.len()), (99, 1), "one runs");
    assert_eq!(life.journal.contents().commits - commits, 1);
    assert!((first + 1..first + 100).all(|job| life.job(2, job).phase == Phase::Held));
    let released = change(&mut life, 3, JobChange::Release, all);
    assert_eq!((released.jobs.len(), released.refused.len()), (99, 1));
    assert_eq!(life.journal.contents().commits - commits, 2);
    let start = |life: &mut Life, job| Life::second(life.job(3, job).promise.unwrap().now.unwrap().start);
    // Each has its time limit and the cleanup time.
    assert_eq!(start(&mut life, first + 99), 1 + 99 * 21, "their places are in the order of their numbers");
}

/// Of three held jobs the deadline of one has passed. The others are released.
#[test]
fn a_job_without_a_window_stays_held() {
    let mut life = Life::new(1, 1);
    life.submit(1, job(1, 20));
    let hold = |submission| Submission { hold: true, ..submission };
    let numbers: Vec<i64> = [None, Some(wall(50)), None]
        .map(|deadline| life.submit(1, hold(Submission { deadline, ..job(1, 20) })))
        .into();
    let all = jobs(&format!("{}-{}", numbers[0], numbers[2]));
    let outcome = change(&mut life, 40, JobChange::Release, all);
    assert_eq!(outcome.jobs, [numbers[0], numbers[2]]);
    assert_eq!(outcome.refused[0].jobs, [JobRef::One(numbers[1])]);
    assert_eq!(life.job(40, numbers[1]).phase, Phase::Held);
}

#[test]
fn promises_to_jobs_that_wait_for_held_ones_are_kept() {
    let mut life = Life::new(1, 1);
    life.submit(1, job(1, 20));
    let [free, before] = [0, 1].map(|_| life.submit(1, job(1, 20)));
    let condition = |job| Condition { when: When::Ok, job: Some(job), ..Condition::default() };
    let after = |job| Submission { conditions: vec![condition(job)], ..self::job(1, 20) };
    let between = life.submit(1, after(before));
    let last = life.submit(1, after(between));
    assert!(life.job(1, last).promise.is_some());
    let three = jobs(&format!("{free}-{between}"));
    let outcome = change(&mut life, 2, JobChange::Hold, three);
    assert_eq!(outcome.jobs, [free]);
    let refused: Vec<JobRef> = outcome.refused.iter().flat_map(|of| of.jobs.clone()).collect();
    assert_eq!(refused, [JobRef::One(before), JobRef::One(between)], "{last} waits for them");
    // Together with the last one they are held: no promise to another job breaks.
    let outcome = change(&mut life, 3, JobChange::Hold, jobs(&format!("{before}-{last}")));
    assert_eq!((outcome.jobs, outcome.refused), (vec![before, between, last], vec![]));
}

#[test]
fn other_changes_are_one_commit_too() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, array(3));
    let commits = life.journal.contents().commits;
    let outcome = change(&mut life, 2, JobChange::Requeue, jobs(&format!("{first}-{}", first + 2)));
    assert_eq!((outcome.jobs, outcome.refused.len()), (vec![first, first + 1], 1));
    assert_eq!(life.journal.contents().commits - commits, 1);
}

#[test]
fn a_refused_submission_uses_no_number() {
    for policy in ["miser", "conservative", "easy"] {
        let mut life = Life::of_policy(policy, 1, 1);
        assert_eq!(life.submit(1, job(1, 20)), 1);
        let wide = || job(2, 20);
        let late = || Submission { deadline: Some(wall(30)), ..job(1, 20) };
        let wide_array = || Submission { array: Some(Array::range(0, 2, 1)), ..wide() };
        for submission in [wide(), wide_array(), late(), wide()] {
            life.ask(2, DaemonRequest::Submit(submission)).unwrap_err();
        }
        assert_eq!(life.job(2, 1).number, 1);
        assert!(
            !life.lines().iter().any(|line| line.contains(r#""refused""#)),
            "{policy}: {:?}",
            life.lines()
        );
        assert_eq!(life.submit(3, job(1, 20)), 2, "{policy}");
        // The next daemon goes on with the same numbers.
        life.begin(4, &Absence::default());
        assert_eq!(life.submit(5, job(1, 20)), 3, "{policy}");
    }
}
