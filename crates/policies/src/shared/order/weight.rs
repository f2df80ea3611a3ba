//! The weight of the delay, which keeps an order from starving anybody.

use miserly_core::Time;

/// How much a second of delay adds to a job's value; none by default (Zotkin et al. §8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// As bits, of which no two mean the same number: so weights are compared exactly.
    bits: u64,
}

impl Weight {
    /// The delay does not count.
    pub const NONE: Weight = Weight { bits: 0 };

    /// A weight per second of delay; `None` if it is negative or not finite.
    pub fn per_second(weight: f64) -> Option<Weight> {
        // From zero, so that there is one zero.
        (weight >= 0.0 && weight.is_finite()).then(|| Weight { bits: (0.0 + weight).to_bits() })
    }

    /// The value, less the weight of the time before the submission.
    pub(super) fn age(self, value: f64, submit: Time) -> f64 {
        value - f64::from_bits(self.bits) * (submit - Time::ZERO).as_secs_f64()
    }
}
