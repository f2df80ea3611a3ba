//! What the document of a run tells beyond its measures: how sure they are, of whom, and how they spread.

use miserly_core::Span;
use miserly_sim::{BATCH_JOBS_LEAST, BATCHES_LEAST, Batches, Interval, MEASURES, Metrics};
use serde::Serialize;

use super::document::Outcome;

/// One figure for each mean measure; null where it is not defined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PerMeasure {
    /// Of the wait, seconds.
    pub wait: Option<f64>,
    /// Of the response, seconds.
    pub response: Option<f64>,
    /// Of the slowdown.
    pub slowdown: Option<f64>,
    /// Of the bounded slowdown.
    pub bounded_slowdown: Option<f64>,
    /// Of its standard form.
    pub bounded_slowdown_standard: Option<f64>,
    /// Of the width-normalised slowdown.
    pub width_slowdown: Option<f64>,
}

/// How far the means may be from those of a longer log of the same kind: the method of batch means.
///
/// It holds where batches are long enough to be nearly independent, and nothing is told where they are seen not to be.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Uncertainty {
    /// Full batches of jobs that follow each other in the order of submission, or of termination where the run was measured so.
    pub batches: u64,
    /// Jobs in each: a power of two, or what was asked for.
    pub jobs_per_batch: u64,
    /// The level of the confidence intervals: 0.95.
    pub level: f64,
    /// Half the width of each mean's interval, in the measure's unit; null with fewer than 10 batches, fewer than 64
    /// jobs in each, or where the measure's `autocorrelation` is beyond chance (2 / sqrt(batches)).
    pub half_width: PerMeasure,
    /// The correlation of each batch mean with the next, -1 to 1; null with fewer than 10 batches, or where all are alike.
    pub autocorrelation: PerMeasure,
}

/// The difference of two policies' means of one measure on one log, by pairs of batches of the same jobs.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// The log's name.
    pub trace: String,
    /// The measure, by its key in `metrics`.
    pub measure: &'static str,
    /// The first policy.
    pub policy_a: String,
    /// The second.
    pub policy_b: String,
    /// The mean of the pairs' differences, first minus second, in the measure's unit.
    pub mean: Option<f64>,
    /// Half the width of its 95 % interval; null where it could not be trusted, as in [`Uncertainty`].
    pub half_width: Option<f64>,
    /// The correlation of each pair's difference with the next; null with fewer than 10 pairs, or where all are alike.
    pub autocorrelation: Option<f64>,
    /// Whether the interval holds 0; null without an interval.
    pub within_noise: Option<bool>,
}

/// How good promises were as forecasts, over the measured jobs (Zotkin et al. §8).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Guarantees {
    /// The share of jobs that did not wait, 0 to 1.
    pub started_at_once: Option<f64>,
    /// Jobs that waited and had been promised a start.
    pub promised_and_waited: u64,
    /// Their promised wait / actual wait.
    pub ratio: GuaranteeRatio,
}

/// Promised wait / actual wait, over the jobs that waited and were promised a start.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct GuaranteeRatio {
    /// The nearest-rank median.
    pub median: Option<f64>,
    /// The nearest-rank 80th percentile.
    pub p80: Option<f64>,
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
}

/// A cumulative distribution: pairs of a value and the share of jobs at or below it, at fixed shares.
pub type Cdf = Vec<(f64, f64)>;

/// What is told only where it is asked for.
#[derive(Clone, Debug, Serialize)]
pub struct Details {
    /// How the measures spread.
    pub cdf: Cdfs,
    /// The run over time.
    pub series: Series,
}

/// Cumulative distributions over the measured jobs.
#[derive(Clone, Debug, Serialize)]
pub struct Cdfs {
    /// Of the wait, seconds.
    pub wait: Cdf,
    /// Of the response, seconds.
    pub response: Cdf,
    /// Of the bounded slowdown.
    pub bounded_slowdown: Cdf,
    /// Of promised wait / actual wait.
    pub guarantees: Cdf,
}

/// The whole run over time, in buckets of one width. Bucket i is from `from` + i x `step` up to the next.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// Where the first bucket begins, seconds of the log: a multiple of `step`.
    pub from: f64,
    /// The width of a bucket, seconds: a power of two.
    pub step: f64,
    /// Busy processors, on the average over the bucket.
    pub busy: Vec<f64>,
    /// Waiting jobs, on the average over the bucket.
    pub waiting: Vec<f64>,
    /// Jobs shorter than a minute that ended in the bucket (Zotkin et al., Figures 9 and 10).
    pub short_jobs_ended: Vec<u64>,
    /// Jobs that ended in the bucket.
    pub jobs_ended: Vec<u64>,
}

/// The keys of the measures, in the order of `Measures::all`.
pub(super) const KEYS: [&str; MEASURES] =
    ["wait", "response", "slowdown", "bounded_slowdown", "bounded_slowdown_standard", "width_slowdown"];

impl PerMeasure {
    fn of(figure: impl Fn(usize) -> Option<f64>) -> PerMeasure {
        let [wait, response, slowdown, bounded_slowdown, bounded_slowdown_standard, width_slowdown] =
            std::array::from_fn(figure);
        PerMeasure { wait, response, slowdown, bounded_slowdown, bounded_slowdown_standard, width_slowdown }
    }

    /// Each under the name that tables have for it.
    fn named(&self) -> [(&'static str, Option<f64>); MEASURES] {
        [
            ("wait", self.wait),
            ("response", self.response),
            ("slowdown", self.slowdown),
            ("bounded slowdown", self.bounded_slowdown),
            ("standard form", self.bounded_slowdown_standard),
            ("per processor", self.width_slowdown),
        ]
    }

    /// Whether any of them is defined.
    pub(super) fn any(&self) -> bool {
        self.named().iter().any(|(_, figure)| figure.is_some())
    }
}

impl Uncertainty {
    /// What the batches tell.
    pub fn of(batches: &Batches) -> Uncertainty {
        let intervals: [Interval; MEASURES] = std::array::from_fn(|measure| batches.interval(measure));
        Uncertainty {
            batches: batches.full() as u64,
            jobs_per_batch: batches.size(),
            level: 0.95,
            half_width: PerMeasure::of(|measure| intervals[measure].half_width),
            autocorrelation: PerMeasure::of(|measure| intervals[measure].autocorrelation),
        }
    }

    /// A remark for people: why a mean wait, or another one, stands without its half-width.
    pub fn note(&self) -> Option<String> {
        let jobs = self.jobs_per_batch;
        if self.batches < BATCHES_LEAST as u64 {
            return None;
        }
        if jobs < BATCH_JOBS_LEAST {
            let jobs = if jobs == 1 { "1 job".to_owned() } else { format!("{jobs} jobs") };
            return Some(format!("no ±: batches of {jobs} are too short ({BATCH_JOBS_LEAST} at least)"));
        }
        let (half_widths, correlations) = (self.half_width.named(), self.autocorrelation.named());
        let alike = half_widths.iter().zip(correlations).filter(|((_, half_width), _)| half_width.is_none());
        let alike: Vec<String> =
            alike.filter_map(|(_, (name, r))| Some(format!("{name} (r {:.2})", r?))).collect();
        (!alike.is_empty()).then(|| format!("no ±, neighbouring batches are alike: {}", alike.join(", ")))
    }
}

impl Guarantees {
    /// What was measured of the promises.
    pub fn of(measured: &mut miserly_sim::Guarantees) -> Guarantees {
        let summary = measured.ratio.summary();
        let p80 = measured.ratio.percentile(80);
        Guarantees {
            started_at_once: measured.started_at_once(),
            promised_and_waited: measured.ratio.count(),
            ratio: GuaranteeRatio { median: summary.median, p80, mean: summary.mean, max: summary.max },
        }
    }
}

impl Details {
    /// The distributions, and the series that watched the same run.
    pub fn of(metrics: &mut Metrics, series: &miserly_sim::Series) -> Details {
        let measures = &mut metrics.measures;
        let cdf = Cdfs {
            wait: measures.wait.cdf(),
            response: measures.response.cdf(),
            bounded_slowdown: measures.bounded_slowdown.cdf(),
            guarantees: metrics.guarantees.ratio.cdf(),
        };
        Details { cdf, series: Series::of(series) }
    }
}

impl Series {
    fn of(series: &miserly_sim::Series) -> Series {
        let (buckets, width) = (series.buckets(), series.step().ticks() as f64);
        Series {
            from: (series.from() - miserly_core::Time::ZERO).as_secs_f64(),
            step: Span::as_secs_f64(series.step()),
            busy: buckets.iter().map(|bucket| bucket.busy as f64 / width).collect(),
            waiting: buckets.iter().map(|bucket| bucket.waiting as f64 / width).collect(),
            short_jobs_ended: buckets.iter().map(|bucket| bucket.short).collect(),
            jobs_ended: buckets.iter().map(|bucket| bucket.ended).collect(),
        }
    }
}

/// The differences of every two runs of one log, measure by measure.
pub fn differences(runs: &[&Outcome]) -> Vec<Difference> {
    let pairs = runs.iter().enumerate().flat_map(|(at, a)| runs[at + 1..].iter().map(move |b| (*a, *b)));
    pairs.flat_map(|(a, b)| (0..MEASURES).map(move |measure| Difference::of(a, b, measure))).collect()
}

impl Difference {
    /// Of the measure at that place in `Measures::all`.
    pub(super) fn of(a: &Outcome, b: &Outcome, measure: usize) -> Difference {
        let Interval { mean, half_width, autocorrelation } = a.batch_sums.difference(&b.batch_sums, measure);
        Difference {
            trace: a.trace.name.clone(),
            measure: KEYS[measure],
            policy_a: a.policy.clone(),
            policy_b: b.policy.clone(),
            mean,
            half_width,
            autocorrelation,
            within_noise: mean.zip(half_width).map(|(mean, half_width)| mean.abs() <= half_width),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(batches: u64, jobs_per_batch: u64, half_width: Option<f64>, expect: Option<&str>) {
        let (half_width, autocorrelation) = (PerMeasure::of(|_| half_width), PerMeasure::of(|_| Some(0.1)));
        let half_width = PerMeasure { wait: None, ..half_width };
        let autocorrelation = PerMeasure { wait: Some(0.62), ..autocorrelation };
        let told = Uncertainty { batches, jobs_per_batch, level: 0.95, half_width, autocorrelation };
        assert_eq!(told.note().as_deref(), expect);
    }

    #[test]
    fn the_note_says_why_there_is_no_half_width() {
        check(9, 1, None, None);
        check(40, 1, None, Some("no ±: batches of 1 job are too short (64 at least)"));
        check(40, 32, None, Some("no ±: batches of 32 jobs are too short (64 at least)"));
        check(40, 64, Some(3.0), Some("no ±, neighbouring batches are alike: wait (r 0.62)"));
    }
}
