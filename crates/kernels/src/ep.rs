//! Embarrassingly parallel: pairs of normal deviates by the polar method, counted in square annuli.
//!
//! The random numbers, the method and the sums are those of the NAS kernel EP, so its published sums check this code.

use std::f64::consts::PI;
use std::thread;

use crate::{Outcome, part};

/// Pairs of a batch.
const PAIRS: u64 = 1 << 16;
/// Batches of a round.
const BATCHES: u64 = 4;
const MODULUS_BITS: u32 = 46;
const MASK: u64 = (1 << MODULUS_BITS) - 1;
/// The multiplier and the seed of the NAS generator.
const MULTIPLIER: u64 = 1_220_703_125;
const SEED: u64 = 271_828_183;
const ANNULI: usize = 10;

/// The sums of some pairs.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    x: f64,
    y: f64,
    counts: [u64; ANNULI],
}

pub(crate) fn run(rounds: u32, threads: usize) -> Outcome {
    let batches = u64::from(rounds) * BATCHES;
    let sums = sums(batches, threads);
    let accepted: u64 = sums.counts.iter().sum();
    Outcome { figures: [sums.x, sums.y], verified: is_plausible(sums, accepted, batches * PAIRS) }
}

/// Returns whether the sums are within six standard deviations of their expectations.
fn is_plausible(sums: Sums, accepted: u64, pairs: u64) -> bool {
    let (share, all) = (PI / 4.0, pairs as f64);
    let of_accepted = 6.0 * (all * share * (1.0 - share)).sqrt();
    let of_sums = 6.0 * (accepted as f64).sqrt();
    (accepted as f64 - all * share).abs() < of_accepted && sums.x.abs() < of_sums && sums.y.abs() < of_sums
}

fn sums(batches: u64, threads: usize) -> Sums {
    // A job has fewer batches than a word has numbers.
    let count = usize::try_from(batches).unwrap_or(usize::MAX);
    let of_thread = |thread: usize| -> Vec<Sums> {
        part(count, threads, thread).map(|number| batch(number as u64)).collect()
    };
    let parts: Vec<Sums> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || of_thread(thread))).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    parts.iter().fold(Sums::default(), |sum, one| {
        let mut counts = sum.counts;
        counts.iter_mut().zip(one.counts).for_each(|(all, more)| *all += more);
        Sums { x: sum.x + one.x, y: sum.y + one.y, counts }
    })
}

fn batch(number: u64) -> Sums {
    let mut state = times(power(MULTIPLIER, 2 * PAIRS * number), SEED);
    let mut draw = || {
        state = times(MULTIPLIER, state);
        2.0 * (state as f64 / (1_u64 << MODULUS_BITS) as f64) - 1.0
    };
    let mut sums = Sums::default();
    for _ in 0..PAIRS {
        let (x, y) = (draw(), draw());
        let square = x * x + y * y;
        if square <= 1.0 {
            let factor = (-2.0 * libm::log(square) / square).sqrt();
            let (x, y) = (x * factor, y * factor);
            // A deviate is far below ten: 2^46 draws have none beyond it.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let annulus = x.abs().max(y.abs()) as usize;
            sums.counts[annulus.min(ANNULI - 1)] += 1;
            sums.x += x;
            sums.y += y;
        }
    }
    sums
}

/// Returns the product modulo 2^46, which divides the modulus of the wrapping product.
fn times(a: u64, b: u64) -> u64 {
    a.wrapping_mul(b) & MASK
}

fn power(base: u64, mut exponent: u64) -> u64 {
    let (mut result, mut square) = (1, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = times(result, square);
        }
        square = times(square, square);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums that NAS publishes for class S: 2^24 pairs.
    #[test]
    fn class_s_has_the_published_sums() {
        let sums = sums((1 << 24) / PAIRS, 2);
        let is_near = |ours: f64, published: f64| ((ours - published) / published).abs() < 1e-8;
        assert!(is_near(sums.x, -3.247_834_652_034_74e3), "{}", sums.x);
        assert!(is_near(sums.y, -6.958_407_078_382_297e3), "{}", sums.y);
        assert_eq!(sums.counts.iter().sum::<u64>(), 13_176_389);
    }

    #[test]
    fn wrong_sums_are_not_plausible() {
        let pairs = 4 * PAIRS;
        let right = sums(4, 1);
        let accepted: u64 = right.counts.iter().sum();
        assert!(is_plausible(right, accepted, pairs));
        assert!(!is_plausible(Sums { x: 1e4, ..right }, accepted, pairs));
        assert!(!is_plausible(right, accepted * 9 / 10, pairs));
    }
}
