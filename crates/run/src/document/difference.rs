//! The differences of runs of one log.

use miserly_sim::{Interval, MEASURES};
use serde::{Deserialize, Serialize};

use super::measures::KEYS;
use super::run::RunDoc;

/// The difference of two policies' means of one measure on one log, by paired batches of the same
/// jobs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct DifferenceDoc {
    /// Name of the log.
    pub trace: String,
    /// Measure, by its key in `metrics`.
    pub measure: String,
    /// First policy.
    pub policy_a: String,
    /// Second policy.
    pub policy_b: String,
    /// Mean paired difference, first minus second, in the unit of the measure.
    pub mean: Option<f64>,
    /// Half width of its 95 % interval; null if unreliable, as in [`UncertaintyDoc`](super::UncertaintyDoc).
    pub half_width: Option<f64>,
    /// Correlation of each paired difference with the next; null with fewer than 10 pairs or
    /// without variance.
    pub autocorrelation: Option<f64>,
    /// Whether the interval contains 0; null without an interval.
    pub within_noise: Option<bool>,
}

/// Returns the differences of all pairs of runs of one log, for each measure.
pub fn differences(runs: &[&RunDoc]) -> Vec<DifferenceDoc> {
    let pairs = runs.iter().enumerate().flat_map(|(at, a)| runs[at + 1..].iter().map(move |b| (*a, *b)));
    pairs.flat_map(|(a, b)| (0..MEASURES).map(move |measure| DifferenceDoc::new(a, b, measure))).collect()
}

impl DifferenceDoc {
    /// Compares two runs by the measure at this position in `Measures::all`.
    pub fn new(a: &RunDoc, b: &RunDoc, measure: usize) -> DifferenceDoc {
        let interval = a.batch_sums.difference(&b.batch_sums, measure);
        let Interval { mean, half_width, autocorrelation } = interval;
        DifferenceDoc {
            trace: a.trace.name.clone(),
            measure: KEYS[measure].to_owned(),
            policy_a: a.policy.clone(),
            policy_b: b.policy.clone(),
            mean,
            half_width,
            autocorrelation,
            within_noise: interval.within_noise(),
        }
    }
}
