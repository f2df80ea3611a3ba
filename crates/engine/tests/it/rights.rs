//! The rights of users.

use std::collections::BTreeSet;
use std::sync::Arc;

use miserly_api::model::{Filter, JobView, Problem, ProblemCode, Submission};
use miserly_engine::{
    Absence, Account, AccountName, Action, Caller, Credential, DaemonInfo, DaemonReply, DaemonRequest, Group,
    Limits, QueueUsers, UserLimits,
};

use super::life::{Life, job};

const ANN: u32 = 1001;
const BOB: u32 = 1002;
const OVERFLOW: u32 = 65_534;

/// Returns a user with an account and the group `users`.
pub(crate) fn user(uid: u32) -> Caller {
    let groups = vec![Group { number: 100, name: Some("users".into()) }];
    Caller { account: Some(Arc::new(Account { name: format!("user{uid}"), groups })), ..Caller::new(uid) }
}

/// Returns a daemon of ann with these users of its queue.
fn of_ann(users: Option<QueueUsers>) -> Life {
    let mut life = Life::new(2, 2);
    life.setup.queues[0].terms.users = users;
    life.info = DaemonInfo { owner: ANN, overflow_uid: Some(OVERFLOW), ..DaemonInfo::default() };
    life.begin(1, &Absence::default());
    life
}

fn submit(life: &mut Life, caller: Caller, second: i64, what: Submission) -> Result<i64, Problem> {
    match life.ask_as(caller, second, DaemonRequest::Submit(what))? {
        DaemonReply::Submitted(submitted) => Ok(submitted.jobs[0].number),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(answer: Result<impl std::fmt::Debug, Problem>, says: &str) {
    let problem = answer.unwrap_err();
    assert_eq!(problem.code, ProblemCode::Forbidden);
    assert!(problem.message.contains(says), "{problem:?}");
}

/// A launcher that runs jobs as their users takes the jobs of all, and keeps the proof of each.
#[test]
fn every_user_submits_where_jobs_run_as_their_users() {
    let mut life = Life::new(2, 2);
    life.info = DaemonInfo { owner: ANN, runs_as_users: true, ..DaemonInfo::default() };
    life.begin(1, &Absence::default());
    let proof: Credential = "a proof".to_owned().into();
    let bob = Caller { credential: Some(proof.clone()), ..user(BOB) };
    let number = submit(&mut life, bob, 2, job(1, 5)).unwrap();
    let actions = life.actions(number);
    let [Action::Launch(launch)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!((launch.uid, &launch.credential), (BOB, &Some(proof)));
    refused(submit(&mut life, Caller::new(BOB), 3, job(1, 5)), "has no account");
}

/// A list of users without any admits nobody but root and the daemon's user.
#[test]
fn an_empty_list_is_not_open_to_all() {
    let group = |name: &str| QueueUsers {
        groups: BTreeSet::from([AccountName::Name(name.into())]),
        ..QueueUsers::default()
    };
    for closed in [QueueUsers::default(), group("empty")] {
        let mut life = of_ann(Some(closed));
        refused(submit(&mut life, user(BOB), 2, job(1, 5)), "queue batch is not open to you");
        submit(&mut life, user(ANN), 3, job(1, 5)).unwrap();
        refused(submit(&mut life, Caller::new(0), 4, job(1, 5)), "runs jobs as 1001 only");
    }
    let mut life = of_ann(Some(group("users")));
    refused(submit(&mut life, user(BOB), 2, job(1, 5)), "have a daemon of your own");
}

#[test]
fn a_refusal_names_the_limit_of_the_user() {
    #[track_caller]
    fn check(limits: Limits, fits: u32, says: &str) {
        let mut life = Life::new(2, 2);
        life.setup.user_limits = UserLimits { each: limits, tables: vec![] };
        life.info = DaemonInfo { owner: ANN, ..DaemonInfo::default() };
        life.begin(1, &Absence::default());
        for _ in 0..fits {
            submit(&mut life, user(ANN), 2, job(2, 100)).unwrap();
        }
        let problem = submit(&mut life, user(ANN), 3, job(2, 100)).unwrap_err();
        assert!(problem.code == ProblemCode::Refused && problem.message.contains(says), "{problem:?}");
        // It is the present use that counts.
        life.end(4, 1);
        submit(&mut life, user(ANN), 5, job(2, 100)).unwrap();
        // Another daemon keeps the limit.
        life.begin(6, &Absence::default());
        submit(&mut life, user(ANN), 7, job(2, 100)).unwrap_err();
    }
    let none = Limits::default();
    check(Limits { jobs: Some(2), ..none }, 2, "user-limits.jobs is 2");
    // A command of ten bytes.
    check(Limits { bytes: Some(21), ..none }, 2, "user-limits.bytes is 21B");
    check(Limits { cpu_time: Some(600_000_000), ..none }, 3, "user-limits.cpu-time is 10m");
}

#[test]
fn users_without_an_identity_do_not_submit() {
    let mut life = of_ann(None);
    refused(submit(&mut life, Caller::new(BOB), 2, job(1, 5)), "user 1002 has no account");
    refused(submit(&mut life, user(OVERFLOW), 2, job(1, 5)), "stands for all users");
    // Also where the daemon itself runs as that user.
    life.info.owner = OVERFLOW;
    life.begin(3, &Absence::default());
    refused(submit(&mut life, Caller::new(OVERFLOW), 4, job(1, 5)), "stands for all users");
    refused(life.ask_as(Caller::new(OVERFLOW), 5, DaemonRequest::Drain(true)), "only an operator");
    // The daemon's user needs no account.
    life.info.owner = BOB;
    life.begin(6, &Absence::default());
    submit(&mut life, Caller::new(BOB), 7, job(1, 5)).unwrap();
}

#[test]
fn an_operator_s_hold_is_released_by_an_operator() {
    let mut life = of_ann(None);
    submit(&mut life, user(ANN), 2, job(2, 50)).unwrap();
    let waits = submit(&mut life, user(ANN), 2, job(2, 50)).unwrap();
    let hold = || DaemonRequest::Hold { job: waits, move_promises: false };
    let release = || DaemonRequest::Release(waits);
    // From now on the daemon is bob's, and ann is a user of it.
    life.info.owner = BOB;
    life.begin(3, &Absence::default());
    let (ann, bob, root) = (user(ANN), user(BOB), Caller::new(0));
    for operator in [&bob, &root] {
        life.ask_as(operator.clone(), 4, hold()).unwrap();
        refused(life.ask_as(ann.clone(), 5, release()), "held by an operator");
        // A hold of her own on top of it changes nothing.
        life.ask_as(ann.clone(), 6, hold()).unwrap();
        refused(life.ask_as(ann.clone(), 7, release()), "held by an operator");
        life.ask_as(root.clone(), 8, release()).unwrap();
        life.ask_as(ann.clone(), 9, hold()).unwrap();
        life.ask_as(ann.clone(), 10, release()).unwrap();
    }
}

#[test]
fn commands_and_paths_are_private() {
    let mut life = of_ann(None);
    let secret = Submission { command: vec!["/bin/true".into(), "--token=x".into()], ..job(1, 5) };
    let number = submit(&mut life, user(ANN), 2, secret).unwrap();
    let mut seen = |caller: Caller, question: DaemonRequest| -> Vec<JobView> {
        match life.ask_as(caller, 3, question).unwrap() {
            DaemonReply::Job(job) => vec![*job],
            DaemonReply::Jobs(jobs) => jobs,
            other => panic!("{other:?}"),
        }
    };
    let shows = |job: &JobView| {
        let all = [job.command.is_some(), job.directory.is_some(), job.output.is_some(), job.error.is_some()];
        assert!(all.iter().all(|one| *one == all[0]), "{job:?}");
        all[0]
    };
    let list = |details| DaemonRequest::Jobs(Filter { details, ..Filter::default() });
    for (caller, reads) in [(user(ANN), true), (Caller::new(0), true), (user(BOB), false)] {
        let one = seen(caller.clone(), DaemonRequest::Job(number));
        assert_eq!((shows(&one[0]), one[0].name.as_str()), (reads, "true"));
        assert_eq!(shows(&seen(caller.clone(), list(true))[0]), reads);
        assert!(!shows(&seen(caller, list(false))[0]), "a list has them on request only");
    }
    life.end(4, number);
    let ended = Filter { all: true, details: true, ..Filter::default() };
    let DaemonReply::Jobs(jobs) = life.ask_as(user(BOB), 5, DaemonRequest::Jobs(ended)).unwrap() else {
        panic!("no list")
    };
    assert!(!shows(&jobs[0]));
}

/// The operators of the configuration have the rights of root, until it names others.
#[test]
fn operators_see_and_change_all_jobs_and_others_do_not() {
    const OPS: u32 = 1009;
    let mut life = of_ann(None);
    let number = submit(&mut life, user(ANN), 2, Submission { hold: true, ..job(1, 5) }).unwrap();
    let command = |life: &mut Life, caller: Caller| {
        let shown = life.ask_as(caller, 3, DaemonRequest::Job(number)).unwrap();
        let DaemonReply::Job(view) = shown else { panic!("{shown:?}") };
        view.command.is_some()
    };
    let cancel = || DaemonRequest::Cancel { job: number, array: false };
    assert!(!command(&mut life, user(OPS)));
    refused(life.ask_as(user(OPS), 3, cancel()), "is another user's");
    refused(life.ask_as(user(OPS), 3, DaemonRequest::Drain(true)), "only an operator");

    let users = BTreeSet::from([AccountName::Number(OPS)]);
    life.info.operators = QueueUsers { users, ..QueueUsers::default() };
    life.begin(4, &Absence::default());
    assert!(command(&mut life, user(OPS)) && !command(&mut life, user(BOB)));
    assert!(
        life.snapshot().needs_account(&Caller::new(BOB)) && !life.snapshot().needs_account(&Caller::new(ANN))
    );
    life.ask_as(user(OPS), 5, DaemonRequest::Drain(true)).unwrap();
    refused(life.ask_as(user(BOB), 5, cancel()), "is another user's");
    life.ask_as(user(OPS), 5, cancel()).unwrap();
}
