//! GPUs: counted by the queue, given by index, never twice.

use std::collections::BTreeSet;

use miserly_api::model::{Modification, Phase, ProblemCode, Submission, WaitReason};
use miserly_core::{Calendar, Kind, Resources};
use miserly_engine::{
    Absence, Action, ChargeTerms, CpuHours, DaemonInfo, DaemonReply, DaemonRequest, Limits,
};

use super::life::{Life, early, job};
use super::rights::user;

/// Returns a life with 8 processors and some GPUs.
fn with_gpus(gpus: u64) -> Life {
    let mut life = Life::new(8, 8);
    let amount = Resources::cpus(8).with(Kind::Memory, 1000).with(Kind::Gpus, gpus);
    life.setup.queues[0].pool = Calendar::constant(amount);
    life.setup.gpus = gpus;
    life.begin(1, &Absence::default());
    life
}

fn gpu_job(gpus: u64, time: u32) -> Submission {
    Submission { gpus: Some(gpus), memory: Some(4096), ..job(1, time) }
}

/// Returns the GPUs with which a job was launched.
#[track_caller]
fn launched(life: &Life, job: i64) -> Option<Vec<u32>> {
    life.actions(job).into_iter().find_map(|action| match action {
        Action::Launch(launch) => Some(launch.gpus),
        _ => None,
    })?
}

#[test]
fn jobs_get_free_gpus_by_index() {
    let mut life = with_gpus(4);
    let first = life.submit(1, gpu_job(2, 20));
    let second = life.submit(1, gpu_job(1, 20));
    let none = life.submit(1, Submission { memory: Some(4096), ..job(1, 20) });
    assert_eq!(launched(&life, first), Some(vec![0, 1]));
    assert_eq!(launched(&life, second), Some(vec![2]));
    assert_eq!(launched(&life, none), Some(vec![]));
    let third = life.submit(2, gpu_job(2, 20));
    let view = life.job(2, third);
    assert_eq!(view.phase, Phase::Queued);
    let lack = WaitReason::Resources { kind: "gpus".to_owned(), requested: 2, free: 1 };
    assert_eq!(view.reasons, [lack]);
    life.end(5, second);
    assert_eq!(launched(&life, third), Some(vec![2, 3]));
    let view = life.job(5, third);
    assert_eq!((view.gpus, view.has_gpus), (2, vec![2, 3]));
    // The next daemon knows which are taken.
    life.begin(6, &Absence::default());
    life.end(7, first);
    let fourth = life.submit(8, gpu_job(2, 20));
    assert_eq!(launched(&life, fourth), Some(vec![0, 1]));
}

#[test]
fn more_gpus_than_there_are_is_refused() {
    let mut life = with_gpus(2);
    let problem = life.ask(1, DaemonRequest::Submit(gpu_job(3, 20))).unwrap_err();
    assert_eq!((problem.code, problem.field.as_deref()), (ProblemCode::Refused, Some("gpus")));
    let mut life = Life::new(1, 1);
    let problem = life.ask(1, DaemonRequest::Submit(gpu_job(1, 20))).unwrap_err();
    assert!(problem.message.contains("none"), "{problem}");
    // A daemon without GPUs leaves the variables of jobs alone.
    let plain = life.submit(1, job(1, 5));
    assert_eq!(launched(&life, plain), None);
}

#[test]
fn a_job_with_gpus_does_not_run_on_idle_processors() {
    let mut life = with_gpus(1);
    life.submit(1, gpu_job(1, 20));
    let ahead = life.submit(1, Submission { gpus: Some(1), memory: Some(4096), ..early(1, 20) });
    let view = life.job(1, ahead);
    assert!(view.phase == Phase::Queued && !view.opportunistic, "{view:?}");
}

#[test]
fn a_waiting_job_changes_its_gpus() {
    let mut life = with_gpus(2);
    life.submit(1, gpu_job(1, 20));
    let waiting = life.submit(1, gpu_job(2, 20));
    let changes = Modification { gpus: Some(1), ..Modification::default() };
    life.ask(2, DaemonRequest::Modify { job: waiting, changes: Box::new(changes), move_promises: false })
        .unwrap();
    assert_eq!(launched(&life, waiting), Some(vec![1]));
}

/// At no time do two jobs have the same GPU, also over restarts, cancellations and requeues.
#[test]
fn no_gpu_is_given_twice() {
    let mut life = with_gpus(4);
    let mut draws = (0u64..).map(|draw| miserly_core::draw(5, 3, draw));
    let mut draw = |below: u64| draws.next().unwrap() % below;
    let mut jobs = vec![];
    let mut most = 0;
    for second in 2..400 {
        if draw(2) == 0 {
            jobs.push(life.submit(second, gpu_job(draw(4), 30)));
        }
        for number in jobs.clone() {
            let phase = life.job(second, number).phase;
            if !matches!(phase, Phase::Running(_)) || draw(6) > 0 {
                continue;
            }
            if draw(3) == 0 {
                life.ask(second, DaemonRequest::Requeue { job: number, move_promises: false })
                    .unwrap_or(DaemonReply::JobIds(miserly_api::model::JobIds { jobs: vec![] }));
            }
            let attempt = miserly_engine::Attempt { job: number, nth: life.job(second, number).attempts };
            life.end_attempt(second, attempt);
        }
        if draw(20) == 0 {
            life.begin(second, &Absence::default());
        }
        let (mut held, mut count) = (BTreeSet::new(), 0);
        for number in &jobs {
            let view = life.job(second, *number);
            if matches!(view.phase, Phase::Running(_)) {
                assert_eq!(view.has_gpus.len() as u64, view.gpus, "{view:?}");
            }
            count += view.has_gpus.len();
            held.extend(view.has_gpus);
        }
        assert_eq!(held.len(), count, "at {second}");
        most = most.max(count);
    }
    assert_eq!(most, 4);
}

fn typed(name: &str, gpus: u64) -> Submission {
    Submission { gpu_type: Some(name.to_owned()), ..gpu_job(gpus, 20) }
}

#[test]
fn a_type_of_gpus_is_that_of_the_machine_or_refused() {
    let refused = |life: &mut Life, submission: Submission, says: &str| {
        let problem = life.ask(2, DaemonRequest::Submit(submission)).unwrap_err();
        assert_eq!((problem.code, problem.field.as_deref()), (ProblemCode::Refused, Some("gpu_type")));
        assert!(problem.message.contains(says), "{problem}");
    };
    let mut life = with_gpus(2);
    refused(&mut life, typed("a100", 1), "knows no types");
    life.setup.gpu_types = vec!["t4".to_owned(), "a100".to_owned()];
    life.begin(1, &Absence::default());
    refused(&mut life, typed("a100", 1), "has a100, t4, and a job gets any of them");
    refused(&mut life, typed("h100", 1), "there is a100, t4");
    life.setup.gpu_types = vec!["a100".to_owned(), String::new()];
    life.begin(1, &Absence::default());
    refused(&mut life, typed("a100", 1), "has a100 and others");
    life.setup.gpu_types = vec!["a100-3g.40gb".to_owned(), "a100".to_owned()];
    life.begin(1, &Absence::default());
    refused(&mut life, typed("a100", 1), "a job gets any of them");
    life.setup.gpu_types = vec!["a100-sxm4-80gb".to_owned(), "a100".to_owned()];
    life.begin(1, &Absence::default());
    refused(&mut life, typed("a10", 1), "there is a100, a100-sxm4-80gb");
    refused(&mut life, typed("a100", 0), "requests no GPUs");
    let job = life.submit(3, typed("a100", 2));
    assert_eq!(launched(&life, job), Some(vec![0, 1]));
    assert_eq!(life.job(3, job).gpu_type.as_deref(), Some("a100"));
    let waiting = life.submit(4, gpu_job(1, 20));
    let changes = Modification { gpu_type: Some("h100".to_owned()), ..Modification::default() };
    let change = DaemonRequest::Modify { job: waiting, changes: Box::new(changes), move_promises: false };
    assert!(life.ask(5, change).unwrap_err().message.contains("there is a100"));
}

/// Submits a job of a user.
fn submit_as(life: &mut Life, second: i64, uid: u32, submission: Submission) -> Result<i64, String> {
    match life.ask_as(user(uid), second, DaemonRequest::Submit(submission)) {
        Ok(DaemonReply::Submitted(submitted)) => Ok(submitted.jobs[0].number),
        Ok(other) => panic!("{other:?}"),
        Err(problem) => Err(problem.message),
    }
}

fn limited(limits: Limits) -> Life {
    let mut life = with_gpus(4);
    life.info = DaemonInfo { runs_as_users: true, ..DaemonInfo::default() };
    life.setup.user_limits.each = limits;
    life.begin(1, &Absence::default());
    life
}

#[test]
fn a_user_has_no_more_gpus_at_a_time_than_the_limit() {
    let mut life = limited(Limits { gpus: Some(2), ..Limits::default() });
    let problem = submit_as(&mut life, 1, 7, gpu_job(3, 20)).unwrap_err();
    assert!(problem.contains("3 GPUs, and user-limits.gpus is 2; request fewer"), "{problem}");
    let [first, second] = [2, 1].map(|gpus| submit_as(&mut life, 1, 7, gpu_job(gpus, 20)).unwrap());
    let none = submit_as(&mut life, 1, 7, Submission { memory: Some(4096), ..job(1, 20) }).unwrap();
    let other = submit_as(&mut life, 1, 8, gpu_job(2, 20)).unwrap();
    let runs = |life: &mut Life, job| matches!(life.job(2, job).phase, Phase::Running(_));
    assert_eq!([first, second, none, other].map(|job| runs(&mut life, job)), [true, false, true, true]);
    let reason = WaitReason::UserLimit { limit: "user-limits.gpus".into(), most: 2 };
    assert_eq!(life.job(2, second).reasons, [reason]);
    life.end(3, first);
    assert_eq!(launched(&life, second), Some(vec![0]));
}

#[test]
fn a_job_without_gpus_passes_one_that_lacks_gpus_of_its_user() {
    let mut life = limited(Limits { gpus: Some(1), running: Some(3), ..Limits::default() });
    let none = || Submission { memory: Some(4096), ..job(1, 20) };
    let jobs = [gpu_job(1, 20), gpu_job(1, 20), none(), gpu_job(1, 20), none(), none()];
    let jobs = jobs.map(|job| submit_as(&mut life, 1, 7, job).unwrap());
    let runs = jobs.map(|job| matches!(life.job(2, job).phase, Phase::Running(_)));
    assert_eq!(runs, [true, false, true, false, true, false]);
}

#[test]
fn the_time_of_gpus_counts_within_a_period() {
    let hours = CpuHours { most: 100_000_000, days: 2 };
    let mut life = limited(Limits { gpu_hours: Some(hours), ..Limits::default() });
    // 2 GPUs and 20 seconds.
    let first = submit_as(&mut life, 1, 7, Submission { cpus: 4, ..gpu_job(2, 20) }).unwrap();
    let problem = submit_as(&mut life, 2, 7, gpu_job(2, 40)).unwrap_err();
    assert!(
        problem.contains("of GPU time") && problem.contains("user-limits.gpu-hours is 0.02"),
        "{problem}"
    );
    submit_as(&mut life, 2, 7, Submission { memory: Some(4096), ..job(4, 9999) }).unwrap();
    life.end(11, first);
    let used = |life: &mut Life| match life.ask_as(user(7), 12, DaemonRequest::Limits).unwrap() {
        DaemonReply::Limits(report) => (report.limits[0].limit.clone(), report.limits[0].used * 3600.0),
        other => panic!("{other:?}"),
    };
    let (limit, seconds) = used(&mut life);
    assert_eq!(limit, "user-limits.gpu-hours");
    assert!((seconds - 20.0).abs() < 0.001, "{seconds}");
    // The count outlives the daemon.
    life.begin(13, &Absence::default());
    assert!((used(&mut life).1 - 20.0).abs() < 0.001);
    submit_as(&mut life, 14, 7, gpu_job(2, 40)).unwrap();
    submit_as(&mut life, 14, 7, gpu_job(1, 1)).unwrap_err();
}

#[test]
fn gpus_cost_in_the_usage_what_the_charge_says() {
    let mut life = with_gpus(4);
    life.info = DaemonInfo { runs_as_users: true, ..DaemonInfo::default() };
    life.setup.queues[0].policy = "easy(order=fair-share, half_life=1h)".parse().unwrap();
    life.setup.queues[0].charge = Some(ChargeTerms { cpus: 1_000_000, gpus: 8_000_000, memory: 0 });
    life.begin(1, &Absence::default());
    submit_as(&mut life, 1, 7, gpu_job(1, 200)).unwrap();
    submit_as(&mut life, 1, 8, Submission { memory: Some(4096), ..job(3, 200) }).unwrap();
    let mut shares = |restart: bool| {
        if restart {
            life.begin(60, &Absence::default());
        }
        match life.ask(100, DaemonRequest::Pools).unwrap() {
            DaemonReply::Pools(pools) => {
                let usage = &pools.pools[0].usage;
                usage.iter().map(|user| (user.uid, (user.share * 1000.0).round())).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        }
    };
    // 1 + 8 of 12.
    assert_eq!(shares(false), [(7, 750.0), (8, 250.0)]);
    assert_eq!(shares(true), [(7, 750.0), (8, 250.0)]);
}
