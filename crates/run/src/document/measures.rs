//! The measures of a run: a value for each, and the summary of one.

use miserly_sim::{Distribution, MEASURES, Measures};
use serde::{Deserialize, Serialize};

/// A value for each measure of the jobs, in the order of [`Measures::all`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct PerMeasure<T> {
    /// Time in the queue, in seconds.
    pub wait: T,
    /// Time in the system, in seconds.
    pub response: T,
    /// Response / runtime, over jobs with a runtime above 0.
    pub slowdown: T,
    /// (wait + max(run, 10 s)) / max(run, 10 s).
    pub bounded_slowdown: T,
    /// max(1, response / max(run, 10 s)).
    pub bounded_slowdown_standard: T,
    /// Response / (processors x max(run, 10 s)).
    pub width_slowdown: T,
}

/// The measures of the measured jobs.
pub type MetricsDoc = PerMeasure<MeasureDoc>;

/// The summary of a measure; null if no job has the measure.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct MeasureDoc {
    /// Number of jobs.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Nearest-rank median.
    pub median: Option<f64>,
    /// Nearest-rank 95th percentile.
    pub p95: Option<f64>,
    /// Nearest-rank 99th percentile.
    pub p99: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
}

/// Keys of the measures in documents.
pub(super) const KEYS: [&str; MEASURES] =
    ["wait", "response", "slowdown", "bounded_slowdown", "bounded_slowdown_standard", "width_slowdown"];

impl<T> PerMeasure<T> {
    /// Returns the values that `value` gives for the position of each measure.
    pub fn from_fn(value: impl FnMut(usize) -> T) -> PerMeasure<T> {
        let [wait, response, slowdown, bounded_slowdown, bounded_slowdown_standard, width_slowdown] =
            std::array::from_fn(value);
        PerMeasure { wait, response, slowdown, bounded_slowdown, bounded_slowdown_standard, width_slowdown }
    }

    /// Returns the values in order.
    pub fn all(&self) -> [&T; MEASURES] {
        let PerMeasure {
            wait,
            response,
            slowdown,
            bounded_slowdown,
            bounded_slowdown_standard,
            width_slowdown,
        } = self;
        [wait, response, slowdown, bounded_slowdown, bounded_slowdown_standard, width_slowdown]
    }
}

impl MetricsDoc {
    /// Summarises each measure.
    pub(super) fn new(measures: &mut Measures) -> MetricsDoc {
        let summaries = measures.all_mut().map(MeasureDoc::new);
        PerMeasure::from_fn(|measure| summaries[measure])
    }
}

impl MeasureDoc {
    /// Summarises one measure.
    pub(super) fn new(measured: &mut Distribution) -> MeasureDoc {
        let miserly_sim::Summary { mean, median, p95, p99, max } = measured.summary();
        MeasureDoc { count: measured.count(), mean, median, p95, p99, max }
    }
}
