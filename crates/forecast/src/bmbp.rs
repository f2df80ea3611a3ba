//! The baseline of forecasts: Brevik, Nurmi, Wolski, "Predicting bounds on queuing delay" (2006).

use std::collections::VecDeque;

/// The quantile that is bounded, and the confidence of the bound.
const QUANTILE: f64 = 0.95;

/// The quantile of the standard normal distribution for a confidence of 0.95.
const NORMAL: f64 = 1.644_853_626_951_472_2;

/// The fewest waits from which a bound follows: 1 - 0.95^59 exceeds 0.95. After a change the history is cut to them.
const LEAST: usize = 59;

/// The number of consecutive misses that mean a change.
const MISSES: u32 = 3;

/// The waits of one class of jobs, and the upper bound of the next wait.
///
/// The bound is the order statistic of the known waits that exceeds their 0.95 quantile with 95 % confidence. After three
/// waits in a row beyond their bounds, the history is cut to its newest 59.
#[derive(Clone, Debug, Default)]
pub struct Bmbp {
    in_order: VecDeque<u64>,
    sorted: Vec<u64>,
    misses: u32,
}

impl Bmbp {
    /// Returns the bound of the next wait, or `None` with fewer than 59 known waits. O(1).
    pub fn bound(&self) -> Option<u64> {
        let rank = rank(self.sorted.len())?;
        self.sorted.get(rank - 1).copied()
    }

    /// Adds a wait that has become known, with the bound that was given for it. O(n).
    pub fn add(&mut self, wait: u64, bound: Option<u64>) {
        self.misses = if bound.is_some_and(|bound| wait > bound) { self.misses + 1 } else { 0 };
        self.in_order.push_back(wait);
        let at = self.sorted.partition_point(|known| *known <= wait);
        self.sorted.insert(at, wait);
        if self.misses >= MISSES {
            self.misses = 0;
            self.in_order.drain(..self.in_order.len().saturating_sub(LEAST));
            self.sorted = self.in_order.iter().copied().collect();
            self.sorted.sort_unstable();
        }
    }
}

/// Returns the least rank, from 1, whose order statistic of n values bounds the quantile.
fn rank(n: usize) -> Option<usize> {
    if n < LEAST {
        return None;
    }
    if n > 1000 {
        return Some(rank_by_normal(n).min(n));
    }
    // The probability that at most k values are below the quantile, for growing k.
    let count = n as f64;
    let mut each = (1.0 - QUANTILE).powi(i32::try_from(n).unwrap_or(i32::MAX));
    if each == 0.0 {
        return Some(rank_by_normal(n).min(n));
    }
    let mut sum = 0.0;
    for k in 0..n {
        sum += each;
        if sum >= QUANTILE {
            return Some(k + 1);
        }
        each *= (count - k as f64) / (k as f64 + 1.0) * (QUANTILE / (1.0 - QUANTILE));
    }
    Some(n)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and n")]
fn rank_by_normal(n: usize) -> usize {
    let count = n as f64;
    (count * QUANTILE + NORMAL * (count * QUANTILE * (1.0 - QUANTILE)).sqrt()).ceil() as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_of_the_bound() {
        assert_eq!(rank(58), None);
        assert_eq!(rank(59), Some(59));
        assert_eq!(rank(93), Some(92));
        // Exact and approximated ranks agree to one.
        assert!(rank(200).unwrap().abs_diff(rank_by_normal(200)) <= 1);
        assert!((950..=1001).contains(&rank(1001).unwrap()));
    }

    #[test]
    fn three_misses_cut_the_history() {
        let mut bmbp = Bmbp::default();
        for wait in 0..100 {
            bmbp.add(wait, None);
        }
        assert!(bmbp.bound().is_some_and(|bound| bound < 100));
        for wait in [1000, 2000, 3000] {
            bmbp.add(wait, bmbp.bound());
        }
        assert_eq!(bmbp.sorted.len(), 59);
        assert_eq!(bmbp.bound(), Some(3000));
    }
}
