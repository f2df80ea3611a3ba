//! The points of the backfill family that entries name, and how each is built.

use miserly_core::{Machine, Policy};

use crate::backfill::family::{Anew, Backfilling, Depth, Kept};
use crate::backfill::{Conservative, Easy, Replanned};
use crate::shared::Order;

/// Who has a reservation.
pub(super) enum Reservations {
    /// The first so many jobs of the queue, made anew at each pass.
    First(usize),
    /// Every job, made anew at each pass.
    All,
    /// Every job, kept.
    Kept,
}

/// A point of the backfill family.
pub(super) struct Point {
    pub(super) order: Order,
    pub(super) backfill: Order,
    pub(super) reservations: Reservations,
    /// Whether a head that has a reservation is kept at the head.
    pub(super) hold: bool,
}

impl Point {
    /// One order for the queue and for those who pass its head.
    pub(super) fn of(order: Order, reservations: Reservations, hold: bool) -> Point {
        Point { backfill: order.clone(), order, reservations, hold }
    }

    /// The policy for a machine of its own: the fast one, where there is nothing but processors to count.
    pub(super) fn alone(self, name: &'static str, machine: &Machine) -> Box<dyn Policy> {
        let counts = self.order.counts_bypasses() || self.backfill.counts_bypasses();
        if !machine.is_plain() || counts {
            return self.within(name, machine);
        }
        match self.reservations {
            Reservations::First(1) => Box::new(Easy::new(self.order, self.backfill).holding(self.hold)),
            Reservations::First(_) => self.within(name, machine),
            Reservations::All => Box::new(Replanned::new(self.order)),
            Reservations::Kept => Box::new(Conservative::new(self.order)),
        }
    }

    /// The policy to run within another one, or on hosts.
    pub(super) fn within(self, name: &'static str, machine: &Machine) -> Box<dyn Backfilling> {
        let depth = match self.reservations {
            Reservations::Kept => return Box::new(Kept::named(name, machine, self.order)),
            Reservations::First(jobs) => Depth::First(jobs),
            Reservations::All => Depth::All,
        };
        let anew = Anew::new(name, machine, self.order, depth);
        Box::new(anew.backfilling(self.backfill).holding(self.hold))
    }
}
