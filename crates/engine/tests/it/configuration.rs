//! A daemon that starts with another configuration: the promises of the last one come first.

use miserly_api::model::{LostBy, Phase, Submission};
use miserly_core::{Calendar, Kind, Resources};
use miserly_engine::{Absence, Attempt, AttemptOutcome, DaemonRequest, Queue};

use super::life::{Life, job, queue, seconds, wall};

/// Returns the policy of the first queue, as `status` shows it.
fn policy(life: &mut Life, second: i64) -> String {
    life.status(second).queues[0].policy.clone()
}

/// V3 of the audit: the daemon ended with a broken rule.
#[test]
fn a_policy_that_cannot_keep_the_promises_is_not_taken_over() {
    for other in ["immediate", "immediate(policy=fcfs-backfill, quantum=30s, after=0s)", "fcfs"] {
        let mut life = Life::of_policy("conservative", 1, 1);
        let first = life.submit(1, job(1, 20));
        let second = life.submit(1, job(1, 20));
        let promised = life.job(1, second).promise.unwrap();
        life.setup.queues[0].policy = other.parse().unwrap();
        life.begin(5, &Absence::default());
        assert!(policy(&mut life, 5).starts_with("conservative"), "{other}");
        let problem = life.status(5).configuration_problem.unwrap();
        assert!(problem.contains("the promise to job 2"), "{other}: {problem}");
        assert_eq!(life.job(6, second).promise.unwrap(), promised, "{other}");
        life.end(21, first);
        assert!(matches!(life.job(22, second).phase, Phase::Running(_)), "{other}");
        // Nothing waits any more, and a reload is enough.
        life.set_up(23).unwrap_or_else(|problem| panic!("{other}: {problem}"));
        assert!(life.status(23).configuration_problem.is_none(), "{other}");
        assert!(policy(&mut life, 23).starts_with(other.split('(').next().unwrap()), "{other}");
    }
}

/// The plan of the policy before is no promise, and may have passed.
#[test]
fn a_plan_without_a_promise_is_moved_by_the_next_policy() {
    let mut life = Life::of_policy("slurm", 1, 1);
    let first = life.submit(1, job(1, 100));
    let second = life.submit(2, job(1, 20));
    life.turn(60, vec![]);
    life.setup.queues[0].policy = "conservative".parse().unwrap();
    life.set_up(61).unwrap();
    let outcome = AttemptOutcome::Lost(LostBy::Shim);
    let ended = vec![(Attempt { job: first, nth: 1 }, outcome)];
    life.begin(200, &Absence { ended, ..Absence::default() });
    assert_eq!(life.status(201).queues[0].stopped, None);
    assert!(matches!(life.job(201, second).phase, Phase::Running(_)));
}

/// A policy that cannot keep the promises, while the daemon was away past the promised start.
#[test]
fn a_promise_that_passed_meanwhile_is_broken_for_that_cause() {
    let mut life = Life::of_policy("conservative", 1, 1);
    let first = life.submit(1, job(1, 20));
    let second = life.submit(1, job(1, 20));
    life.setup.queues[0].policy = "immediate".parse().unwrap();
    let outcome =
        AttemptOutcome::Ended { at: seconds(20), exit: miserly_api::model::Exit::Code(0), by: None };
    life.begin(60, &Absence { ended: vec![(Attempt { job: first, nth: 1 }, outcome)], ..Absence::default() });
    let view = life.job(61, second);
    assert!(matches!(view.phase, Phase::Running(_)));
    assert_eq!(view.late.unwrap().why, miserly_api::model::PromiseChangeReason::Away);
}

/// EASY promises a start to the head only. It would start others past their promises.
#[test]
fn easy_takes_over_one_promise_and_not_two() {
    for jobs in [1, 2] {
        let mut life = Life::of_policy("conservative", 1, 1);
        for _ in 0..=jobs {
            life.submit(1, job(1, 20));
        }
        life.setup.queues[0].policy = "easy".parse().unwrap();
        life.begin(5, &Absence::default());
        assert_eq!(life.status(5).configuration_problem.is_none(), jobs == 1);
    }
}

/// Before, no policy would have resized it, so its user did not forbid that.
#[test]
fn a_job_that_is_not_resizable_keeps_its_processors_under_another_policy() {
    let mut life = Life::of_policy("easy", 2, 2);
    let first = life.submit(1, job(2, 20));
    life.setup.queues[0].policy = "eqspatial".parse().unwrap();
    life.begin(5, &Absence::default());
    assert!(life.status(5).configuration_problem.is_none());
    let second = life.submit(6, Submission { resizable: Some(1), ..job(2, 20) });
    assert_eq!(life.job(7, first).phase.cpus(), [(0, 1)]);
    assert!(matches!(life.job(7, second).phase, Phase::Queued));
}

/// Nobody else would take it off the machine at the end of its quantum.
#[test]
fn a_job_in_its_quantum_has_its_whole_time_under_a_policy_without_quanta() {
    let mut life = Life::of_policy("immediate(policy=fcfs-backfill, quantum=30s, after=0s)", 1, 1);
    let victim = life.submit(1, job(1, 20));
    let number = life.submit(5, job(1, 60));
    life.end(6, victim);
    life.setup.queues[0].policy = "easy".parse().unwrap();
    life.set_up(7).unwrap();
    life.actions(number);
    life.turn(40, vec![]);
    assert!(life.actions(number).is_empty(), "it is not ended");
    let Phase::Running(run) = life.job(41, number).phase else { panic!("{:?}", life.job(41, number)) };
    assert_eq!(run.end, wall(65));
}

/// V11 of the audit: the ends of that time come before the configuration.
#[test]
fn jobs_that_have_ended_hinder_no_configuration() {
    for other in ["ss", "gang(quantum=1s)"] {
        let mut life = Life::of_policy("easy", 1, 1);
        let first = life.submit(1, job(1, 20));
        life.setup.queues[0].policy = other.parse().unwrap();
        let outcome =
            AttemptOutcome::Ended { at: seconds(5), exit: miserly_api::model::Exit::Code(0), by: None };
        life.begin(
            6,
            &Absence { ended: vec![(Attempt { job: first, nth: 1 }, outcome)], ..Absence::default() },
        );
        let status = life.status(7);
        assert!(status.configuration_problem.is_none(), "{other}: {status:?}");
        assert!(status.queues[0].policy.starts_with(other.split('(').next().unwrap()));
    }
}

/// D9 of the review: a queue that is gone from the file, and has a job.
/// Its job would run before its earliest start, or before the end of the job that it waits for.
#[test]
fn a_policy_that_heeds_no_earliest_start_is_refused_while_a_job_has_one() {
    let mut life = Life::of_policy("miser", 2, 2);
    let number = life.submit(1, Submission { begin: Some(wall(50)), ..job(1, 20) });
    life.setup.queues[0].policy = queue("batch", "easy").policy;
    let problem = life.set_up(2).unwrap_err();
    let expect = format!("job {number} has an earliest start, which queue batch would not heed");
    assert_eq!(problem.message, expect);
    life.turn(51, vec![]);
    assert_eq!(life.set_up(52), Ok(()), "it runs");
}

/// A job that could never run would block a queue that starts jobs in their order.
#[test]
fn a_pool_that_is_too_small_for_a_waiting_job_is_refused() {
    for policy in ["fcfs", "easy"] {
        let mut life = Life::of_policy(policy, 2, 2);
        life.submit(1, job(1, 20));
        let wide = life.submit(2, job(2, 20));
        let narrow = |life: &mut Life| {
            life.setup.queues[0].pool = Calendar::constant(Resources::cpus(1).with(Kind::Memory, 500));
        };
        narrow(&mut life);
        let problem = life.set_up(3).unwrap_err();
        assert_eq!(problem.message, format!("job {wide} needs more than queue batch would have at any time"));
        life.ask(4, DaemonRequest::Cancel { job: wide, array: false }).unwrap();
        assert_eq!(life.set_up(5), Ok(()), "{policy}");
    }
}

#[test]
fn a_queue_with_jobs_stays_until_they_are_gone() {
    let mut life = Life::new(4, 4);
    life.setup.queues[0].pool = Calendar::constant(Resources::cpus(2).with(Kind::Memory, 500));
    let pool = Calendar::constant(Resources::cpus(2).with(Kind::Memory, 500));
    life.setup.queues.push(Queue { pool, ..queue("free", "easy") });
    life.begin(1, &Absence::default());
    let held = Submission { queue: Some("free".into()), hold: true, ..job(1, 20) };
    let held = life.submit(2, held);
    life.setup.queues.pop();
    life.begin(3, &Absence::default());
    let status = life.status(4);
    assert_eq!(status.queues.len(), 2);
    let problem = status.configuration_problem.unwrap();
    assert!(problem.contains(&format!("job {held}")) && problem.contains("\"free\""), "{problem}");
    let cancel = DaemonRequest::Cancel { job: held, array: false };
    life.ask(5, cancel).unwrap();
    life.begin(6, &Absence::default());
    assert_eq!(life.status(7).queues.len(), 1);
}
