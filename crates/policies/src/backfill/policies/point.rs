//! The points of the backfill family, and the policy of each.

use miserly_core::{Machine, Policy};

use crate::backfill::family::{Anew, Backfilling, Depth, Kept};
use crate::backfill::{Conservative, Easy, Replanned};
use crate::registry::{Params, Promises};
use crate::shared::Order;

/// The jobs that have a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reservations {
    /// This many jobs at the head of the queue. The reservations are recomputed at each pass.
    First(usize),
    /// Every job. The reservations are recomputed at each pass.
    All,
    /// Every job. The reservations are kept.
    Kept,
}

/// A point of the backfill family: the rules of a backfill policy.
#[derive(Clone, Debug)]
pub struct Point {
    /// The name of the policy.
    pub name: &'static str,
    /// The order of the queue.
    pub order: Order,
    /// The order of the candidates for backfilling.
    pub backfill: Order,
    /// The jobs that have a reservation.
    pub reservations: Reservations,
    /// A head that has a reservation stays the head.
    pub hold_head: bool,
}

impl Point {
    /// Returns a point with one order for the queue and for the candidates.
    pub fn new(name: &'static str, order: Order, reservations: Reservations, hold_head: bool) -> Point {
        Point { name, backfill: order.clone(), order, reservations, hold_head }
    }

    /// Makes the policy that runs within another one, or on hosts.
    pub fn inner(self, machine: &Machine) -> Box<dyn Backfilling> {
        let depth = match self.reservations {
            Reservations::Kept => return Box::new(Kept::named(self.name, machine, self.order)),
            Reservations::First(jobs) => Depth::First(jobs),
            Reservations::All => Depth::All,
        };
        let anew = Anew::new(self.name, machine, self.order, depth);
        Box::new(anew.backfilling(self.backfill).holding(self.hold_head))
    }
}

impl Params for Point {
    /// Makes the policy: the fast one, where the machine has nothing but processors to count.
    fn build(&self, machine: &Machine) -> Box<dyn Policy> {
        let point = self.clone();
        let counts = self.order.counts_bypasses() || self.backfill.counts_bypasses();
        if !machine.is_plain() || counts {
            return point.inner(machine);
        }
        match self.reservations {
            Reservations::First(1) => {
                Box::new(Easy::new(point.order, point.backfill).holding(self.hold_head))
            }
            Reservations::First(_) => point.inner(machine),
            Reservations::All => Box::new(Replanned::new(point.order)),
            Reservations::Kept => Box::new(Conservative::new(point.order)),
        }
    }

    fn promises(&self) -> Promises {
        match self.reservations {
            Reservations::Kept => Promises::EveryJob,
            Reservations::First(1..) if self.hold_head || self.order.is_arrival() => Promises::Head,
            Reservations::First(_) | Reservations::All => Promises::Nothing,
        }
    }

    fn backfill(&self) -> Option<Point> {
        Some(self.clone())
    }
}
