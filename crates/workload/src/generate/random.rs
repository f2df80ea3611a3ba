//! Seeded random draws and the distributions of the models.

use miserly_core::draw;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// A stream of random numbers for one purpose.
///
/// Separate streams keep the draws of other purposes when one parameter changes. Examples are the
/// same arrivals for other runtimes, and the same sizes for another load.
pub(crate) struct Stream(Pcg64);

impl Stream {
    pub(crate) fn new(seed: u64, purpose: u64) -> Stream {
        Stream(Pcg64::seed_from_u64(draw(seed, 0, purpose)))
    }

    /// Draws uniformly from [0, 1) in steps of 2^-53.
    pub(crate) fn uniform(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.0.next_u64() >> 11) as f64 * STEP
    }

    /// Draws a whole number below `count`, which is positive.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below a usize")]
    pub(crate) fn below(&mut self, count: usize) -> usize {
        ((self.uniform() * count as f64) as usize).min(count - 1)
    }

    /// Draws from an exponential distribution with this mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - u is never 0.
        -mean * (1.0 - self.uniform()).ln()
    }
}

/// A weighted distribution over 1, 2, 3, ...
pub(super) struct Discrete {
    /// Sum of the weights up to each value.
    cumulated: Vec<f64>,
}

impl Discrete {
    /// Creates a distribution over 1 to `most`; at least one weight must be positive.
    pub(super) fn new(most: u32, weight: impl Fn(u32) -> f64) -> Discrete {
        let mut sum = 0.0;
        let cumulate = |value| {
            sum += weight(value);
            sum
        };
        Discrete { cumulated: (1..=most).map(cumulate).collect() }
    }

    pub(super) fn draw(&self, stream: &mut Stream) -> u32 {
        let sum = self.cumulated.last().copied().unwrap_or(0.0);
        let point = stream.uniform() * sum;
        let below = self.cumulated.partition_point(|&cumulated| cumulated <= point);
        // Rounding may move the point to the very end.
        let last = self.cumulated.len().saturating_sub(1);
        u32::try_from(below.min(last) + 1).unwrap_or(u32::MAX)
    }
}

/// Returns the weight of a value in a harmonic (generalised Zipf) distribution of an order.
pub(super) fn harmonic(value: u32, order: f64) -> f64 {
    f64::from(value).powf(-order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_has_its_mean() {
        let mut stream = Stream::new(1, 2);
        let mean = (0..100_000).map(|_| stream.exponential(7.0)).sum::<f64>() / 1e5;
        assert!((mean - 7.0).abs() < 0.1, "{mean}");
    }

    #[test]
    fn discrete_has_its_weights() {
        let (mut stream, zipf) = (Stream::new(1, 2), Discrete::new(402, |value| harmonic(value, 2.5)));
        let ones = (0..100_000).filter(|_| zipf.draw(&mut stream) == 1).count();
        // 1 / zeta(2.5) = 0.7454
        assert!((74_000..75_100).contains(&ones), "{ones}");
        let single = Discrete::new(1, |_| 3.0);
        assert_eq!(single.draw(&mut stream), 1);
    }
}
