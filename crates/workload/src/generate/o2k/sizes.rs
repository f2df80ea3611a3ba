//! The processors requested by the jobs of a size class.

use miserly_classes::lsf::Size;

use super::super::random::{Discrete, Stream};

/// Processors with their weights. Decided here.
///
/// Serial jobs and powers of two are common (§3), and multiples of four among the rest. A size
/// beyond the limit of the next smaller class belongs to this class with any memory. Below that
/// limit, only jobs with more memory than that class admits do, and they are fewer.
const fn weights(size: Size) -> &'static [(u32, f64)] {
    match size {
        Size::Small => {
            &[(1, 0.42), (2, 0.12), (3, 0.03), (4, 0.19), (5, 0.02), (6, 0.04), (7, 0.01), (8, 0.17)]
        }
        Size::Medium => &[
            (1, 0.10),
            (2, 0.05),
            (4, 0.08),
            (6, 0.02),
            (8, 0.13),
            (9, 0.02),
            (10, 0.06),
            (12, 0.10),
            (14, 0.02),
            (15, 0.02),
            (16, 0.40),
        ],
        Size::Large => &[
            (1, 0.03),
            (2, 0.01),
            (4, 0.03),
            (8, 0.06),
            (12, 0.02),
            (16, 0.10),
            (20, 0.05),
            (24, 0.06),
            (32, 0.34),
            (40, 0.03),
            (48, 0.05),
            (64, 0.22),
        ],
    }
}

/// The sizes of a class with tilted weights: multiplied by the size to the power of `tilt`.
pub(super) struct ClassSizes {
    weights: &'static [(u32, f64)],
    index: Discrete,
}

impl ClassSizes {
    pub(super) fn new(size: Size, tilt: f64) -> ClassSizes {
        let weights = weights(size);
        let weight = |number: u32| {
            let (procs, weight) = weights[number as usize - 1];
            weight * f64::from(procs).powf(tilt)
        };
        // At most a dozen.
        let count = u32::try_from(weights.len()).unwrap_or(u32::MAX);
        ClassSizes { weights, index: Discrete::new(count, weight) }
    }

    pub(super) fn draw(&self, stream: &mut Stream) -> u32 {
        self.weights[self.index.draw(stream) as usize - 1].0
    }
}
