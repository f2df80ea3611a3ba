//! Selective reservations: only jobs that have waited long for their length have one.
//!
//! The expansion factor of a waiting job is (wait + estimate) / estimate. The wait is the time since its
//! submission. The estimate is that of the plan, at least one tick. A job is entitled to a reservation once its
//! factor reaches the threshold. It stays entitled, because the factor only grows.
//!
//! # Definition
//! A pass has two steps:
//! 1. The entitled jobs, in the order of the queue. A job that fits now, beside the running jobs and the
//!    reservations of this pass, starts. Any other gets the earliest start beside them as its reservation.
//! 2. The other jobs, in the order of the queue. A job that fits now, beside the running jobs and all
//!    reservations, starts.
//!
//! Reservations are recomputed at every pass, and none is promised. An entitled job can be delayed by one that
//! stands before it and becomes entitled later.
//!
//! Entitlement is looked at in passes, and passes follow events. A job that becomes entitled between two events
//! asks for no pass, because it fits no sooner. Its reservation may push that of a third job back, so that a
//! fourth one fits: that one waits for the next event. No job waits for ever: on an idle machine the first job
//! of the first step starts, or of the second if no job is entitled.
//!
//! # Limits
//! With threshold 1 every job is entitled: conservative backfilling with recomputed reservations. With `inf` no
//! job is: each starts as soon as it fits, and wide jobs may starve.
//!
//! # Choices
//! The rule and the measure are those of the paper. These are choices of this implementation: reservations are
//! recomputed and not kept, entitled jobs come before all others in a pass, and one threshold holds for all jobs
//! and all times.

use super::{Point, QUEUE_ORDER};
use crate::backfill::{BackfillRules, ReservationDepth};
use crate::predict;
use crate::registry::{Needs, ParamReader, Params, PolicyDescriptor, PolicyError};

/// `selective-backfill`.
pub static SELECTIVE_BACKFILL: PolicyDescriptor = PolicyDescriptor {
    name: "selective-backfill",
    title: "selective reservations: a job gets a reservation once its expansion factor reaches a threshold",
    paper: "Srinivasan, Kettimuthu, Subramani, Sadayappan: Selective Reservation Strategies for Backfill Job \
        Scheduling, JSSPP 2002",
    promises: "nothing",
    needs: Needs { calendar: true, devices: true, ..Needs::NONE },
    spellings: &[],
    examples: &[],
    read,
};

fn read(params: &mut ParamReader<'_>) -> Result<Box<dyn Params>, PolicyError> {
    let depth = params.number_or(
        "threshold",
        (1.0, ReservationDepth::xfactor),
        &[("inf", ReservationDepth::First(0), "no job has a reservation")],
        "2",
        "a job has a reservation once (wait + estimate) / estimate is at least this",
    )?;
    let order = params.order("order", "arrival", QUEUE_ORDER)?;
    let order = params.order_settings()?.apply(order);
    let predictions = predict::read(params, false)?;
    let rules = BackfillRules { predictions, ..BackfillRules::recomputed(order, depth) };
    Ok(Box::new(Point { name: "selective-backfill", rules }))
}

#[cfg(test)]
mod tests {
    use miserly_core::Span;

    use super::*;

    #[track_caller]
    fn check(threshold: f64, wait: i64, planned: i64, expect: bool) {
        let [wait, planned] = [wait, planned].map(Span::from_ticks);
        assert_eq!(ReservationDepth::xfactor(threshold).entitles(wait, planned), expect);
    }

    #[test]
    fn the_threshold_is_compared_exactly() {
        check(1.0, 0, i64::MAX, true);
        check(2.0, 9, 10, false);
        check(2.0, 10, 10, true);
        check(1.1, 1, 10, true);
        check(1.1, 99_999_999_999, 1_000_000_000_000, false);
        check(1.1, 100_000_000_000, 1_000_000_000_000, true);
        // A difference below the digits of a float.
        check(2.0, i64::MAX - 1, i64::MAX, false);
        check(2.0, i64::MAX, i64::MAX, true);
    }
}
