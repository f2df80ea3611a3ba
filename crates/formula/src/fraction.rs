//! Exact fractions, and the float that is nearest to one.

/// An exact fraction of two integers.
///
/// Operations return `None` where the result has no place in two 128-bit integers, or does not exist.
///
/// ```
/// use miserly_formula::Fraction;
///
/// let third = Fraction::from(1).checked_div(Fraction::from(3)).unwrap();
/// let sum = third.checked_add(third).unwrap().checked_add(third).unwrap();
/// assert_eq!(sum.nearest(), 1.0);
/// assert!(third.checked_div(Fraction::from(0)).is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Fraction {
    numerator: i128,
    /// Above 0.
    denominator: i128,
}

/// Integers up to this are floats exactly.
const EXACT: u128 = 1 << f64::MANTISSA_DIGITS;

impl Fraction {
    /// The number 0.
    pub const ZERO: Fraction = Fraction { numerator: 0, denominator: 1 };

    /// Returns `numerator / denominator`; `None` if the denominator is 0.
    pub fn new(numerator: i128, denominator: i128) -> Option<Fraction> {
        match denominator {
            0 => None,
            1.. => Some(Fraction { numerator, denominator }),
            _ => Some(Fraction {
                numerator: numerator.checked_neg()?,
                denominator: denominator.checked_neg()?,
            }),
        }
    }

    /// Returns the shortest decimal number that denotes `value`; `None` if it has too many digits.
    pub fn from_decimal(value: f64) -> Option<Fraction> {
        let text = value.to_string();
        let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
        let digits = format!("{whole}{part}").parse().ok()?;
        Fraction::new(digits, 10i128.checked_pow(u32::try_from(part.len()).ok()?)?)
    }

    /// Returns the sum.
    pub fn checked_add(self, other: Fraction) -> Option<Fraction> {
        if let (Some(a), Some(b)) = (self.small(), other.small()) {
            let (numerator, denominator) =
                if a.1 == b.1 { (a.0 + b.0, a.1) } else { (a.0 * b.1 + b.0 * a.1, a.1 * b.1) };
            return Some(Fraction { numerator, denominator });
        }
        self.with_reduced(other, |a, b| {
            if a.denominator == b.denominator {
                return Fraction::new(a.numerator.checked_add(b.numerator)?, a.denominator);
            }
            let left = a.numerator.checked_mul(b.denominator)?;
            let right = b.numerator.checked_mul(a.denominator)?;
            Fraction::new(left.checked_add(right)?, a.denominator.checked_mul(b.denominator)?)
        })
    }

    /// Returns the difference.
    pub fn checked_sub(self, other: Fraction) -> Option<Fraction> {
        self.checked_add(other.checked_neg()?)
    }

    /// Returns the product.
    pub fn checked_mul(self, other: Fraction) -> Option<Fraction> {
        if let (Some(a), Some(b)) = (self.small(), other.small()) {
            return Some(Fraction { numerator: a.0 * b.0, denominator: a.1 * b.1 });
        }
        self.with_reduced(other, |a, b| {
            let numerator = a.numerator.checked_mul(b.numerator)?;
            Fraction::new(numerator, a.denominator.checked_mul(b.denominator)?)
        })
    }

    /// Returns the quotient.
    pub fn checked_div(self, other: Fraction) -> Option<Fraction> {
        self.checked_mul(Fraction::new(other.denominator, other.numerator)?)
    }

    /// Returns the number with the other sign.
    pub fn checked_neg(self) -> Option<Fraction> {
        Fraction::new(self.numerator.checked_neg()?, self.denominator)
    }

    /// Returns the largest integer that is not above the number.
    pub(crate) fn floor(self) -> Fraction {
        Fraction { numerator: self.numerator.div_euclid(self.denominator), denominator: 1 }
    }

    /// Returns the integer, if the number is one.
    pub(crate) fn integer(self) -> Option<i128> {
        (self.numerator % self.denominator == 0).then(|| self.numerator / self.denominator)
    }

    /// Returns the sign: -1, 0 or 1.
    pub(crate) const fn sign(self) -> i128 {
        self.numerator.signum()
    }

    /// Returns the float that is nearest to the number, of two the even one.
    ///
    /// Equal numbers have equal floats, and a larger number never has a smaller float.
    pub fn nearest(self) -> f64 {
        let (n, d) = (self.numerator.unsigned_abs(), self.denominator.unsigned_abs());
        // A division of two floats that are exact is rounded once.
        let value = if n <= EXACT && d <= EXACT { n as f64 / d as f64 } else { long_division(n, d) };
        if self.numerator < 0 { -value } else { value }
    }

    /// Returns numerator and denominator, if both have at most 62 bits: then no sum of products of two such
    /// fractions overflows.
    fn small(self) -> Option<(i128, i128)> {
        const BOUND: i128 = 1 << 62;
        let Fraction { numerator, denominator } = self;
        let fits = -BOUND < numerator && numerator < BOUND && denominator < BOUND;
        fits.then_some((numerator, denominator))
    }

    /// Returns the result of `operation`, of the lowest terms if it has none of the terms at hand.
    fn with_reduced(
        self,
        other: Fraction,
        operation: impl Fn(Fraction, Fraction) -> Option<Fraction>,
    ) -> Option<Fraction> {
        operation(self, other).or_else(|| operation(self.reduced()?, other.reduced()?))
    }

    fn reduced(self) -> Option<Fraction> {
        let common = gcd(self.numerator.unsigned_abs(), self.denominator.unsigned_abs());
        let common = i128::try_from(common).ok()?;
        Some(Fraction { numerator: self.numerator / common, denominator: self.denominator / common })
    }
}

impl From<i64> for Fraction {
    fn from(value: i64) -> Fraction {
        Fraction { numerator: value.into(), denominator: 1 }
    }
}

/// Returns the float nearest to `n / d`, where `d` is above 0.
fn long_division(n: u128, d: u128) -> f64 {
    // Two bits more than a float has: one to round by, one for all that follows.
    const BITS: u32 = f64::MANTISSA_DIGITS + 2;
    if n == 0 {
        return 0.0;
    }
    // The quotient has as many bits as the dividend has more than the divisor, or one more.
    let shift = (BITS + n.leading_zeros()).saturating_sub(d.leading_zeros());
    // As many of the bits of the quotient as the dividend has room for are found at once.
    let at_once = shift.min(n.leading_zeros());
    let (mut quotient, mut rest) = ((n << at_once) / d, (n << at_once) % d);
    for _ in at_once..shift {
        let (doubled, overflow) = rest.overflowing_mul(2);
        let bit = overflow || doubled >= d;
        (quotient, rest) =
            (2 * quotient + u128::from(bit), if bit { doubled.wrapping_sub(d) } else { doubled });
    }
    // The bit for all that follows. The conversion rounds once.
    (quotient | u128::from(rest > 0)) as f64 * 2f64.powi(-shift.cast_signed())
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_float_does_not_depend_on_the_terms() {
        let odd = |at: u128| ((at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7) % (1 << 53)) | 1;
        for at in 1..2000 {
            let (n, d, factor) = (odd(at), odd(at + 7919), (odd(at + 104_729) >> 30) | 1);
            let expected = n as f64 / d as f64;
            assert_eq!(long_division(n, d).to_bits(), expected.to_bits(), "{n}/{d}");
            let large = Fraction::new((n * factor).cast_signed(), (d * factor).cast_signed()).unwrap();
            assert_eq!(large.nearest().to_bits(), expected.to_bits(), "{n}/{d} by {factor}");
            assert_eq!(large.checked_neg().unwrap().nearest().to_bits(), (-expected).to_bits());
        }
    }

    #[test]
    fn large_integers_are_rounded_to_even() {
        for n in (1u128 << 60)..(1 << 60) + 300 {
            assert_eq!(long_division(n, 1).to_bits(), (n as f64).to_bits(), "{n}");
        }
    }

    #[test]
    fn decimal_numbers_are_what_is_written() {
        let check = |value: f64, n: i128, d: i128| {
            let Fraction { numerator, denominator } = Fraction::from_decimal(value).unwrap();
            assert_eq!((numerator, denominator), (n, d));
        };
        check(0.2, 2, 10);
        check(358.4, 3584, 10);
        check(870.0, 870, 1);
        assert!(Fraction::from_decimal(1e300).is_none() && Fraction::from_decimal(1e-300).is_none());
    }
}
