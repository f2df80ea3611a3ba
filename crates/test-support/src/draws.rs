//! Random numbers that are the same in every run.

/// A sequence of random numbers from one seed (`SplitMix64`).
#[derive(Clone, Debug)]
pub struct Draws(u64);

impl Draws {
    /// Returns the sequence of a seed.
    pub fn new(seed: u64) -> Draws {
        Draws(seed)
    }

    /// Draws 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Draws a number below `bound`.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// Draws a number from 0 inclusive to 1 exclusive.
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws one of `choices`.
    ///
    /// # Panics
    /// If there is no choice.
    pub fn choice<T: Copy>(&mut self, choices: &[T]) -> T {
        let index = self.below(u64::try_from(choices.len()).unwrap_or(u64::MAX));
        choices[usize::try_from(index).unwrap_or_default()]
    }
}

#[cfg(test)]
mod tests {
    use super::Draws;

    /// The reference values of `SplitMix64` for the seed 1234567.
    #[test]
    fn the_sequence_is_that_of_the_reference_implementation() {
        let mut draws = Draws::new(1_234_567);
        assert_eq!(draws.bits(), 6_457_827_717_110_365_317);
        assert_eq!(draws.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut draws = Draws::new(7);
        assert!((0..1000).all(|_| draws.below(3) < 3));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&draws.fraction())));
        let drawn: Vec<char> = (0..100).map(|_| draws.choice(&['a', 'b'])).collect();
        assert!(drawn.contains(&'a') && drawn.contains(&'b'));
    }
}
