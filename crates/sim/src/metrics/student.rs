//! Student's t.

use std::f64::consts::FRAC_2_PI;

/// The 0.975 quantile of the normal distribution.
const NORMAL: f64 = 1.959_963_984_540_054;

/// The 0.975 quantile of Student's t with 1 to 8 degrees of freedom, where the expansion is too
/// imprecise.
const FEW: [f64; 8] =
    [12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004];

/// Returns the 0.975 quantile of Student's t with `freedom` degrees of freedom.
///
/// It is half of a 95 % interval in standard errors. The error is within 2 x 10^-4. The result is
/// infinite with no degree of freedom.
///
/// # Source
/// The expansion of Cornish and Fisher, Abramowitz and Stegun 26.7.5.
pub(super) fn student_t_95(freedom: usize) -> f64 {
    match freedom.checked_sub(1) {
        None => return f64::INFINITY,
        Some(at) if at < FEW.len() => return FEW[at],
        Some(_) => {}
    }
    let (x, n) = (NORMAL, freedom as f64);
    let powers = [3, 5, 7, 9].map(|power| x.powi(power));
    let [x3, x5, x7, x9] = powers;
    let terms = [
        (x3 + x) / 4.0,
        (5.0 * x5 + 16.0 * x3 + 3.0 * x) / 96.0,
        (3.0 * x7 + 19.0 * x5 + 17.0 * x3 - 15.0 * x) / 384.0,
        (79.0 * x9 + 776.0 * x7 + 1482.0 * x5 - 1920.0 * x3 - 945.0 * x) / 92_160.0,
    ];
    x + terms[0] / n + terms[1] / n.powi(2) + terms[2] / n.powi(3) + terms[3] / n.powi(4)
}

/// Returns the mean of values that were drawn alike, and half of its 95 % interval; `None` for one value.
pub fn mean_with_half_width(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let half_width = (values.len() > 1).then(|| {
        let deviation = (squares / (n - 1.0)).sqrt();
        student_t_95(values.len() - 1) * deviation / n.sqrt()
    });
    (mean, half_width)
}

/// Returns half of an interval of Student's t in standard errors, so wide that `tested` such intervals hold together with
/// 95 % (Bonferroni). The error is within 10^-9 with several.
///
/// # Source
/// The distribution with whole degrees of freedom, Abramowitz and Stegun 26.7.3 and 26.7.4.
pub(super) fn student_t(freedom: usize, tested: usize) -> f64 {
    if tested <= 1 || freedom == 0 {
        return student_t_95(freedom);
    }
    let outside = 0.05 / tested as f64;
    let is_short = |t: f64| 1.0 - within(t, freedom) > outside;
    let (mut low, mut high) = (0.0, 1.0);
    while is_short(high) {
        (low, high) = (high, 2.0 * high);
    }
    while high - low > 1e-10 * high {
        let middle = f64::midpoint(low, high);
        if is_short(middle) { low = middle } else { high = middle }
    }
    high
}

/// Returns the probability of a value between -t and t.
fn within(t: f64, freedom: usize) -> f64 {
    let n = freedom as f64;
    let (cosine_square, sine) = (n / (n + t * t), t / (n + t * t).sqrt());
    let is_odd = !freedom.is_multiple_of(2);
    let mut term = if is_odd { cosine_square.sqrt() } else { 1.0 };
    let mut sum = if freedom == 1 { 0.0 } else { term };
    for factor in (if is_odd { 3 } else { 2 }..freedom).step_by(2) {
        term *= cosine_square * (factor as f64 - 1.0) / factor as f64;
        sum += term;
    }
    if is_odd { (libm::atan(t / n.sqrt()) + sine * sum) * FRAC_2_PI } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 2 to 200 intervals together: the quantiles 1 - 0.025 / tested of printed tables.
    #[test]
    fn several_intervals_are_wider() {
        for (freedom, tested, printed) in [
            (1, 5, 63.656_741),
            (9, 5, 3.249_836),
            (10, 5, 3.169_273),
            (20, 50, 3.849_516),
            (63, 5, 2.656_145),
            (60, 50, 3.460_200),
        ] {
            let quantile = student_t(freedom, tested);
            assert!((quantile - printed).abs() < 1e-5 * printed, "{freedom}, {tested}: {quantile}");
        }
        for freedom in 1..100 {
            // The quantile of one interval, from the same distribution.
            let one = within(student_t_95(freedom), freedom);
            assert!((one - 0.95).abs() < 2e-5, "{freedom}: {one}");
        }
        assert!(student_t(0, 3).is_infinite());
    }

    #[test]
    fn as_printed_in_tables() {
        for (freedom, printed) in [
            (1, 12.706_205),
            (8, 2.306_004),
            (9, 2.262_157),
            (10, 2.228_139),
            (20, 2.085_963),
            (31, 2.039_513),
            (63, 1.998_341),
        ] {
            let quantile = student_t_95(freedom);
            assert!((quantile - printed).abs() < 2e-4, "{freedom}: {quantile}");
        }
    }
}
