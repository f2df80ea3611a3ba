//! The rules of a backfilling policy, as data.
//!
//! A rule about which jobs may start at all is a policy of its own; see
//! `crates/run/examples/first_policy.rs`.

use miserly_core::Span;

use crate::predict::{Book, PredictionRules};
use crate::shared::Order;

/// The jobs that have a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReservationDepth {
    /// The first jobs of the queue, up to this number: with 1, EASY backfilling.
    First(usize),
    /// Every job.
    All,
    /// The jobs whose expansion factor is at least this number of millionths: selective reservations. The
    /// factor is (wait + estimate) / estimate, so it grows with time.
    Xfactor(u64),
}

impl ReservationDepth {
    /// Returns the depth with this threshold of the expansion factor. More than six decimals are rounded.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no expansion factor is below 1, and a cast saturates"
    )]
    pub fn xfactor(threshold: f64) -> ReservationDepth {
        ReservationDepth::Xfactor((threshold * 1e6).round() as u64)
    }

    /// Whether a further job gets a reservation, beside this number of them.
    pub(super) fn exceeds(self, made: usize) -> bool {
        match self {
            ReservationDepth::First(most) => made < most,
            ReservationDepth::All | ReservationDepth::Xfactor(_) => true,
        }
    }

    /// Whether a job that waited this long may have a reservation. Compared exactly.
    pub(super) fn entitles(self, wait: Span, planned: Span) -> bool {
        let ReservationDepth::Xfactor(millionths) = self else { return true };
        let [wait, planned] = [wait, planned].map(|span| i128::from(span.ticks()));
        (wait + planned) * 1_000_000 >= i128::from(millionths) * planned
    }

    /// Whether a job without a reservation may stand before one that has one.
    pub(super) fn is_selective(self) -> bool {
        matches!(self, ReservationDepth::Xfactor(_))
    }

    /// Whether the first jobs of the queue have one.
    pub(super) fn is_first(self) -> bool {
        matches!(self, ReservationDepth::First(_))
    }

    pub(super) fn is_one_at_most(self) -> bool {
        matches!(self, ReservationDepth::First(0 | 1))
    }
}

/// The rules of a policy of the backfill family. Each policy is one value of this type.
///
/// ```
/// use miserly_policies::backfill::{BackfillRules, ReservationDepth};
/// use miserly_policies::{Criterion, Order};
///
/// let easy = BackfillRules::recomputed(Order::ARRIVAL, ReservationDepth::First(1));
/// let easy_sjbf = BackfillRules { candidate_order: Order::by(Criterion::Shortest), ..easy };
/// let conservative = BackfillRules::kept(Order::ARRIVAL);
/// assert!(conservative.keep_reservations && !easy_sjbf.keep_reservations);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BackfillRules {
    /// The order of the queue. Kept reservations are compressed in it.
    pub order: Order,
    /// The order in which jobs without a reservation are tried. Kept reservations have no use for it.
    pub candidate_order: Order,
    /// The jobs that have a reservation.
    pub depth: ReservationDepth,
    /// Whether reservations are kept between passes, and moved earlier only. Then every job has one.
    pub keep_reservations: bool,
    /// Whether a head that has a recomputed reservation stays the head.
    pub hold_head: bool,
    /// How far ahead the end of a kept reservation may lie when it is made. A job without such a place is refused.
    pub horizon: Option<Span>,
    /// The promised wait, in units of the wait that conservative backfilling would promise. With it, kept
    /// reservations may move later within the promise, and jobs start in the order of the queue.
    pub guarantee: Option<u32>,
    /// The wait after which a job goes to the head of the queue, in units of the wait that it would be promised by
    /// conservative backfilling if that scheduled all jobs. Reservations are then recomputed.
    pub late_after: Option<u32>,
    /// The rules of predicted runtimes. `None`: jobs are planned by their estimates.
    pub predictions: Option<PredictionRules>,
}

impl BackfillRules {
    /// Returns the rules with reservations that are recomputed at every pass.
    pub fn recomputed(order: Order, depth: ReservationDepth) -> BackfillRules {
        BackfillRules {
            candidate_order: order.clone(),
            order,
            depth,
            keep_reservations: false,
            hold_head: false,
            horizon: None,
            guarantee: None,
            late_after: None,
            predictions: None,
        }
    }

    /// Returns the rules with a kept reservation for every job.
    pub fn kept(order: Order) -> BackfillRules {
        let depth = ReservationDepth::All;
        BackfillRules { keep_reservations: true, ..BackfillRules::recomputed(order, depth) }
    }

    /// Whether plans use predictions, so that no promise could be kept.
    pub fn plans_by_predictions(&self) -> bool {
        self.predictions.is_some_and(|rules| rules.book != Book::Requested)
    }

    /// Whether the head is promised its reserved start: only where no job can be inserted before the head, as late
    /// jobs can.
    pub(super) fn promises_head(&self) -> bool {
        let keeps_head = self.hold_head || self.order.is_arrival();
        matches!(self.depth, ReservationDepth::First(_)) && keeps_head && self.late_after.is_none()
    }

    /// Whether a guard limits the delay of the head.
    pub(super) fn guards_head(&self) -> bool {
        self.predictions.is_some_and(|rules| rules.book == Book::Guarded)
    }

    /// Whether one of the orders depends on the number of jobs that passed a job.
    pub(super) fn counts_bypasses(&self) -> bool {
        self.order.counts_bypasses() || self.candidate_order.counts_bypasses()
    }

    /// Returns the half-life of usage, if one of the orders depends on the usage of users.
    pub(super) fn usage_half_life(&self) -> Option<Span> {
        self.order.usage_half_life().or(self.candidate_order.usage_half_life())
    }
}
