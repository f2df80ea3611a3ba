//! Ratios of integers, for values that are compared exactly.

use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A ratio of two integers in lowest terms. A number over 0 is infinite, and 0 over 0 is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    numerator: i128,
    denominator: i128,
}

impl Ratio {
    /// Returns `numerator / denominator`.
    pub fn new(numerator: i128, denominator: i128) -> Ratio {
        let common = gcd(numerator.abs(), denominator.abs()).max(1) * if denominator < 0 { -1 } else { 1 };
        Ratio { numerator: numerator / common, denominator: denominator / common }
    }

    /// Orders two values, the larger first and NaN last.
    pub(crate) fn falling(self, other: Ratio) -> Ordering {
        let is_nan = |ratio: Ratio| ratio.numerator == 0 && ratio.denominator == 0;
        match (is_nan(self), is_nan(other)) {
            (false, false) if self.denominator == 0 && other.denominator == 0 => {
                other.numerator.cmp(&self.numerator)
            }
            (false, false) => compare(other, self),
            (one, other) => one.cmp(&other),
        }
    }
}

/// Compares two numbers, at most one of them infinite, by their whole parts, then by their
/// remainders.
fn compare(one: Ratio, other: Ratio) -> Ordering {
    if one.denominator == 0 || other.denominator == 0 {
        let infinite = |ratio: Ratio| if ratio.denominator == 0 { ratio.numerator.signum() } else { 0 };
        return infinite(one).cmp(&infinite(other));
    }
    let whole = |ratio: Ratio| ratio.numerator.div_euclid(ratio.denominator);
    let rest = |ratio: Ratio| ratio.numerator.rem_euclid(ratio.denominator);
    whole(one).cmp(&whole(other)).then_with(|| match (rest(one), rest(other)) {
        (0, 0) => Ordering::Equal,
        (0, _) => Ordering::Less,
        (_, 0) => Ordering::Greater,
        // The larger remainder has the smaller inverse.
        (a, b) => compare(Ratio::new(other.denominator, b), Ratio::new(one.denominator, a)),
    })
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl From<i64> for Ratio {
    fn from(value: i64) -> Ratio {
        Ratio::new(value.into(), 1)
    }
}

impl Add for Ratio {
    type Output = Ratio;

    fn add(self, other: Ratio) -> Ratio {
        let sum = self.numerator * other.denominator + other.numerator * self.denominator;
        Ratio::new(sum, self.denominator * other.denominator)
    }
}

impl Neg for Ratio {
    type Output = Ratio;

    fn neg(self) -> Ratio {
        Ratio::new(-self.numerator, self.denominator)
    }
}

impl Sub for Ratio {
    type Output = Ratio;

    fn sub(self, other: Ratio) -> Ratio {
        self + -other
    }
}

impl Mul for Ratio {
    type Output = Ratio;

    fn mul(self, other: Ratio) -> Ratio {
        Ratio::new(self.numerator * other.numerator, self.denominator * other.denominator)
    }
}

impl Div for Ratio {
    type Output = Ratio;

    fn div(self, other: Ratio) -> Ratio {
        Ratio::new(self.numerator * other.denominator, self.denominator * other.numerator)
    }
}
