//! Orders by the usage of users: a restart keeps it, and the pools show it.

use std::sync::Arc;

use miserly_api::model::{Phase, Pool, UserUsage};
use miserly_engine::{Absence, Account, Caller, DaemonInfo, DaemonReply, DaemonRequest, Group};

use super::life::{Life, job};
use super::rights::user;

const FAIR: &str = "easy(order=fair-share, half_life=1h)";

/// Returns a daemon that runs the jobs of all users.
fn of_policy(policy: &str, cpus: u64) -> Life {
    let mut life = Life::of_policy(policy, cpus, u32::try_from(cpus).unwrap());
    life.info = DaemonInfo { runs_as_users: true, ..DaemonInfo::default() };
    life.begin(0, &Absence::default());
    life
}

fn submit_as(life: &mut Life, second: i64, uid: u32) -> i64 {
    let submitted = life.ask_as(user(uid), second, DaemonRequest::Submit(job(1, 200)));
    match submitted.unwrap() {
        DaemonReply::Submitted(submitted) => submitted.jobs[0].number,
        other => panic!("{other:?}"),
    }
}

fn pool(life: &mut Life, second: i64) -> Pool {
    match life.ask(second, DaemonRequest::Pools).unwrap() {
        DaemonReply::Pools(mut pools) => pools.pools.remove(0),
        other => panic!("{other:?}"),
    }
}

fn shares(life: &mut Life, second: i64) -> Vec<(u32, f64)> {
    let share = |user: &UserUsage| (user.uid, (user.share * 1000.0).round() / 1000.0);
    pool(life, second).usage.iter().map(share).collect()
}

fn runs(life: &mut Life, second: i64, job: i64) -> bool {
    matches!(life.job(second, job).phase, Phase::Running { .. })
}

#[test]
fn a_restart_keeps_the_usage() {
    for restart in [false, true] {
        let mut life = of_policy(FAIR, 1);
        let first = submit_as(&mut life, 0, 7);
        life.end(100, first);
        let light = submit_as(&mut life, 110, 8);
        let (heavy_next, light_next) = (submit_as(&mut life, 111, 7), submit_as(&mut life, 112, 8));
        if restart {
            life.begin(120, &Absence::default());
        }
        life.end(140, light);
        assert!(runs(&mut life, 141, light_next), "user 8 has used less");
        assert!(!runs(&mut life, 141, heavy_next), "although user 7 was first");
        let shown = shares(&mut life, 141);
        assert_eq!(shown.iter().map(|(uid, _)| *uid).collect::<Vec<_>>(), [7, 8]);
        assert!((shown[0].1 - 0.76).abs() < 0.01, "{shown:?}");
    }
}

#[test]
fn the_usage_is_the_same_to_the_bit() {
    let usage = |restart: bool| {
        let mut life = of_policy(FAIR, 2);
        for second in 0..5 {
            submit_as(&mut life, second + 1, 7 + u32::try_from(second).unwrap() % 2);
            if restart {
                life.begin(second + 1, &Absence::default());
            }
        }
        pool(&mut life, 90).usage
    };
    assert_eq!(usage(false), usage(true));
    assert_eq!(usage(false).len(), 2);
}

#[test]
fn the_members_of_a_group_share_its_usage() {
    let mut life = of_policy("easy(order='-group_usage_share', half_life=1h)", 1);
    let member = |uid: u32, gid| {
        let groups = vec![Group { number: gid, name: None }];
        let account = Account { name: uid.to_string(), groups };
        Caller { account: Some(Arc::new(account)), ..Caller::new(uid) }
    };
    let submit = |life: &mut Life, second, caller| match life
        .ask_as(caller, second, DaemonRequest::Submit(job(1, 200)))
        .unwrap()
    {
        DaemonReply::Submitted(submitted) => submitted.jobs[0].number,
        other => panic!("{other:?}"),
    };
    let first = submit(&mut life, 0, member(7, 50));
    let same_group = submit(&mut life, 1, member(8, 50));
    let other_group = submit(&mut life, 2, member(9, 60));
    life.begin(3, &Absence::default());
    life.end(100, first);
    assert!(runs(&mut life, 101, other_group) && !runs(&mut life, 101, same_group));
    let shown = pool(&mut life, 101).group_usage;
    assert_eq!(shown.iter().map(|group| group.gid).collect::<Vec<_>>(), [50, 60]);
    assert_eq!(shown[0].group, "50");
}

#[test]
fn no_other_order_counts_it() {
    let mut life = of_policy("easy(order=lxf)", 1);
    submit_as(&mut life, 0, 7);
    assert_eq!(pool(&mut life, 50).usage, []);
}

#[test]
fn an_order_by_usage_that_comes_later_counts_the_running_jobs() {
    let mut life = of_policy("easy", 1);
    submit_as(&mut life, 0, 7);
    life.setup.queues[0].policy = FAIR.parse().unwrap();
    life.begin(40, &Absence::default());
    let usage = pool(&mut life, 100).usage;
    assert_eq!((usage[0].uid, usage.len()), (7, 1));
    assert!((usage[0].cpu_hours * 3600.0 - 99.0).abs() < 2.0, "{usage:?}");
}
