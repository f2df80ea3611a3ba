//! Questions a tick before something is due: it is played before they are.

use miserly_api::model::{Phase, Problem, ProblemCode, Submission};
use miserly_core::Time;
use miserly_engine::{Action, DaemonReply, DaemonRequest, Now};

use super::life::{Life, job, seconds, wall};
use crate::support::request;

/// The answer to a question a tick before this second, behind another one of the same turn.
fn just_before(life: &mut Life, second: i64, question: DaemonRequest) -> Result<DaemonReply, Problem> {
    let (first, _first) = request(DaemonRequest::Submit(job(1, 5)));
    let (then, answered) = request(question);
    let now = Now { ticks: Time::from_ticks(seconds(second).ticks() - 1), wall: wall(second) };
    life.turn_at(now, vec![first, then]);
    answered.try_recv().unwrap()
}

fn waits_until_twenty() -> (Life, i64) {
    let mut life = Life::new(1, 1);
    let waits = life.submit(1, Submission { begin: Some(wall(20)), ..job(1, 10) });
    (life, waits)
}

#[test]
fn a_job_that_starts_just_then_is_cancelled_as_one_that_runs() {
    let (mut life, waits) = waits_until_twenty();
    just_before(&mut life, 20, DaemonRequest::Cancel { job: waits, array: false }).unwrap();
    let actions = life.actions(waits);
    assert!(matches!(&actions[..], [Action::Launch(_), Action::Kill { .. }]), "{actions:?}");
}

#[test]
fn a_job_that_starts_just_then_cannot_be_held() {
    let (mut life, waits) = waits_until_twenty();
    let problem =
        just_before(&mut life, 20, DaemonRequest::Hold { job: waits, move_promises: false }).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Conflict);
    assert!(matches!(life.job(21, waits).phase, Phase::Running(_)));
}

#[test]
fn a_job_that_starts_just_then_is_extended_as_one_that_runs() {
    let (mut life, waits) = waits_until_twenty();
    let before = DaemonRequest::Extend { job: waits, by: 1.0 };
    assert!(just_before(&mut life, 20, before).is_err(), "the promise to the first would break");
    assert!(matches!(life.actions(waits)[..], [Action::Launch(_)]));
}
