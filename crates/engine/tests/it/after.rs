//! Jobs that do not start before an instant, or before others have ended.

use miserly_api::model::{Exit, KilledBy, Phase, ProblemCode, PromiseChangeReason, Submission};
use miserly_core::{Calendar, Kind, Resources};
use miserly_engine::{Absence, Action, Attempt, AttemptOutcome, DaemonReply, DaemonRequest, Input, Queue};

use super::life::{Life, cause, early, job, queue, seconds, wall};

fn launched(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::Launch(_)))
}

#[test]
fn with_processors_idle_the_second_starts_only_when_the_first_has_ended() {
    let mut life = Life::new(2, 4);
    let first = life.submit(1, job(1, 20));
    let second = life.submit(1, Submission { after: vec![first], ..early(1, 10) });
    life.turn(5, vec![]);
    assert_eq!(life.actions(second).len(), 0);
    life.end(10, first);
    assert!(launched(&life.actions(second)), "it begins a tick after the end of the first");
    assert!(matches!(life.job(10, second).phase, Phase::Running(_)));
}

#[test]
fn nobody_runs_early_before_its_begin() {
    let mut life = Life::new(1, 2);
    life.submit(1, job(1, 30));
    let second = life.submit(1, Submission { begin: Some(wall(10)), ..early(1, 10) });
    life.turn(9, vec![]);
    assert_eq!(life.actions(second).len(), 0);
    life.turn(10, vec![]);
    assert!(matches!(life.job(10, second).phase, Phase::Opportunistic { parked: false, .. }));
}

/// The end of the first is unknown for a while. The second was promised that end, and does not start.
#[test]
fn who_waits_for_a_late_job_waits_on() {
    let mut life = Life::new(4, 4);
    let first = life.submit(1, job(1, 9));
    let second = life.submit(1, Submission { after: vec![first], ..job(1, 10) });
    let third = life.submit(1, Submission { after: vec![second], ..job(1, 10) });
    // Late, and the instant at which the third was to start is past too.
    life.turn(40, vec![]);
    for job in [second, third] {
        assert_eq!(life.actions(job).len(), 0);
        assert_eq!(life.job(41, job).phase, Phase::Queued);
    }
    assert_eq!(cause(&life.job(41, second)), Some(PromiseChangeReason::Overdue));
    // So it is in the daemon after this one.
    life.begin(42, &Absence::default());
    assert_eq!(life.actions(second).len(), 0);
    life.end(50, first);
    assert!(launched(&life.actions(second)));
    assert_eq!(life.actions(third).len(), 0);
}

fn two_queues() -> Life {
    let mut life = Life::new(4, 4);
    life.setup.queues[0].pool = Calendar::constant(Resources::cpus(2).with(Kind::Memory, 500));
    let pool = Calendar::constant(Resources::cpus(2).with(Kind::Memory, 500));
    life.setup.queues.push(Queue { pool, ..queue("free", "easy") });
    life.begin(1, &Absence::default());
    life
}

/// The first runs again, behind another one, in a queue that promises nothing.
#[test]
fn who_waits_for_a_requeued_job_waits_for_it_to_run_again() {
    let mut life = two_queues();
    let free = |job: Submission| Submission { queue: Some("free".into()), ..job };
    let first = life.submit(2, free(job(2, 50)));
    let other = life.submit(3, free(job(2, 40)));
    let second = life.submit(3, Submission { after: vec![first], ..job(1, 10) });
    life.ask(4, DaemonRequest::Requeue { job: first, move_promises: true }).unwrap();
    let exit = Exit::Signal(15);
    let killed = AttemptOutcome::Ended { at: seconds(5), exit, by: Some(KilledBy::User) };
    life.turn(5, vec![Input::AttemptEnded(Attempt { job: first, nth: 1 }, killed)]);
    assert!(matches!(life.job(6, other).phase, Phase::Running(_)));
    let view = life.job(60, second);
    assert_eq!((&view.phase, &view.after), (&Phase::Queued, &vec![first]));
    assert_eq!(cause(&view), Some(PromiseChangeReason::Amended));
    life.end(61, other);
    let view = life.job(62, second);
    assert_eq!(Life::second(view.promise.unwrap().now.unwrap().start), 61 + 50 + 1, "promised again");
    assert_eq!(life.actions(second).len(), 0);
}

/// The first ends at 32 at the latest, so its dependents cannot end by 25.
#[test]
fn an_array_after_another_job_is_accepted_as_a_whole_or_not_at_all() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, job(1, 30));
    let array = serde_json::from_str(r#"{"first":0,"last":1}"#).unwrap();
    let after = Submission { after: vec![first], array: Some(array), ..job(1, 10) };
    let late = Submission { deadline: Some(wall(25)), ..after.clone() };
    let problem = life.ask(2, DaemonRequest::Submit(late)).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Refused);
    assert!(life.ask(3, DaemonRequest::Job(first + 1)).is_err(), "nothing of it was accepted");
    assert!(life.ask(3, DaemonRequest::Submit(Submission { deadline: Some(wall(50)), ..after })).is_ok());
}

#[test]
fn a_quote_after_another_job_is_what_is_promised_then() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, job(1, 30));
    let after = Submission { after: vec![first], ..job(1, 10) };
    let Ok(DaemonReply::Quote(quote)) = life.ask(2, DaemonRequest::Quote(after.clone())) else {
        panic!("no quote")
    };
    let promised = life.submit(2, after);
    let promised = life.job(2, promised).promise.unwrap().now.unwrap();
    assert_eq!(quote.windows, [Some(promised)]);
    assert_eq!(Life::second(promised.start), 32);
}

/// The start of the first is unknown, and so is that of the other one.
#[test]
fn what_comes_after_a_held_job_is_quoted_no_window() {
    let mut life = Life::new(2, 2);
    let first = life.submit(1, Submission { hold: true, ..job(1, 30) });
    let after = Submission { after: vec![first], ..job(1, 10) };
    let Ok(DaemonReply::Quote(quote)) = life.ask(2, DaemonRequest::Quote(after)) else { panic!("no quote") };
    assert_eq!(quote.windows, [None]);
}
