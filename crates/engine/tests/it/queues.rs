//! Queues that are in the configuration no longer.

use miserly_api::model::Submission;
use miserly_core::{Calendar, Kind, Resources};
use miserly_engine::{Absence, Queue};

use super::life::{Life, job, queue, wall};

/// A life with a queue that goes while a job of it is kept back.
#[track_caller]
fn check(kept_back: Submission) {
    let mut life = Life::new(2, 2);
    let pool = || Calendar::constant(Resources::cpus(1).with(Kind::Memory, 500));
    life.setup.queues[0].pool = pool();
    life.setup.queues.push(Queue { pool: pool(), ..queue("old", "easy") });
    life.begin(1, &Absence::default());
    let number = life.submit(2, Submission { queue: Some("old".into()), ..kept_back });
    life.setup.queues.pop();
    life.begin(4, &Absence::default());
    let message = life.status(4).configuration_problem.unwrap_or_default();
    assert!(message.contains(&format!("job {number} is in queue \"old\", which is gone")), "{message}");
}

#[test]
fn a_queue_does_not_go_while_a_job_waits_for_its_begin() {
    check(Submission { begin: Some(wall(20)), ..job(1, 10) });
}

#[test]
fn a_queue_does_not_go_while_a_job_is_held() {
    check(Submission { hold: true, ..job(1, 10) });
}
