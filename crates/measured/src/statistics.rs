//! Figures of a few measurements.

/// Measurements of one quantity.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Adds a measurement, if there is one.
    pub(crate) fn extend(&mut self, value: Option<f64>) {
        self.0.extend(value);
    }

    pub(crate) fn values(&self) -> &[f64] {
        &self.0
    }

    /// Returns the mean, or `None` without a measurement.
    pub(crate) fn mean(&self) -> Option<f64> {
        let count = self.0.len();
        (count > 0).then(|| self.0.iter().sum::<f64>() / count as f64)
    }

    /// Returns the coefficient of variation: the standard deviation of the sample over its mean. `None` with fewer than two
    /// measurements.
    pub(crate) fn variation(&self) -> Option<f64> {
        let (mean, count) = (self.mean()?, self.0.len());
        let squares: f64 = self.0.iter().map(|value| (value - mean).powi(2)).sum();
        (count > 1 && mean > 0.0).then(|| (squares / (count - 1) as f64).sqrt() / mean)
    }

    /// Returns the least measurement that at least a share of the others does not exceed (nearest rank).
    pub(crate) fn percentile(&self, share: f64) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        // A rank, at most the length.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
    }

    pub(crate) fn least(&self) -> Option<f64> {
        self.0.iter().copied().reduce(f64::min)
    }

    pub(crate) fn most(&self) -> Option<f64> {
        self.0.iter().copied().reduce(f64::max)
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Sample {
        Sample(values.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_variation_and_percentiles() {
        let sample: Sample = [2.0, 4.0, 6.0].into_iter().collect();
        assert_eq!((sample.mean(), sample.variation()), (Some(4.0), Some(0.5)));
        let hundred: Sample = (1..=100).rev().map(f64::from).collect();
        assert_eq!(
            [0.0, 0.5, 0.99, 1.0].map(|share| hundred.percentile(share)),
            [1.0, 50.0, 99.0, 100.0].map(Some)
        );
        assert_eq!((hundred.least(), hundred.most()), (Some(1.0), Some(100.0)));
        let one: Sample = [3.0].into_iter().collect();
        assert_eq!((one.mean(), one.variation(), one.percentile(0.99)), (Some(3.0), None, Some(3.0)));
        assert_eq!((Sample::default().mean(), Sample::default().percentile(0.5)), (None, None));
    }
}
