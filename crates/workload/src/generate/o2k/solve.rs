//! Search for the exponent at which a sum has a target value.

/// Bound of the tried exponents as powers of e, in both directions: from nearly 0 to very large.
pub(super) const STRAIN_MOST: f64 = 4.0;

/// Steps of bisection, which determine the exponent to one part in a hundred million.
const STEPS: u32 = 30;

/// Returns the exponent at which `sum`, a decreasing function, is nearest to `target`.
pub(super) fn exponent(target: f64, sum: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-STRAIN_MOST, STRAIN_MOST);
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if sum(middle.exp()) > target { low = middle } else { high = middle }
    }
    f64::midpoint(low, high).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_exponent_or_the_end_of_the_range() {
        let power = |exponent: f64| 0.5_f64.powf(exponent);
        assert!((exponent(0.125, power) - 3.0).abs() < 1e-6);
        assert!(exponent(2.0, power) < 0.02);
        assert!(exponent(-1.0, power) > 50.0);
    }
}
