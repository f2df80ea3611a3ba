//! Orders of the queue.

mod criterion;

mod priority;

mod weight;

mod bypassed;

use miserly_core::{Entry, JobNumber, Time};
use miserly_formula::{Direction, Formula};

pub use bypassed::Bypassed;
pub use criterion::{Criterion, Draw};
pub use priority::Priority;
pub use weight::Weight;

/// An order of the queue: by a criterion (Zotkin et al. §5, §6, §8) or by a formula. Ties by submit time, then by job number.
///
/// Without a weight a criterion goes by exact integers where nothing random is in it. With a weight the order
/// is starvation-free: by `value + weight * delay`, largest first, where `value` is
///
/// | criterion | value |
/// |---|---|
/// | shortest, longest | 1/r, r |
/// | narrowest, widest | 1/p, p |
/// | smallest, largest | 1/(r * p), r * p |
/// | random, random/length | u, u/r |
/// | a formula | its value; where the smallest comes first, less that |
///
/// of the estimate r in seconds, at least 1, the processors p, and a random number u in [0, 1). In the order
/// of arrival nobody is passed, so a weight changes nothing.
///
/// # No sorting again
/// All waiting jobs age alike: at any instant, `value + weight * (now - submit)` puts two jobs in the order in
/// which `value - weight * submit` does. That is what is computed, times in seconds, and it never changes. Only
/// an order that draws at every pass does, or a formula that mentions the wait ([`changes`](Order::changes)).
///
/// # Overtaking is bounded, starting is not
/// After a delay of `(v - v') / weight` no job that is submitted then gets ahead of one with value v' in the
/// queue, if its own value is at most v, and v' does not change. It may start before it all the same, in a hole that the other does not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    by: By,
    weight: Weight,
    draw: Draw,
    seed: u64,
}

/// What decides who comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    Criterion(Criterion),
    Formula(Priority),
}

/// A job's place in an order: smaller comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    primary: i64,
    submit: Time,
    number: JobNumber,
    admitted: u64,
}

impl Order {
    /// First come, first served.
    pub const ARRIVAL: Order = Order::by(Criterion::Arrival);

    /// By this criterion alone; random numbers are drawn once for each job, with seed 0.
    pub const fn by(criterion: Criterion) -> Order {
        Order { by: By::Criterion(criterion), weight: Weight::NONE, draw: Draw::Once, seed: 0 }
    }

    /// By the value of a formula.
    pub fn by_formula(priority: Priority) -> Order {
        Order { by: By::Formula(priority), ..Order::default() }
    }

    /// The formula, if it goes by one.
    pub fn formula(&self) -> Option<&Formula> {
        match &self.by {
            By::Criterion(_) => None,
            By::Formula(priority) => Some(priority.formula()),
        }
    }

    /// The same order, and this weight on the delay.
    #[must_use]
    pub fn with_weight(self, weight: Weight) -> Order {
        Order { weight, ..self }
    }

    /// The same order, with random numbers, if it has any, drawn so.
    #[must_use]
    pub fn with_draws(self, draw: Draw, seed: u64) -> Order {
        Order { draw, seed, ..self }
    }

    /// Whether nobody who comes later ever stands before anybody.
    pub fn is_arrival(&self) -> bool {
        self.by == By::Criterion(Criterion::Arrival)
    }

    /// Whether it draws random numbers.
    pub fn is_random(&self) -> bool {
        matches!(&self.by, By::Criterion(criterion) if criterion.is_random())
    }

    /// Whether keys change as time goes by, so that a queue has to be sorted again at each pass.
    pub fn changes(&self) -> bool {
        match &self.by {
            By::Criterion(criterion) => criterion.is_random() && self.draw == Draw::Pass,
            By::Formula(priority) => priority.changes(),
        }
    }

    /// Whether it goes by how many jobs have passed one.
    pub fn counts_bypasses(&self) -> bool {
        matches!(&self.by, By::Formula(priority) if priority.counts_bypasses())
    }

    /// The job's place in this order at `now`, which matters only to an order that [`changes`](Order::changes).
    pub fn key(&self, now: Time, entry: &Entry) -> Key {
        let primary = self.rank(now, entry);
        Key { primary, ..Key::arrival(entry) }
    }

    fn rank(&self, now: Time, entry: &Entry) -> i64 {
        let request = &entry.request;
        let value = match &self.by {
            By::Formula(priority) => return Direction::Largest.rank(priority.aged(now, entry, self.weight)),
            By::Criterion(criterion) => match criterion.rank(request) {
                Some(rank) if self.weight == Weight::NONE || self.is_arrival() => return rank,
                Some(_) => criterion.value(request, 0.0),
                None => criterion.value(request, self.draw.random(self.seed, request, now)),
            },
        };
        Direction::Largest.rank(self.weight.age(value, request.submit))
    }
}

impl Default for By {
    fn default() -> By {
        By::Criterion(Criterion::default())
    }
}

impl Key {
    /// The job's place in the order of arrival.
    pub fn arrival(entry: &Entry) -> Key {
        let request = &entry.request;
        Key { primary: 0, submit: request.submit, number: request.number, admitted: entry.admitted }
    }
}
