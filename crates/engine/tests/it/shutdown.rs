//! Signs that the machine shuts down: what is late because no daemon runs has this cause.

use miserly_api::model::{Exit, PromiseChangeReason};
use miserly_engine::{Absence, Attempt, AttemptOutcome, Input};

use super::life::{Life, cause, job, seconds};

/// The machine begins to shut down at second 2, and its daemon runs until `last`. Returns the cause for which a job starts late
/// under the next daemon.
fn cause_of_delay(last: i64) -> Option<PromiseChangeReason> {
    let mut life = Life::new(1, 1);
    let runs = life.submit(1, job(1, 30));
    let waits = life.submit(1, job(1, 20));
    life.turn(2, vec![Input::ShuttingDown]);
    // The sign is stored with the next change.
    life.submit(last, job(1, 5));
    let outcome = AttemptOutcome::Ended { at: seconds(25), exit: Exit::Code(0), by: None };
    let ended = vec![(Attempt { job: runs, nth: 1 }, outcome)];
    life.begin(100, &Absence { ended, ..Absence::default() });
    cause(&life.job(101, waits))
}

#[test]
fn what_is_late_after_a_shutdown_is_late_for_that() {
    assert_eq!(cause_of_delay(3), Some(PromiseChangeReason::Shutdown));
}

/// Twice as long as launches wait.
#[test]
fn a_machine_that_is_up_after_twenty_seconds_did_not_shut_down() {
    assert_eq!(cause_of_delay(22), Some(PromiseChangeReason::Shutdown));
    assert_eq!(cause_of_delay(23), Some(PromiseChangeReason::Away));
}
