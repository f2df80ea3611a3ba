//! Jobs on processors of their queue's own, when the configuration is another.

use miserly_api::model::{Phase, Submission};
use miserly_core::{Calendar, Kind, Resources};
use miserly_engine::{Absence, Action, Input, Queue};

use super::life::{Life, job, queue};

const SS: &str = "ss(sf=1.5, period=1s)";

/// A long job that is suspended for a short one on both processors at 10 s.
fn long_for_short() -> (Life, i64, i64) {
    let mut life = Life::of_policy(SS, 2, 2);
    let long = life.submit(1, job(2, 600));
    let short = life.submit(2, job(2, 10));
    assert!(matches!(life.job(12, long).phase, Phase::Suspended(_)));
    (life, long, short)
}

/// Returns the reason why the next daemon does not apply its configuration.
fn refused(life: &mut Life, second: i64) -> String {
    life.begin(second, &Absence::default());
    life.status(second).configuration_problem.unwrap_or_default()
}

fn half(name: &str, policy: &str) -> Queue {
    Queue { pool: Calendar::constant(Resources::cpus(1).with(Kind::Memory, 500)), ..queue(name, policy) }
}

#[test]
fn a_daemon_does_not_take_over_a_policy_that_would_never_let_a_suspended_job_go_on() {
    let (mut life, long, short) = long_for_short();
    let written = life.setup.queues[0].policy.clone();
    for other in ["easy", "tss"] {
        life.setup.queues[0].policy = other.parse().unwrap();
        let message = refused(&mut life, 14);
        let expect = format!(
            "job {long} is suspended by the policy ss of queue batch, which would be another, {other}"
        );
        assert!(message.starts_with(&expect), "{message}");
    }
    life.setup.queues[0].policy = written;
    life.begin(15, &Absence::default());
    life.end(18, short);
    assert!(matches!(life.job(19, long).phase, Phase::Running(_)), "nothing was lost");
}

#[test]
fn settings_of_a_policy_may_change_while_a_job_is_suspended_and_its_name_may_not() {
    let (mut life, long, short) = long_for_short();
    life.setup.queues[0].policy = "ss(sf=3, period=1s)".parse().unwrap();
    life.reread(13);
    life.setup.queues[0].policy = "easy".parse().unwrap();
    assert_eq!(life.set_up(14).unwrap_err().job, Some(long));
    life.end(18, short);
    assert!(matches!(life.job(19, long).phase, Phase::Running(_)));
}

#[test]
fn a_queue_that_comes_takes_no_processor_from_a_job_that_runs() {
    let mut life = Life::new(2, 2);
    life.setup.queues = vec![half("batch", "easy")];
    life.begin(1, &Absence::default());
    let runs = life.submit(2, job(1, 100));
    // The processor that runs the job would be the new queue's: it has the highest.
    life.setup.cpus = vec![0];
    life.setup.queues.push(half("s", SS));
    assert_eq!(life.set_up(3).unwrap_err().job, Some(runs));
    assert!(refused(&mut life, 4).contains("runs on processor 0, which queue s would have for itself"));
    // Another one is free for it.
    life.setup.cpus = vec![0, 1];
    life.begin(5, &Absence::default());
    let other = life.submit(6, Submission { queue: Some("s".into()), ..job(1, 10) });
    let Phase::Running(holding) = life.job(7, other).phase else { panic!("it runs") };
    assert_eq!(holding.cpus, [1]);
}

#[test]
fn queues_do_not_change_places_under_jobs_on_processors_of_their_own() {
    let mut life = Life::new(2, 2);
    life.setup.queues = vec![half("a", SS), half("b", SS)];
    life.begin(1, &Absence::default());
    let runs = life.submit(2, Submission { queue: Some("a".into()), ..job(1, 100) });
    life.setup.queues.reverse();
    assert_eq!(life.set_up(3).unwrap_err().job, Some(runs));
    assert!(refused(&mut life, 4).contains("is on processors of queue a, which would have others"));
    life.setup.queues.reverse();
    life.begin(5, &Absence::default());
}

#[test]
fn a_policy_that_names_processors_is_not_taken_over_for_jobs_whose_processors_it_does_not_know() {
    for (before, after) in [("easy", SS), (SS, "easy")] {
        let mut life = Life::of_policy(before, 2, 2);
        let [first, second] = [1, 2].map(|at| life.submit(at, job(1, 100)));
        life.end(3, first);
        life.setup.queues[0].policy = after.parse().unwrap();
        let message = refused(&mut life, 4);
        assert!(message.starts_with(&format!("job {second} is on processors of queue batch")), "{message}");
    }
}

#[test]
fn a_pool_that_is_another_lacks_nothing_that_the_one_before_it_lacked() {
    let mut life = Life::of_policy("easy", 2, 4);
    life.turn(1, vec![Input::Online(vec![0])]);
    assert_eq!(life.status(2).queues[0].cpus, 1);
    // Nobody says what is online now.
    life.begin(3, &Absence::default());
    assert_eq!(life.status(4).queues[0].cpus, 1, "it is the same pool");
    life.setup.cpus = vec![0, 1, 2];
    life.setup.queues[0].pool = Calendar::constant(Resources::cpus(3).with(Kind::Memory, 1000));
    life.begin(5, &Absence::default());
    assert_eq!(life.status(6).queues[0].cpus, 3);
}

/// The resumption is unknown, so only the remaining time holds.
#[test]
fn a_suspended_job_is_told_what_is_left_of_its_window() {
    let (life, long, _) = long_for_short();
    let actions = life.actions(long);
    let [.., Action::Stop, Action::EndIfOrphaned { left, .. }] = &actions[..] else { panic!("{actions:?}") };
    assert!((590..600).contains(&(left.ticks() / 1_000_000)), "{left:?}");
}

fn cpus_of(life: &mut Life, second: i64, job: i64) -> Vec<u32> {
    match life.job(second, job).phase {
        Phase::Running(holding) => holding.cpus,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_processor_that_is_lost_under_a_job_is_nobody_elses_until_it_ends() {
    let mut life = Life::of_policy(SS, 2, 2);
    let [first, second, waits] = [1, 2, 3].map(|at| life.submit(at, job(1, 100)));
    life.turn(5, vec![Input::Online(vec![0])]);
    life.end(6, first);
    assert!(matches!(life.job(7, waits).phase, Phase::Queued), "one processor is left, and a job runs on it");
    assert_eq!(cpus_of(&mut life, 8, second), [0]);
    life.begin(9, &Absence::default());
    life.end(10, second);
    assert_eq!(cpus_of(&mut life, 11, waits), [0]);
}

#[test]
fn whichever_processor_is_lost_jobs_are_on_those_that_are_left() {
    let mut life = Life::of_policy(SS, 2, 2);
    let first = life.submit(1, job(1, 100));
    life.actions(first);
    life.turn(2, vec![Input::Online(vec![1])]);
    let actions = life.actions(first);
    assert!(matches!(&actions[..], [Action::Move(cpus)] if *cpus == [1]), "{actions:?}");
    life.end(3, first);
    let next = life.submit(4, job(1, 100));
    assert_eq!(cpus_of(&mut life, 5, next), [1]);
    // Its number is that of the processor that comes back; it is on the other.
    life.turn(6, vec![Input::Online(vec![0, 1])]);
    let other = life.submit(7, job(1, 100));
    assert_eq!(cpus_of(&mut life, 8, other), [0]);
}

#[test]
fn a_suspended_job_whose_processor_is_lost_goes_on_on_another() {
    let mut life = Life::of_policy(SS, 2, 2);
    let [gone, long] = [1, 2].map(|at| life.submit(at, job(1, 600)));
    assert_eq!(cpus_of(&mut life, 3, long), [1]);
    life.end(4, gone);
    let wide = life.submit(5, job(2, 10));
    assert!(matches!(life.job(15, long).phase, Phase::Suspended(_)));
    life.turn(16, vec![Input::Online(vec![0])]);
    life.end(17, wide);
    assert_eq!(cpus_of(&mut life, 18, long), [0]);
}
