//! Orders of the queue.

mod criterion;

mod weight;

use miserly_core::{Entry, JobNumber, Time};

pub use criterion::{Criterion, Draw};
pub use weight::Weight;

/// An order of the queue (Zotkin et al. §5, §6, §8). Ties by submit time, then by job number.
///
/// Without a weight it is the criterion's own, by exact integers where nothing random is in it. With a weight
/// it is starvation-free: by `value + weight * delay`, largest first, in double precision, where `value` is
///
/// | criterion | value |
/// |---|---|
/// | shortest, longest | 1/r, r |
/// | narrowest, widest | 1/p, p |
/// | smallest, largest | 1/(r * p), r * p |
/// | random, random/length | u, u/r |
///
/// of the estimate r in seconds, at least 1, the processors p, and a random number u in [0, 1). In the order
/// of arrival nobody is passed, so a weight changes nothing.
///
/// # No sorting again
/// All waiting jobs age alike: at any instant, `value + weight * (now - submit)` puts two jobs in the order in
/// which `value - weight * submit` does. That is what is computed, times in seconds, and it never changes. Only
/// an order that draws at every pass does ([`changes`](Order::changes)).
///
/// # Overtaking is bounded, starting is not
/// After a delay of `(v - v') / weight` no job that is submitted then gets ahead of one with value v' in the
/// queue, if its own value is at most v. It may start before it all the same, in a hole that the other does not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    criterion: Criterion,
    weight: Weight,
    draw: Draw,
    seed: u64,
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
        Order { criterion, weight: Weight::NONE, draw: Draw::Once, seed: 0 }
    }

    /// The same criterion, and this weight on the delay.
    #[must_use]
    pub const fn with_weight(self, weight: Weight) -> Order {
        Order { weight, ..self }
    }

    /// The same criterion, with random numbers drawn so.
    #[must_use]
    pub const fn with_draws(self, draw: Draw, seed: u64) -> Order {
        Order { draw, seed, ..self }
    }

    /// Whether nobody who comes later ever stands before anybody.
    pub fn is_arrival(&self) -> bool {
        self.criterion == Criterion::Arrival
    }

    /// Whether keys change as time goes by, so that a queue has to be sorted again at each pass.
    pub fn changes(&self) -> bool {
        self.criterion.is_random() && self.draw == Draw::Pass
    }

    /// The job's place in this order at `now`, which matters only to an order that [`changes`](Order::changes).
    pub fn key(&self, now: Time, entry: &Entry) -> Key {
        let request = &entry.request;
        let exact = self.criterion.rank(request);
        let primary = match exact {
            Some(rank) if self.weight == Weight::NONE || self.is_arrival() => rank,
            _ => {
                let random = if exact.is_none() { self.draw.random(self.seed, request, now) } else { 0.0 };
                descending(self.weight.age(self.criterion.value(request, random), request.submit))
            }
        };
        Key { primary, ..Key::arrival(entry) }
    }
}

impl Key {
    /// The job's place in the order of arrival.
    pub fn arrival(entry: &Entry) -> Key {
        let request = &entry.request;
        Key { primary: 0, submit: request.submit, number: request.number, admitted: entry.admitted }
    }
}

/// An integer that grows as the number falls. It is no NaN.
fn descending(value: f64) -> i64 {
    // From zero, not negated: so that there is one zero.
    let bits = (0.0 - value).to_bits().cast_signed();
    // Below zero, more bits mean less.
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use super::descending;

    #[test]
    fn numbers_as_integers_in_falling_order() {
        let falling =
            [f64::MAX, 1e9, 1.0 + f64::EPSILON, 1.0, f64::MIN_POSITIVE, 0.0, -1e-300, -1.0, f64::MIN];
        assert!(falling.map(descending).is_sorted_by(|a, b| a < b));
        assert_eq!(descending(0.0), descending(-0.0));
    }
}
