//! Random draws as a pure function. They are equal in any order, on any number of threads, after
//! any restart.

/// Returns 64 random bits that depend only on the seed, the job number and the draw number.
///
/// Each input is mixed in by the finaliser of `SplitMix64`, so neighbouring jobs and draws are
/// unrelated.
///
/// # Source
/// Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014.
pub fn draw(seed: u64, job: i64, number: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = [seed, job.cast_unsigned(), number]
        .into_iter()
        .fold(0, |state: u64, input| mix(state.wrapping_add(GOLDEN).wrapping_add(input)));
    mix(mixed)
}

const fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::draw;

    #[test]
    fn a_pure_function_of_all_three() {
        assert_eq!(draw(1, 2, 3), draw(1, 2, 3));
        let others = [draw(2, 2, 3), draw(1, 3, 3), draw(1, 2, 4), draw(2, 1, 3), draw(3, 2, 1)];
        assert!(!others.contains(&draw(1, 2, 3)));
    }

    #[test]
    fn uniform_over_jobs() {
        let mean = (0..10_000).map(|job| draw(7, job, 0) as f64 / u64::MAX as f64).sum::<f64>() / 1e4;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }
}
