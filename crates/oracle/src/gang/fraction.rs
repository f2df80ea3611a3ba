//! Exact numbers.

/// A nonnegative fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fraction {
    over: u128,
    under: u128,
}

impl Fraction {
    pub(super) fn new(over: u128, under: u128) -> Fraction {
        let (mut a, mut b) = (over, under);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        Fraction { over: over / a, under: under / a }
    }

    pub(super) fn whole(number: u128) -> Fraction {
        Fraction::new(number, 1)
    }

    pub(super) fn plus(self, other: Fraction) -> Fraction {
        Fraction::new(self.over * other.under + other.over * self.under, self.under * other.under)
    }

    /// Returns the difference, at least zero.
    pub(super) fn less(self, other: Fraction) -> Fraction {
        let (mine, theirs) = (self.over * other.under, other.over * self.under);
        Fraction::new(mine.saturating_sub(theirs), self.under * other.under)
    }

    pub(super) fn times(self, other: Fraction) -> Fraction {
        Fraction::new(self.over * other.over, self.under * other.under)
    }

    /// Returns the quotient, rounded up. The divisor must be positive.
    pub(super) fn ceil_div(self, other: Fraction) -> u128 {
        (self.over * other.under).div_ceil(self.under * other.over)
    }
}
