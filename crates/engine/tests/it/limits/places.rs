//! Limits on the jobs and processors that run at the same time, and on waiting jobs.

use miserly_api::model::{Array, Modification, Phase, Submission, WaitReason};
use miserly_engine::{Absence, Attempt, DaemonReply, DaemonRequest, Limits};

use super::{ANN, BOB, EVE, NON, course, daemon, refused, runs, submit, user};
use crate::life::{Life, job, wall};

fn running(most: u64) -> Limits {
    Limits { running: Some(most), ..Limits::default() }
}

fn cpus(most: u64) -> Limits {
    Limits { cpus: Some(most), ..Limits::default() }
}

#[test]
fn a_job_beyond_the_limit_waits_without_a_promise_until_one_ends() {
    let mut life = daemon(running(2), vec![]);
    let jobs: Vec<i64> = (0..4).map(|_| submit(&mut life, 2, ANN, job(1, 50)).unwrap()).collect();
    let other = submit(&mut life, 2, BOB, job(1, 50)).unwrap();
    assert!(runs(&mut life, 2, jobs[0]) && runs(&mut life, 2, jobs[1]) && runs(&mut life, 2, other));
    let view = life.job(2, jobs[2]);
    let reason = WaitReason::UserLimit { limit: "user-limits.running".into(), most: 2 };
    assert_eq!((view.phase, view.promise, view.reasons), (Phase::Queued, None, vec![reason]));
    // Another daemon keeps the order.
    life.begin(3, &Absence::default());
    life.end(4, jobs[1]);
    assert!(runs(&mut life, 4, jobs[2]) && life.job(4, jobs[3]).promise.is_none());
    life.ask(5, DaemonRequest::Cancel { job: jobs[2], array: false }).unwrap();
    life.end_attempt(6, Attempt { job: jobs[2], nth: 1 });
    assert!(runs(&mut life, 6, jobs[3]));
}

#[test]
fn a_table_limits_each_member_or_all_together() {
    let mut life = daemon(Limits::default(), vec![course(false, running(1))]);
    let of = |life: &mut Life, uid: u32| submit(life, 2, uid, job(1, 50)).unwrap();
    let [ann, second, bob] = [ANN, ANN, BOB].map(|uid| of(&mut life, uid));
    assert_eq!([ann, second, bob].map(|job| runs(&mut life, 2, job)), [true, false, true]);

    let mut life = daemon(Limits::default(), vec![course(true, cpus(4))]);
    let mut submitted = |uid, cpus| submit(&mut life, 2, uid, job(cpus, 50));
    let [ann, bob, eve] = [(ANN, 3), (BOB, 2), (EVE, 1)].map(|(uid, cpus)| submitted(uid, cpus).unwrap());
    let non = submitted(NON, 4).unwrap();
    refused(submitted(BOB, 5), &["5 cpus", "course.cpus is 4", "request fewer"]);
    // The smaller job of eve does not pass that of bob.
    assert_eq!([ann, bob, eve, non].map(|job| runs(&mut life, 3, job)), [true, false, false, true]);
    let waits = life.job(3, eve).reasons;
    assert_eq!(waits, [WaitReason::UserLimit { limit: "course.cpus".into(), most: 4 }]);
    life.end(4, ann);
    assert_eq!([bob, eve].map(|job| runs(&mut life, 4, job)), [true, true]);
}

#[test]
fn a_user_at_the_own_limit_stops_no_other_user_of_the_group() {
    let mut life = daemon(running(1), vec![course(true, running(2))]);
    let jobs = [ANN, ANN, BOB, EVE].map(|uid| submit(&mut life, 2, uid, job(1, 50)).unwrap());
    assert_eq!(jobs.map(|job| runs(&mut life, 2, job)), [true, false, true, false]);
    let why = |limit: &str, most| vec![WaitReason::UserLimit { limit: limit.into(), most }];
    let both = [why("user-limits.running", 1), why("course.running", 2)].concat();
    assert_eq!([jobs[1], jobs[3]].map(|job| life.job(2, job).reasons), [both, why("course.running", 2)]);
    life.end(3, jobs[2]);
    assert_eq!(
        jobs.map(|job| life.job(3, job).phase.ended().is_none() && runs(&mut life, 3, job)),
        [true, false, false, true]
    );
}

#[test]
fn an_array_heeds_its_own_limit_and_that_of_its_user() {
    let mut life = daemon(running(3), vec![]);
    let array = |limit| Submission { array: Some(Array { limit, ..Array::range(0, 4, 1) }), ..job(1, 50) };
    let Ok(DaemonReply::Quote(quote)) = life.ask_as(user(ANN), 2, DaemonRequest::Quote(array(None))) else {
        panic!("no quote")
    };
    assert_eq!(quote.windows.iter().flatten().count(), 3, "a quote promises no more than a submission");
    let first = submit(&mut life, 2, ANN, array(Some(2))).unwrap();
    let second = submit(&mut life, 3, ANN, array(None)).unwrap();
    let runs_of = |life: &mut Life, first: i64| (first..first + 5).filter(|job| runs(life, 3, *job)).count();
    assert_eq!((runs_of(&mut life, first), runs_of(&mut life, second)), (2, 1));
    assert_eq!(
        life.job(3, first + 2).reasons,
        [
            WaitReason::ArrayLimit { limit: 2 },
            WaitReason::UserLimit { limit: "user-limits.running".into(), most: 3 }
        ]
    );
}

#[test]
fn a_deadline_needs_a_place() {
    let mut life = daemon(running(1), vec![]);
    let urgent = || Submission { deadline: Some(wall(200)), ..job(1, 50) };
    let first = submit(&mut life, 2, ANN, urgent()).unwrap();
    let says = ["user-limits.running", "no end by a deadline can be promised"];
    refused(submit(&mut life, 3, ANN, urgent()), &says);
    let held = submit(&mut life, 3, ANN, Submission { hold: true, ..urgent() }).unwrap();
    refused(life.ask(4, DaemonRequest::Release(held)), &["user-limits.running", "release it when"]);
    life.end(5, first);
    life.ask(6, DaemonRequest::Release(held)).unwrap();
    assert!(runs(&mut life, 6, held));
}

#[test]
fn modify_heeds_the_limits() {
    let mut life = daemon(Limits { cpu_time: Some(1_000_000_000), ..cpus(4) }, vec![]);
    let modify = |life: &mut Life, job: i64, changes: Modification| {
        life.ask_as(
            user(ANN),
            3,
            DaemonRequest::Modify { job, changes: Box::new(changes), move_promises: false },
        )
    };
    submit(&mut life, 2, NON, job(4, 50)).unwrap();
    submit(&mut life, 2, BOB, job(4, 50)).unwrap();
    let [waits, more] = [3, 1].map(|cpus| submit(&mut life, 2, ANN, job(cpus, 100)).unwrap());
    let deferred = submit(&mut life, 2, ANN, job(1, 100)).unwrap();
    assert!([waits, more].iter().all(|job| life.job(2, *job).promise.is_some()));
    assert!(life.job(2, deferred).promise.is_none());
    let of_cpus = |cpus| Modification { cpus: Some(cpus), ..Modification::default() };
    refused(modify(&mut life, more, of_cpus(2)), &["has a place under user-limits.cpus", "hold it"]);
    refused(modify(&mut life, deferred, of_cpus(5)), &["user-limits.cpus is 4"]);
    let longer = Modification { time: Some(700.0), ..Modification::default() };
    refused(modify(&mut life, deferred, longer), &["user-limits.cpu-time is 16m40s"]);
    let extension = DaemonRequest::Extend { job: waits, by: 200.0 };
    refused(life.ask_as(user(ANN), 3, extension), &["user-limits.cpu-time is 16m40s"]);
    // The place of a smaller job has room for another one.
    modify(&mut life, waits, of_cpus(2)).unwrap();
    assert!(life.job(4, deferred).promise.is_some());
}

#[test]
fn waiting_jobs_are_limited_also_for_requeue() {
    let limits = Limits { queued: Some(2), ..Limits::default() };
    let mut life = daemon(limits, vec![course(true, Limits { queued: Some(3), ..Limits::default() })]);
    let first = submit(&mut life, 2, ANN, job(8, 50)).unwrap();
    for _ in 0..2 {
        submit(&mut life, 3, ANN, job(8, 50)).unwrap();
    }
    refused(
        submit(&mut life, 4, ANN, job(8, 50)),
        &["you would have 3 waiting jobs", "user-limits.queued is 2"],
    );
    let requeue = || DaemonRequest::Requeue { job: first, move_promises: true };
    refused(life.ask_as(user(ANN), 4, requeue()), &["user-limits.queued is 2"]);
    submit(&mut life, 5, BOB, job(8, 50)).unwrap();
    let says =
        ["the users of limit course together would have 4 waiting jobs", "course.queued is 3", "these jobs"];
    refused(submit(&mut life, 5, BOB, job(8, 50)), &says);
    submit(&mut life, 5, NON, job(8, 50)).unwrap();
    life.end(6, first);
    submit(&mut life, 7, BOB, job(8, 50)).unwrap();
}

#[test]
fn a_reload_applies_to_later_submissions_and_releases() {
    let mut life = daemon(running(1), vec![]);
    let jobs = [(); 4].map(|()| submit(&mut life, 2, ANN, job(1, 50)).unwrap());
    life.setup.user_limits.each = running(3);
    life.set_up(3).unwrap();
    life.turn(4, vec![]);
    assert_eq!(jobs.map(|job| runs(&mut life, 4, job)), [true, true, true, false]);
    // With a lower limit they run on, and no other one enters.
    life.setup.user_limits.each = running(1);
    life.set_up(5).unwrap();
    life.end(6, jobs[0]);
    life.end(7, jobs[1]);
    assert_eq!([jobs[2], jobs[3]].map(|job| runs(&mut life, 7, job)), [true, false]);
    life.end(8, jobs[2]);
    assert!(runs(&mut life, 8, jobs[3]));
}

#[test]
fn root_has_no_limits() {
    let mut life = daemon(Limits { jobs: Some(0), ..running(0) }, vec![]);
    refused(submit(&mut life, 2, ANN, job(1, 5)), &["user-limits.running is 0"]);
    life.submit(2, job(1, 5));
    assert_eq!(
        life.ask(3, DaemonRequest::Limits).map(|reply| match reply {
            DaemonReply::Limits(report) => report.limits,
            other => panic!("{other:?}"),
        }),
        Ok(vec![])
    );
}
