//! GPUs: counted by the queue, given by index, never twice.

use std::collections::BTreeSet;

use miserly_api::model::{Modification, Phase, ProblemCode, Submission, WaitReason};
use miserly_core::{Calendar, Kind, Resources};
use miserly_engine::{Absence, Action, DaemonRequest};

use super::life::{Life, early, job};

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
                life.ask(second, DaemonRequest::Requeue { job: number, move_promises: false }).unwrap_or(
                    miserly_engine::DaemonReply::JobIds(miserly_api::model::JobIds { jobs: vec![] }),
                );
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
