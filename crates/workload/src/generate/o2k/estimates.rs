//! The estimates of the users.

use miserly_classes::lsf::Length;

use super::super::random::{Discrete, Stream};

const MINUTE: u64 = 60;

const HOUR: u64 = 3_600;

/// Estimates in seconds with their weights. Decided here.
///
/// They are round and within the limits of the class (Table 1). The limit of the class itself is
/// the commonest, because it costs nothing.
const fn weights(length: Length) -> &'static [(u64, f64)] {
    match length {
        Length::VeryShort => &[
            (10 * MINUTE, 0.04),
            (30 * MINUTE, 0.10),
            (HOUR, 0.16),
            (2 * HOUR, 0.12),
            (3 * HOUR, 0.08),
            (4 * HOUR, 0.10),
            (5 * HOUR, 0.40),
        ],
        Length::Short => &[
            (8 * HOUR, 0.05),
            (10 * HOUR, 0.12),
            (12 * HOUR, 0.08),
            (20 * HOUR, 0.10),
            (24 * HOUR, 0.12),
            (30 * HOUR, 0.05),
            (40 * HOUR, 0.06),
            (48 * HOUR, 0.07),
            (50 * HOUR, 0.35),
        ],
        Length::Medium => &[
            (72 * HOUR, 0.08),
            (96 * HOUR, 0.06),
            (100 * HOUR, 0.22),
            (120 * HOUR, 0.08),
            (150 * HOUR, 0.11),
            (200 * HOUR, 0.45),
        ],
        Length::Long => &[(250 * HOUR, 0.10), (300 * HOUR, 0.22), (350 * HOUR, 0.08), (400 * HOUR, 0.60)],
    }
}

/// The estimates of a class.
pub(super) struct ClassEstimates {
    weights: &'static [(u64, f64)],
    index: Discrete,
}

impl ClassEstimates {
    pub(super) fn new(length: Length) -> ClassEstimates {
        let weights = weights(length);
        // At most a dozen.
        let count = u32::try_from(weights.len()).unwrap_or(u32::MAX);
        ClassEstimates { weights, index: Discrete::new(count, |number| weights[number as usize - 1].1) }
    }

    /// Draws an estimate in seconds.
    pub(super) fn draw(&self, stream: &mut Stream) -> u64 {
        self.weights[self.index.draw(stream) as usize - 1].0
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::Span;

    use super::*;

    #[test]
    fn estimates_are_of_their_class() {
        for length in Length::ALL {
            let of = |&(seconds, _): &(u64, f64)| {
                Length::for_estimate(Span::from_secs(seconds.cast_signed()).unwrap())
            };
            assert!(weights(length).iter().all(|weighted| of(weighted) == Some(length)));
        }
    }
}
