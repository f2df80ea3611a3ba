//! Processors that go offline, and come back.

use miserly_api::model::{Phase, PromiseChangeReason, WaitReason};
use miserly_engine::{Absence, Action, DaemonReply, DaemonRequest, Input};

use super::life::{CLEANUP, Life, job};

/// Two jobs that run, until 100 s on processor 0 and until 50 s on processor 1, and one that waits for the second.
fn two_and_one() -> (Life, [i64; 3]) {
    let mut life = Life::new(2, 2);
    let jobs = [(1, 99), (1, 49), (1, 20)].map(|(cpus, time)| life.submit(1, job(cpus, time)));
    (life, jobs)
}

fn start(life: &mut Life, second: i64, job: i64) -> i64 {
    Life::second(life.job(second, job).promise.expect("miser promises").now.unwrap().start)
}

#[test]
fn a_promise_that_counts_on_a_lost_processor_is_at_risk_until_it_is_late() {
    let (mut life, [long, short, waits]) = two_and_one();
    assert_eq!(start(&mut life, 5, waits), 50 + CLEANUP);
    life.turn(10, vec![Input::Online(vec![0])]);
    let promise = life.job(11, waits).promise.expect("it has another promise");
    assert_eq!(Life::second(promise.now.unwrap().start), 100 + CLEANUP);
    assert_eq!(promise.at_risk.map(|risk| risk.why), Some(PromiseChangeReason::Capacity));
    assert_eq!(promise.history.last().map(|change| change.why), Some(PromiseChangeReason::Capacity));
    let status = life.status(12);
    assert_eq!((status.at_risk, status.queues[0].cpus), (1, 1));
    // What ran goes on, and nobody gets the processor that is not there.
    assert!([long, short].iter().all(|job| matches!(life.job(13, *job).phase, Phase::Running(_))));
    life.end(40, short);
    let view = life.job(41, waits);
    assert_eq!(view.phase, Phase::Queued);
    assert!(
        matches!(view.reasons[..], [WaitReason::Resources { ref kind, .. }] if kind == "cpus"),
        "{view:?}"
    );
    life.end(60, long);
    assert!(matches!(life.job(61, waits).phase, Phase::Running(_)));
    assert!(life.job(62, waits).late.is_some_and(|late| late.why == PromiseChangeReason::Capacity));
}

#[test]
fn when_it_comes_back_promises_move_earlier() {
    let (mut life, [_, short, waits]) = two_and_one();
    life.turn(10, vec![Input::Online(vec![0])]);
    life.turn(20, vec![Input::Online(vec![0, 1])]);
    assert_eq!(start(&mut life, 21, waits), 50 + CLEANUP);
    let history = life.job(22, waits).promise.expect("miser promises").history;
    let why: Vec<PromiseChangeReason> = history.iter().map(|change| change.why).collect();
    assert_eq!(
        why,
        [PromiseChangeReason::Submitted, PromiseChangeReason::Capacity, PromiseChangeReason::Earlier]
    );
    assert_eq!(life.unkept(23), 0, "the plan came back in time");
    life.end(30, short);
    let Phase::Running(holding) = life.job(31, waits).phase else { panic!("it runs") };
    assert_eq!(holding.cpus, [1]);
    assert!(life.job(32, waits).late.is_none());
}

#[test]
fn a_job_on_a_lost_processor_moves_to_a_free_one() {
    let mut life = Life::new(2, 2);
    let number = life.submit(1, job(1, 99));
    life.actions(number);
    life.turn(10, vec![Input::Online(vec![1])]);
    let actions = life.actions(number);
    assert!(matches!(&actions[..], [Action::Move(cpus)] if *cpus == [1]), "{actions:?}");
    // Its processor is nobody else's, and the lost one is not given to anybody.
    let next = life.submit(11, job(1, 10));
    assert_eq!(start(&mut life, 12, next), 100 + CLEANUP);
}

#[test]
fn who_needs_what_is_gone_waits_for_it() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, job(1, 9));
    let wide = life.submit(1, job(2, 10));
    life.turn(5, vec![Input::Online(vec![0])]);
    life.end(8, first);
    let view = life.job(20, wide);
    assert!(
        matches!(view.phase, Phase::Queued) && view.promise.is_some_and(|promise| promise.at_risk.is_some())
    );
    life.turn(30, vec![Input::Online(vec![0, 1])]);
    assert!(matches!(life.job(31, wide).phase, Phase::Running(_)));
}

#[test]
fn what_is_gone_is_gone_after_the_configuration_was_read_again_and_for_the_next_daemon() {
    let (mut life, [.., waits]) = two_and_one();
    life.turn(10, vec![Input::Online(vec![0])]);
    let moved = start(&mut life, 11, waits);
    life.reread(12);
    assert_eq!((life.status(13).queues[0].cpus, start(&mut life, 13, waits)), (1, moved));
    life.begin(14, &Absence::default());
    assert_eq!((life.status(15).queues[0].cpus, start(&mut life, 15, waits)), (1, moved));
    life.turn(20, vec![Input::Online(vec![0, 1])]);
    assert_eq!(life.status(21).queues[0].cpus, 2);
}

#[test]
fn a_job_that_starts_before_its_pool_has_shrunk_is_somewhere() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, job(2, 9));
    let next = life.submit(1, job(2, 9));
    life.end(8, first);
    life.actions(next);
    // Both came to be known at once, and the start was due before.
    life.turn(9, vec![Input::Online(vec![1])]);
    let actions = life.actions(next);
    assert!(matches!(&actions[..], [Action::Move(cpus)] if *cpus == [1]), "{actions:?}");
}

/// Returns the processors of each queue by number, and those that are offline.
fn numbers(life: &mut Life, second: i64) -> Vec<(Vec<u32>, Vec<u32>)> {
    let DaemonReply::Pools(pools) = life.ask(second, DaemonRequest::Pools).expect("the pools") else {
        panic!("pools were asked for")
    };
    pools.pools.into_iter().map(|pool| (pool.cpu_numbers, pool.cpus_offline)).collect()
}

#[test]
fn the_only_queue_knows_its_processors_by_number() {
    let mut life = Life::new(2, 2);
    assert_eq!(numbers(&mut life, 1), [(vec![0, 1], vec![])]);
    life.turn(10, vec![Input::Online(vec![1])]);
    assert_eq!(numbers(&mut life, 11), [(vec![0, 1], vec![0])]);
    life.reread(14);
    assert_eq!(numbers(&mut life, 15), [(vec![0, 1], vec![0])]);
    life.turn(20, vec![Input::Online(vec![0, 1])]);
    assert_eq!(numbers(&mut life, 21), [(vec![0, 1], vec![])]);
}
