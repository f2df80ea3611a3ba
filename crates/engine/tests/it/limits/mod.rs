//! Limits of users and groups: places, waiting jobs, and processor time within a period.

mod count;
mod draws;
mod hours;
mod places;

use std::collections::BTreeSet;
use std::sync::Arc;

use miserly_api::model::{LimitsReport, Phase, Problem, Submission};
use miserly_engine::{
    Absence, Account, AccountName, Caller, DaemonInfo, DaemonReply, DaemonRequest, Group, LimitTable, Limits,
    QueueUsers, UserLimits,
};

use super::life::Life;

const ANN: u32 = 1001;
const BOB: u32 = 1002;
const EVE: u32 = 1003;
const NON: u32 = 1004;

/// Returns a user. All but one are in the group `course`.
fn user(uid: u32) -> Caller {
    let group = |number, name: &str| Group { number, name: Some(name.into()) };
    let mut groups = vec![group(100, "users")];
    groups.extend((uid != NON).then(|| group(50, "course")));
    Caller { account: Some(Arc::new(Account { name: format!("user{uid}"), groups })), ..Caller::new(uid) }
}

/// Returns limits of the group `course`, for each member or for all together.
fn course(together: bool, limits: Limits) -> LimitTable {
    let groups = BTreeSet::from([AccountName::Name("course".into())]);
    LimitTable {
        name: "course".into(),
        users: QueueUsers { groups, ..QueueUsers::default() },
        together,
        limits,
    }
}

/// Returns a daemon that runs the jobs of all users, on 8 processors.
fn daemon(each: Limits, tables: Vec<LimitTable>) -> Life {
    let mut life = Life::new(8, 8);
    life.setup.user_limits = UserLimits { each, tables };
    life.info = DaemonInfo { runs_as_users: true, ..DaemonInfo::default() };
    life.begin(1, &Absence::default());
    life
}

fn submit(life: &mut Life, second: i64, uid: u32, what: Submission) -> Result<i64, Problem> {
    match life.ask_as(user(uid), second, DaemonRequest::Submit(what))? {
        DaemonReply::Submitted(submitted) => Ok(submitted.jobs[0].number),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, Problem>, says: &[&str]) {
    let problem = answer.unwrap_err();
    assert!(says.iter().all(|says| problem.message.contains(says)), "{problem:?}");
}

fn runs(life: &mut Life, second: i64, job: i64) -> bool {
    matches!(life.job(second, job).phase, Phase::Running(_))
}

fn report(life: &mut Life, second: i64, uid: u32) -> LimitsReport {
    match life.ask_as(user(uid), second, DaemonRequest::Limits).unwrap() {
        DaemonReply::Limits(report) => *report,
        other => panic!("{other:?}"),
    }
}
