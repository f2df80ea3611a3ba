//! The number of processors.

use std::fmt;
use std::iter::Sum;
use std::num::TryFromIntError;
use std::ops::{Add, AddAssign, Div, Sub, SubAssign};

/// A number of processors.
///
/// It is a count only. A particular processor has a number, and a set of them is a
/// [`PeSet`](crate::PeSet). Addition and subtraction panic on overflow in debug builds, like those
/// of integers.
///
/// ```
/// use miserly_core::Procs;
///
/// let free = Procs::new(8) - Procs::new(3);
/// assert_eq!(free, Procs::new(5));
/// assert_eq!(free.saturating_sub(Procs::new(9)), Procs::ZERO);
/// assert_eq!(free.to_string(), "5");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Procs(u64);

impl Procs {
    /// No processor.
    pub const ZERO: Procs = Procs(0);

    /// One processor.
    pub const ONE: Procs = Procs(1);

    /// More processors than any machine has.
    pub const MAX: Procs = Procs(u64::MAX);

    /// Returns the number of processors with this value.
    pub const fn new(count: u64) -> Procs {
        Procs(count)
    }

    /// Returns the number as an integer.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns whether there is no processor.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the sum, at most [`Procs::MAX`].
    #[must_use]
    pub const fn saturating_add(self, other: Procs) -> Procs {
        Procs(self.0.saturating_add(other.0))
    }

    /// Returns the difference, at least zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Procs) -> Procs {
        Procs(self.0.saturating_sub(other.0))
    }

    /// Returns the difference, or `None` if it would be negative.
    pub const fn checked_sub(self, other: Procs) -> Option<Procs> {
        match self.0.checked_sub(other.0) {
            Some(count) => Some(Procs(count)),
            None => None,
        }
    }
}

impl Add for Procs {
    type Output = Procs;

    fn add(self, other: Procs) -> Procs {
        Procs(self.0 + other.0)
    }
}

impl AddAssign for Procs {
    fn add_assign(&mut self, other: Procs) {
        self.0 += other.0;
    }
}

impl Sub for Procs {
    type Output = Procs;

    fn sub(self, other: Procs) -> Procs {
        Procs(self.0 - other.0)
    }
}

impl SubAssign for Procs {
    fn sub_assign(&mut self, other: Procs) {
        self.0 -= other.0;
    }
}

/// Returns the whole part of the quotient.
impl Div<u64> for Procs {
    type Output = Procs;

    fn div(self, parts: u64) -> Procs {
        Procs(self.0 / parts)
    }
}

impl Sum for Procs {
    fn sum<I: Iterator<Item = Procs>>(counts: I) -> Procs {
        counts.fold(Procs::ZERO, Add::add)
    }
}

impl<'a> Sum<&'a Procs> for Procs {
    fn sum<I: Iterator<Item = &'a Procs>>(counts: I) -> Procs {
        counts.copied().sum()
    }
}

impl From<u64> for Procs {
    fn from(count: u64) -> Procs {
        Procs(count)
    }
}

impl From<Procs> for u64 {
    fn from(procs: Procs) -> u64 {
        procs.0
    }
}

impl From<Procs> for u128 {
    fn from(procs: Procs) -> u128 {
        u128::from(procs.0)
    }
}

/// Fails for a number that no set of processors can hold.
impl TryFrom<Procs> for u32 {
    type Error = TryFromIntError;

    fn try_from(procs: Procs) -> Result<u32, TryFromIntError> {
        u32::try_from(procs.0)
    }
}

impl fmt::Display for Procs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
