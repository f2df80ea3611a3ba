//! The random numbers of the archive's programs: POSIX `drand48` and the distributions drawn from it.

/// The 48-bit linear congruential generator of POSIX.
#[derive(Clone, Debug)]
pub(super) struct Drand48(u64);

impl Drand48 {
    /// Creates the generator as `srand48` does, which uses 32 bits of the seed.
    pub(super) fn new(seed: u32) -> Drand48 {
        Drand48(u64::from(seed) << 16 | 0x330E)
    }

    /// Draws uniformly from [0, 1) in steps of 2^-48.
    pub(super) fn uniform(&mut self) -> f64 {
        const RANGE: u64 = 1 << 48;
        self.0 = self.0.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) % RANGE;
        self.0 as f64 / RANGE as f64
    }

    /// Draws from an exponential distribution with the mean 1.
    fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// Draws from a gamma distribution: a sum of exponential draws for the whole part of the shape,
    /// and a beta draw times an exponential one for its fraction.
    ///
    /// # Source
    /// Jain, The Art of Computer Systems Performance Analysis, 1991, chapter 28.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "validation bounds shapes")]
    pub(super) fn gamma(&mut self, Gamma { shape, scale }: Gamma) -> f64 {
        let whole = (0..shape as u32).fold(0.0, |sum, _| sum + self.exponential()) * scale;
        let fraction = shape - shape.floor();
        if fraction <= 0.0 {
            return whole;
        }
        let share = self.beta(fraction);
        whole + scale * share * self.exponential()
    }

    /// Draws from the beta distribution with the shapes `a` and 1 - `a`, both below 1.
    fn beta(&mut self, a: f64) -> f64 {
        loop {
            let (first, second) = (self.uniform(), self.uniform());
            let (x, y) = (first.powf(1.0 / a), second.powf(1.0 / (1.0 - a)));
            if x + y <= 1.0 {
                return x / (x + y);
            }
        }
    }
}

/// A gamma distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gamma {
    pub(super) shape: f64,
    pub(super) scale: f64,
}

impl Gamma {
    /// Returns the probability of values up to `x`, times a constant of the shape.
    ///
    /// The series is that of the incomplete gamma function; its terms fall once they are past `x`.
    pub(super) fn cumulated(self, x: f64) -> f64 {
        let (a, x) = (self.shape, x / self.scale);
        let (mut term, mut sum, mut place) = (1.0 / a, 1.0 / a, a);
        while place < x || term > sum * 1e-17 {
            place += 1.0;
            term *= x / place;
            sum += term;
        }
        sum * (a * x.ln() - x).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of `srand48(1)` in the C library.
    #[test]
    fn the_numbers_are_those_of_the_c_library() {
        let mut stream = Drand48::new(1);
        let first: Vec<_> = (0..3).map(|_| format!("{:.12}", stream.uniform())).collect();
        assert_eq!(first, ["0.041630344772", "0.454492444729", "0.834817218167"]);
    }

    /// Mean and variance of a gamma distribution are k s and k s^2.
    #[test]
    fn gamma_has_its_mean_and_variance() {
        for (shape, scale) in [(4.2, 0.94), (0.4, 2.0), (3.0, 1.5)] {
            let mut stream = Drand48::new(7);
            let draws: Vec<f64> = (0..200_000).map(|_| stream.gamma(Gamma { shape, scale })).collect();
            let mean = draws.iter().sum::<f64>() / 2e5;
            let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / 2e5;
            assert!((mean / (shape * scale) - 1.0).abs() < 0.01, "{mean}");
            assert!((variance / (shape * scale * scale) - 1.0).abs() < 0.03, "{variance}");
        }
    }

    /// A shape of 1 is the exponential distribution.
    #[test]
    fn the_cumulated_exponential_distribution() {
        let gamma = Gamma { shape: 1.0, scale: 2.0 };
        for x in [0.5, 2.0, 40.0] {
            let exact = 1.0 - f64::exp(-x / 2.0);
            assert!((gamma.cumulated(x) - exact).abs() < 1e-12, "{x}");
        }
    }
}
