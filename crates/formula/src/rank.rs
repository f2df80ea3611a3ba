//! Conversion of floats to integers of the same order.

/// Returns an integer with the order of `x`: NaN lowest, then from minus infinity up. Both zeros
/// are equal.
///
/// ```
/// use miserly_formula::ordered_key;
/// let rising = [f64::NAN, f64::NEG_INFINITY, -1.0, -1e-300, 0.0, 1e-300, 2.0, f64::INFINITY];
/// assert!(rising.map(ordered_key).is_sorted_by(|a, b| a < b));
/// assert_eq!(ordered_key(-0.0), ordered_key(0.0));
/// ```
pub fn ordered_key(x: f64) -> i64 {
    if x.is_nan() {
        return i64::MIN;
    }
    // The sum makes both zeros equal. Greater negative floats have smaller bits, so all bits but
    // the sign are inverted.
    let bits = (x + 0.0).to_bits().cast_signed();
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

/// The value of a formula that comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The smallest value.
    Smallest,
    /// The largest value.
    Largest,
}

impl Direction {
    /// Returns the keyword in tables and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Direction::Smallest => "smallest",
            Direction::Largest => "largest",
        }
    }

    /// Returns a rank in the queue: smaller comes first, and NaN last in either direction.
    ///
    /// ```
    /// use miserly_formula::Direction;
    /// assert!(Direction::Largest.rank(2.0) < Direction::Largest.rank(1.0));
    /// assert!(Direction::Largest.rank(1.0) < Direction::Largest.rank(f64::NAN));
    /// assert!(Direction::Smallest.rank(1.0) < Direction::Smallest.rank(f64::NAN));
    /// ```
    pub fn rank(self, x: f64) -> i64 {
        match self {
            Direction::Smallest if x.is_nan() => i64::MAX,
            Direction::Smallest => ordered_key(x),
            // Reverses the order like a negation, without overflow.
            Direction::Largest => !ordered_key(x),
        }
    }
}
