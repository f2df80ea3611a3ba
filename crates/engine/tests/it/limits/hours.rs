//! Processor time within a period.

use miserly_api::model::{Exit, Failure, KilledBy, LimitUse};
use miserly_engine::{Absence, Attempt, AttemptOutcome, CpuHours, DaemonRequest, Input, Limits};

use super::{ANN, BOB, EVE, course, daemon, refused, report, runs, submit, user};
use crate::life::{Life, job, seconds, wall};

/// Returns the only limit that applies to the jobs of a user.
fn only_limit(life: &mut Life, second: i64, uid: u32) -> LimitUse {
    let [limit] = &report(life, second, uid).limits[..] else { panic!("more limits, or none") };
    limit.clone()
}

/// Returns a limit in processor-seconds.
fn within(most: i64, days: u32) -> Limits {
    Limits { cpu_hours: Some(CpuHours { most: most * 1_000_000, days }), ..Limits::default() }
}

/// A day of the engine, in seconds.
const DAY: i64 = 86_400;

#[test]
fn processor_time_counts_from_the_end_of_a_window_for_the_period() {
    let mut life = daemon(Limits::default(), vec![course(true, within(1000, 2))]);
    let first = submit(&mut life, 10, ANN, job(4, 200)).unwrap();
    refused(
        submit(&mut life, 11, BOB, job(1, 300)),
        &["0.31 hours", "0.00 hours of it used", "course.cpu-hours is 0.27"],
    );
    life.end(110, first);
    let limit = only_limit(&mut life, 111, BOB);
    // The round of the submission was a tick later than the request.
    assert!((limit.used * 3600.0 - 400.0).abs() < 0.001 && limit.together, "{limit:?}");
    assert_eq!((limit.unfinished, limit.days, limit.less_at), (Some(0.0), Some(2), Some(wall(2 * DAY))));
    refused(submit(&mut life, 112, BOB, job(1, 601)), &["0.11 hours of it used in the last 2 days"]);
    let second = submit(&mut life, 113, BOB, job(1, 599)).unwrap();
    refused(submit(&mut life, 114, ANN, job(1, 2)), &["course.cpu-hours"]);
    // Counters outlive the daemon.
    life.begin(115, &Absence::default());
    refused(submit(&mut life, 116, ANN, job(1, 2)), &["course.cpu-hours"]);
    life.end(213, second);
    let used = |life: &mut Life, second: i64| only_limit(life, second, EVE).used * 3600.0;
    assert!((used(&mut life, 2 * DAY - 5) - 500.0).abs() < 0.001);
    assert!(used(&mut life, 2 * DAY + 5) < 0.001, "two days later it counts no more");
    submit(&mut life, 2 * DAY + 6, ANN, job(5, 200)).unwrap();
}

#[test]
fn each_attempt_that_ran_counts_and_requeue_heeds_the_limit() {
    let mut life = daemon(within(1000, 30), vec![]);
    let first = submit(&mut life, 10, ANN, job(4, 200)).unwrap();
    let requeue = || DaemonRequest::Requeue { job: first, move_promises: true };
    life.ask_as(user(ANN), 40, requeue()).unwrap();
    let outcome = AttemptOutcome::Ended { at: seconds(41), exit: Exit::Signal(15), by: Some(KilledBy::User) };
    life.turn(41, vec![Input::AttemptEnded(Attempt { job: first, nth: 1 }, outcome)]);
    let limit = only_limit(&mut life, 42, ANN);
    assert!((limit.used * 3600.0 - 124.0).abs() < 0.001, "{limit:?}");
    assert_eq!(limit.unfinished.map(|hours| (hours * 3600.0).round()), Some(800.0));
    // 124 and 800, and this attempt would add at least 80.
    refused(life.ask_as(user(ANN), 65, requeue()), &["user-limits.cpu-hours"]);
    assert!(runs(&mut life, 65, first));
    // An attempt whose command never ran counts nothing.
    let never = submit(&mut life, 66, BOB, job(1, 10)).unwrap();
    let why = Failure::Program;
    let outcome = AttemptOutcome::Failed { at: seconds(70), why, message: "no".into() };
    life.turn(70, vec![Input::AttemptEnded(Attempt { job: never, nth: 1 }, outcome)]);
    assert!(only_limit(&mut life, 71, BOB).used < 1e-9);
}

#[test]
fn a_window_whose_end_could_not_be_stored_counts_once() {
    let mut life = daemon(within(1000, 30), vec![]);
    let number = submit(&mut life, 10, ANN, job(4, 200)).unwrap();
    life.journal.set_full(true);
    life.end(20, number);
    life.turn(21, vec![]);
    assert!(only_limit(&mut life, 21, ANN).used < 1e-9, "nothing is durable yet");
    life.journal.set_full(false);
    life.turn(23, vec![]);
    let limit = only_limit(&mut life, 23, ANN);
    assert!((limit.used * 3600.0 - 40.0).abs() < 0.001 && limit.unfinished == Some(0.0), "{limit:?}");
}

#[test]
fn a_job_that_a_shutdown_ended_counts_until_its_end_and_no_longer_than_until_now() {
    for (end, counted) in [(30, 80.0), (7000, 200.0)] {
        let mut life = daemon(within(1000, 30), vec![]);
        let job = submit(&mut life, 10, ANN, job(4, 200)).unwrap();
        let by = Some(KilledBy::Shutdown);
        let outcome = AttemptOutcome::Ended { at: seconds(end), exit: Exit::Signal(15), by };
        let ended = vec![(Attempt { job, nth: 1 }, outcome)];
        life.begin(60, &Absence { ended, ..Absence::default() });
        let limit = only_limit(&mut life, 61, ANN);
        assert!((limit.used * 3600.0 - counted).abs() < 0.001, "an end at {end}: {limit:?}");
    }
}
