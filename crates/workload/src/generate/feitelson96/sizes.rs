//! Weights of sizes.

use super::Feitelson96;
use crate::generate::random::harmonic;

impl Feitelson96 {
    /// Returns the weight of a size: harmonic, then tailored.
    pub(in crate::generate) fn size_weight(&self, size: u32) -> f64 {
        let small = if size <= self.small_max { self.small_weight } else { 1.0 };
        harmonic(size, self.size_order) * small * self.interest(size)
    }

    /// Returns the greatest factor of the kinds of a size.
    fn interest(&self, size: u32) -> f64 {
        let full = (size == self.procs).then_some(self.full_machine_weight);
        let plus_one =
            size.checked_sub(1).and_then(|below| self.roundness(below)).map(|_| self.plus_one_weight);
        let reasons = [full, self.roundness(size), plus_one];
        reasons.into_iter().flatten().reduce(f64::max).unwrap_or(1.0)
    }

    /// Returns the factor of powers of two, squares and multiples of ten, or `None` for other
    /// sizes.
    fn roundness(&self, size: u32) -> Option<f64> {
        if size < self.interesting_from {
            return None;
        }
        let square = u64::from(size.isqrt()).pow(2) == u64::from(size);
        let reasons = [
            size.is_power_of_two().then_some(self.power_of_two_weight),
            square.then_some(self.square_weight),
            size.is_multiple_of(10).then_some(self.multiple_of_ten_weight),
        ];
        reasons.into_iter().flatten().reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(weight: impl Fn(u32) -> f64, sizes: &[u32], expect: f64) {
        for &size in sizes {
            let weight = weight(size);
            assert!((weight - expect).abs() < 1e-12, "{size}: {weight} is not {expect}");
        }
    }

    #[test]
    fn interesting_sizes() {
        let model = Feitelson96 { procs: 100, ..Feitelson96::default() };
        let interest = |size| model.interest(size);
        check(interest, &[1, 2, 3, 6, 7, 12], 1.0);
        check(interest, &[4, 8, 16, 64], 10.0);
        check(interest, &[9, 25, 49, 81, 10, 20, 90], 3.0);
        check(interest, &[5, 11, 17, 26, 51, 65], 2.0);
        check(interest, &[100], 30.0);
    }

    #[test]
    fn harmonic_and_small() {
        let model = Feitelson96::default();
        let weight = |size| model.size_weight(size);
        check(weight, &[1], 1.5);
        check(weight, &[4], 1.5 * 10.0 / 8.0);
        check(weight, &[16], 10.0 / 64.0);
    }
}
