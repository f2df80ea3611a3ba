//! Rank correlation.

/// Returns Spearman's rank correlation of pairs, between -1 and 1.
///
/// Equal values share their mean rank. `None` if either side has less than two different values.
/// Ranks are used because runtimes and memory span five decades, so a few large values would
/// dominate.
pub(super) fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let left = centred(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
    let right = centred(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
    let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let spread = (sum(&left, &left) * sum(&right, &right)).sqrt();
    (spread > 0.0).then(|| sum(&left, &right) / spread)
}

/// Returns the ranks minus their mean.
fn centred(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mean = (values.len() as f64 - 1.0) / 2.0;
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    for same in order.chunk_by(|&a, &b| values[a].total_cmp(&values[b]).is_eq()) {
        let rank = from as f64 + (same.len() as f64 - 1.0) / 2.0;
        for &at in same {
            ranks[at] = rank - mean;
        }
        from += same.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pairs: &[(f64, f64)], expected: Option<f64>) {
        let found = correlation(pairs);
        let near = found.zip(expected).is_none_or(|(found, expected)| (found - expected).abs() < 1e-12);
        assert!(near && found.is_some() == expected.is_some(), "{found:?}");
    }

    #[test]
    fn by_ranks_and_not_by_values() {
        check(&[(1.0, 1.0), (2.0, 10.0), (3.0, 1e9)], Some(1.0));
        check(&[(1.0, 3.0), (2.0, 2.0), (9.0, 1.0)], Some(-1.0));
        // Ranks 0.5, 0.5, 2 and 0, 1, 2: 1.5 / sqrt(1.5 * 2).
        check(&[(1.0, 1.0), (1.0, 2.0), (2.0, 3.0)], Some(0.75_f64.sqrt()));
    }

    #[test]
    fn of_values_all_alike_there_is_none() {
        check(&[(1.0, 1.0), (1.0, 2.0)], None);
        check(&[], None);
    }
}
