//! The weight of the delay, which bounds how long a job can be overtaken.

use miserly_core::Time;
use miserly_formula::{Fraction, Interval};

/// The value that a second of delay adds to a job; none by default (Zotkin et al. §8).
#[derive(Clone, Copy, Debug)]
pub struct Weight {
    value: f64,
    /// The same as a fraction, if its decimal digits allow that.
    exact: Option<Fraction>,
}

impl Weight {
    /// The weight 0.
    pub const NONE: Weight = Weight { value: 0.0, exact: Some(Fraction::ZERO) };

    /// Returns a weight per second of delay, or `None` if it is negative or not finite.
    pub fn per_second(weight: f64) -> Option<Weight> {
        // The sum turns -0.0 into 0.0.
        let valid = weight >= 0.0 && weight.is_finite();
        valid.then(|| Weight { value: 0.0 + weight, exact: Fraction::from_decimal(0.0 + weight) })
    }

    /// Returns the weight as written in decimal, or `None` if it has too many digits.
    pub(super) const fn exact(self) -> Option<Fraction> {
        self.exact
    }

    /// Returns bounds on the weight.
    pub(super) fn bounds(self) -> Interval {
        Interval::from_rounded(self.value)
    }

    /// Returns the value, less the weight of the time before the submission.
    pub(super) fn age(self, value: f64, submit: Time) -> f64 {
        value - self.value * (submit - Time::ZERO).as_secs_f64()
    }
}

impl Default for Weight {
    fn default() -> Weight {
        Weight::NONE
    }
}

/// Compares weights by their bits: there is one zero and no NaN.
impl PartialEq for Weight {
    fn eq(&self, other: &Weight) -> bool {
        self.value.to_bits() == other.value.to_bits()
    }
}

impl Eq for Weight {}
