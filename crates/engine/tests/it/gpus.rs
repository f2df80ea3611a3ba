//! GPUs: counted by the queue, given by index, never twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use miserly_api::model::{Modification, Phase, ProblemCode, Submission, WaitReason};
use miserly_core::{Calendar, Kind, Resources};
use miserly_engine::{
    Absence, Action, ChargeTerms, CpuHours, DaemonInfo, DaemonReply, DaemonRequest, GpuGroup, Limits,
    MemoryJournal, QueueGpus,
};

use super::life::{Life, early, job};
use super::rights::user;

/// Returns a life with 8 processors and some GPUs.
fn with_gpus(gpus: u64) -> Life {
    let mut life = Life::new(8, 8);
    set_gpus(&mut life, gpus);
    life.begin(1, &Absence::default());
    life
}

fn set_gpus(life: &mut Life, gpus: u64) {
    let amount = Resources::cpus(8).with(Kind::Memory, 1000).with(Kind::Gpus, gpus);
    life.setup.queues[0].pool = Calendar::constant(amount);
    life.setup.gpus = gpus;
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
    let counted = |life: &mut Life, types: [&str; 2]| {
        let groups = types.into_iter().zip(0..).map(|(name, index)| group(name, &[index])).collect();
        life.setup.queues[0].gpus = Some(Arc::new(QueueGpus { groups, by_class: false }));
        life.begin(1, &Absence::default());
    };
    counted(&mut life, ["t4", "a100"]);
    refused(&mut life, typed("a100", 1), "has t4, a100, and a job gets any of them");
    refused(&mut life, typed("h100", 1), "there is t4, a100");
    counted(&mut life, ["a100-3g.40gb", "a100"]);
    refused(&mut life, typed("a100", 1), "a job gets any of them");
    counted(&mut life, ["a100-sxm4-80gb", "a100"]);
    refused(&mut life, typed("a10", 1), "there is a100-sxm4-80gb, a100");
    refused(&mut life, typed("a100", 0), "requests no GPUs");
    let job = life.submit(3, typed("a100", 2));
    assert_eq!(launched(&life, job), Some(vec![0, 1]));
    assert_eq!(life.job(3, job).gpu_type.as_deref(), Some("a100"));
    let waiting = life.submit(4, gpu_job(1, 20));
    let changes = Modification { gpu_type: Some("h100".to_owned()), ..Modification::default() };
    let change = DaemonRequest::Modify { job: waiting, changes: Box::new(changes), move_promises: false };
    assert!(life.ask(5, change).unwrap_err().message.contains("there is a100"));
}

/// Returns GPUs of a type.
fn group(name: &str, indexes: &[u32]) -> GpuGroup {
    let indexes = indexes.to_vec();
    GpuGroup { name: name.to_owned(), memory: None, part_of: None, shares: false, parts: 1, indexes }
}

/// Two GPUs of type t4 with 16 GiB, given in shares; two of type a100.
pub(crate) fn two_types() -> Vec<GpuGroup> {
    let t4 = GpuGroup { memory: Some(16 << 20), shares: true, ..group("t4", &[0, 2]) };
    vec![t4, GpuGroup { memory: Some(80 << 20), ..group("a100", &[1, 3]) }]
}

/// Returns a life with four GPUs, which a policy plans by class.
pub(crate) fn classed(policy: &str, groups: Vec<GpuGroup>) -> Life {
    let mut life = with_gpus(4);
    life.setup.queues[0].policy = policy.parse().unwrap();
    set_classes(&mut life, groups);
    life.begin(1, &Absence::default());
    life
}

/// Returns a life as that of `miser` with two types of GPUs, which goes on with the state in a journal.
pub(crate) fn of_journal(journal: MemoryJournal, second: i64) -> Life {
    let mut life = Life::unborn("miser", 8, 8, journal);
    set_gpus(&mut life, 4);
    set_classes(&mut life, two_types());
    life.begin(second, &Absence::default());
    life
}

fn set_classes(life: &mut Life, groups: Vec<GpuGroup>) {
    life.setup.queues[0].gpus = Some(Arc::new(QueueGpus { groups, by_class: true }));
}

/// A job for a share of a GPU, in GiB.
fn share(memory: u64, time: u32) -> Submission {
    Submission { gpu_memory: Some(memory << 30), memory: Some(4096), ..job(1, time) }
}

/// Submits jobs with shares and with whole GPUs, which run or wait. Three processors stay free.
pub(crate) fn submit_some(life: &mut Life) {
    let long = |submission: Submission| Submission { time: 400.0, ..submission };
    let running = [share(10, 400), share(6, 400), share(7, 400), long(typed("a100", 2)), job(1, 400)];
    let waiting = [long(typed("a100|t4", 1)), gpu_job(1, 20)];
    for submission in running.into_iter().chain(waiting) {
        life.submit(1, submission);
    }
}

#[test]
fn gpus_of_two_types_are_planned_and_given_by_type() {
    for policy in ["fcfs", "easy", "conservative", "miser"] {
        let mut life = classed(policy, two_types());
        let first = life.submit(2, typed("A100", 1));
        let second = life.submit(2, typed("t4|a100", 2));
        // One of each type is free, and no two of one.
        let third = life.submit(2, gpu_job(2, 20));
        assert_eq!(launched(&life, first), Some(vec![1]), "{policy}");
        assert_eq!(launched(&life, second), Some(vec![0, 2]), "{policy}");
        assert_eq!(launched(&life, third), None, "{policy}");
        life.end(4, first);
        assert_eq!(launched(&life, third), Some(vec![1, 3]), "{policy}");
        assert_eq!(life.job(4, third).has_gpus, [1, 3]);
    }
}

#[test]
fn a_share_is_planned_on_one_gpu() {
    let mut life = classed("conservative", two_types());
    // 10 GiB are free in sum, and 6 GiB at most on one.
    let shares = [10, 12].map(|memory| life.submit(2, share(memory, 40)));
    assert_eq!(shares.map(|job| launched(&life, job)), [Some(vec![0]), Some(vec![2])]);
    let big = life.submit(2, share(7, 20));
    let small = life.submit(3, share(6, 20));
    assert_eq!([big, small].map(|job| launched(&life, job)), [None, Some(vec![0])]);
    assert_eq!(life.job(3, big).phase, Phase::Queued);
    // A whole GPU is one without shares, and no share is on it.
    let whole = life.submit(4, typed("t4", 1));
    let other = life.submit(4, gpu_job(2, 20));
    assert_eq!([whole, other].map(|job| launched(&life, job)), [None, Some(vec![1, 3])]);
    life.end(5, shares[1]);
    assert_eq!(launched(&life, big), Some(vec![2]));
    life.begin(6, &Absence::default());
    for job in [small, shares[0], big] {
        life.end(7, job);
    }
    assert_eq!(launched(&life, whole), Some(vec![0]));
}

#[test]
fn a_request_that_no_gpu_meets_is_refused_in_words() {
    let mut life = classed("easy", two_types());
    for (submission, field, says) in [
        (typed("h100", 1), "gpu_type", "there is t4, a100"),
        (typed("a100", 3), "gpus", "queue batch has fewer of one type; it has t4:2, a100:2"),
        (share(17, 20), "gpu_memory", "no GPU has 17GiB of memory; the most is 16GiB"),
        (Submission { gpu_memory: Some(81 << 30), ..gpu_job(1, 20) }, "gpu_memory", "the most is 80GiB"),
        (Submission { gpu_type: Some("a100".into()), ..share(1, 20) }, "gpu_memory", "is given in shares"),
        (Submission { gpu_type: Some("a100".into()), ..job(1, 20) }, "gpu_type", "requests no GPUs"),
    ] {
        let problem = life.ask(2, DaemonRequest::Submit(submission)).unwrap_err();
        assert_eq!(
            (problem.code, problem.field.as_deref()),
            (ProblemCode::Refused, Some(field)),
            "{problem}"
        );
        assert!(problem.message.contains(says), "{problem}");
    }
    let memory = Submission { gpu_memory: Some(40 << 30), ..gpu_job(1, 20) };
    let job = life.submit(3, memory);
    assert_eq!(launched(&life, job), Some(vec![1]));
}

#[test]
fn jobs_have_their_types_under_other_gpus_or_the_old_ones_stay() {
    let mut life = classed("easy", two_types());
    let running = life.submit(2, typed("a100", 2));
    let waiting = life.submit(2, typed("a100", 1));
    let problem = |life: &mut Life| life.set_up(3).unwrap_err();
    let only = |name: &str| {
        let mut groups = two_types();
        groups[1].name = name.to_owned();
        groups
    };
    set_classes(&mut life, only("h100"));
    let found = problem(&mut life);
    assert!(found.message.contains("GPUs of type a100: there is t4, h100"), "{found}");
    set_classes(&mut life, vec![group("a100", &[0, 1]), group("t4", &[2, 3])]);
    let found = problem(&mut life);
    assert_eq!((found.code, found.job), (ProblemCode::Conflict, Some(running)));
    assert!(found.message.contains("runs on the GPUs [1, 3], which are not in queue batch"), "{found}");
    // The next daemon keeps the GPUs of the last one.
    life.begin(4, &Absence::default());
    assert!(life.ask(4, DaemonRequest::Submit(typed("t4", 1))).is_ok());
    // Other names, and another order of the classes.
    let mut groups = vec![group("a100", &[1, 3]), group("t4", &[0, 2])];
    groups[1].memory = Some(8 << 20);
    set_classes(&mut life, groups);
    life.set_up(5).unwrap();
    life.end(6, running);
    assert_eq!(launched(&life, waiting), Some(vec![1]));
}

#[test]
fn jobs_of_counted_gpus_run_on_under_classes() {
    let mut life = with_gpus(4);
    let first = life.submit(1, gpu_job(1, 20));
    let second = life.submit(1, gpu_job(2, 20));
    set_classes(&mut life, vec![group("a100", &[0, 1]), group("t4", &[2, 3])]);
    // GPUs of two types are no request that can be made.
    let problem = life.set_up(2).unwrap_err();
    assert_eq!(problem.job, Some(second), "{problem}");
    life.end(3, second);
    life.set_up(4).unwrap();
    let [third, fourth] = ["a100", "a100"].map(|name| life.submit(5, typed(name, 1)));
    assert_eq!([third, fourth].map(|job| launched(&life, job)), [Some(vec![1]), None]);
    life.end(6, first);
    assert_eq!(launched(&life, fourth), Some(vec![0]));
}

#[test]
fn queues_have_gpus_of_their_own() {
    let mut life = with_gpus(4);
    let pool =
        |gpus: u64| Calendar::constant(Resources::cpus(4).with(Kind::Memory, 500).with(Kind::Gpus, gpus));
    life.setup.queues[0].pool = pool(3);
    let mut second = life.setup.queues[0].clone();
    (second.name, second.pool) = ("second".to_owned(), pool(1));
    second.gpus = Some(Arc::new(QueueGpus { groups: vec![group("mi", &[2])], by_class: false }));
    life.setup.queues.push(second);
    set_classes(&mut life, vec![group("t4", &[0, 1]), group("a100", &[3])]);
    life.begin(1, &Absence::default());
    let job = life.submit(2, Submission { queue: Some("second".into()), ..gpu_job(1, 20) });
    assert_eq!(launched(&life, job), Some(vec![2]));
    // No GPU of a running job goes to another queue.
    life.setup.queues[1].gpus =
        Some(Arc::new(QueueGpus { groups: vec![group("t4", &[0])], by_class: false }));
    set_classes(&mut life, vec![group("t4", &[1]), group("a100", &[2, 3])]);
    let problem = life.set_up(3).unwrap_err();
    assert_eq!(problem.job, Some(job), "{problem}");
    life.end(4, job);
    life.set_up(5).unwrap();
}

/// At no time do two jobs have the same whole GPU, nor shares of more than its memory; over restarts, cancellations and requeues.
#[test]
fn no_gpu_is_given_twice_nor_above_its_memory() {
    for (round, policy) in (0..).zip(["fcfs", "easy", "conservative", "miser"]) {
        let mut life = classed(policy, two_types());
        let mut draws = (0u64..).map(|draw| miserly_core::draw(11, round, draw));
        let mut draw = |below: u64| draws.next().unwrap() % below;
        let (mut jobs, mut shared) = (vec![], 0);
        for second in 2..300 {
            match draw(4) {
                0 => jobs.push(life.submit(second, gpu_job(draw(3), 30))),
                1 => jobs.push(life.submit(second, share(1 + draw(15), 30))),
                2 => jobs.push(life.submit(second, typed(if draw(2) == 0 { "t4" } else { "a100" }, 1))),
                _ => {}
            }
            for number in jobs.clone() {
                if !matches!(life.job(second, number).phase, Phase::Running(_)) || draw(8) > 0 {
                    continue;
                }
                if draw(3) == 0 {
                    let _ = life.ask(second, DaemonRequest::Requeue { job: number, move_promises: false });
                }
                let attempt = miserly_engine::Attempt { job: number, nth: life.job(second, number).attempts };
                life.end_attempt(second, attempt);
            }
            if draw(20) == 0 {
                life.begin(second, &Absence::default());
            }
            let mut free = [16_u64 << 30, 80 << 30, 16 << 30, 80 << 30];
            let mut on_same = [0; 4];
            for number in &jobs {
                let view = life.job(second, *number);
                if matches!(view.phase, Phase::Running(_)) {
                    assert_eq!(view.has_gpus.len() as u64, view.gpus, "{view:?}");
                }
                for gpu in &view.has_gpus {
                    let gpu = *gpu as usize;
                    let memory =
                        view.gpu_memory.filter(|_| view.gpu_share).unwrap_or([16, 80][gpu % 2] << 30);
                    free[gpu] = free[gpu]
                        .checked_sub(memory)
                        .unwrap_or_else(|| panic!("{policy} at {second}: {gpu}"));
                    on_same[gpu] += 1;
                }
            }
            shared += on_same.iter().filter(|jobs| **jobs > 1).count();
        }
        assert!(shared > 0, "no GPU had two jobs under {policy}");
    }
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
fn a_resized_job_uses_its_gpus_for_the_time_of_its_window() {
    let hours = CpuHours { most: 100_000_000, days: 2 };
    let mut life = limited(Limits { gpu_hours: Some(hours), ..Limits::default() });
    life.setup.queues[0].policy = "eqspatial(quantum=0)".parse().unwrap();
    life.begin(1, &Absence::default());
    let wide = || Submission { resizable: Some(1), cpus: 8, ..gpu_job(1, 40) };
    let [first, second] = [7, 8].map(|uid| submit_as(&mut life, 1, uid, wide()).unwrap());
    assert_eq!([first, second].map(|job| launched(&life, job)), [Some(vec![0]), Some(vec![1])]);
    life.end(21, first);
    match life.ask_as(user(7), 22, DaemonRequest::Limits).unwrap() {
        DaemonReply::Limits(report) => assert!((report.limits[0].used * 3600.0 - 20.0).abs() < 0.001),
        other => panic!("{other:?}"),
    }
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
