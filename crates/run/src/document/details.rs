//! Further parts of a run's document: uncertainty, promises, distributions and series.

use miserly_core::Span;
use miserly_sim::{Batches, Interval, MEASURES, Metrics};
use serde::{Deserialize, Serialize};

use super::measures::PerMeasure;

/// The uncertainty of the means by the method of batch means.
///
/// It estimates the distance to the means of a longer log of the same kind. The method requires
/// nearly independent batches, and figures are omitted if they are not.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct UncertaintyDoc {
    /// Full batches of consecutive jobs, by submission or by termination as the run was measured.
    pub batches: u64,
    /// Jobs per batch: a power of two, or as requested.
    pub jobs_per_batch: u64,
    /// Level of the confidence intervals: 0.95.
    pub level: f64,
    /// Half width of each mean's interval in the unit of the measure.
    ///
    /// Null with fewer than 10 batches, with fewer than 64 jobs per batch, or with a significant
    /// autocorrelation. The bound of the autocorrelation is 2 / sqrt(batches).
    pub half_width: PerMeasure<Option<f64>>,
    /// Correlation of each batch mean with the next, -1 to 1.
    ///
    /// Null with fewer than 10 batches or without variance.
    pub autocorrelation: PerMeasure<Option<f64>>,
}

/// The quality of promises as forecasts, over the measured jobs (Zotkin et al. §8).
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct GuaranteesDoc {
    /// Share of jobs that did not wait, 0 to 1.
    pub without_wait: Option<f64>,
    /// Jobs that waited and had a promised start.
    pub promised_and_waited: u64,
    /// Promised wait / actual wait of these jobs.
    pub ratio: GuaranteeRatio,
    /// First reservations and starts.
    pub reservations: ReservationsDoc,
}

/// First reservations against starts, over the measured jobs that had a reservation (Tsafrir, Etsion, Feitelson §6).
///
/// A reservation is a start that the policy promised or planned ahead: of every job under conservative backfilling, of
/// the head of the queue under EASY.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct ReservationsDoc {
    /// Jobs that had a reservation.
    pub jobs: u64,
    /// Mean of the time between the first reservation and the start, in seconds.
    pub mean_error: Option<f64>,
    /// Jobs that started after it, as a share of all measured jobs, 0 to 1.
    pub late: Option<f64>,
}

/// Promised wait / actual wait, over the jobs that waited and had a promised start.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct GuaranteeRatio {
    /// Nearest-rank median.
    pub median: Option<f64>,
    /// Nearest-rank 80th percentile.
    pub p80: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
}

/// A cumulative distribution: values with the share of jobs at or below them, at fixed shares.
pub type Cdf = Vec<(f64, f64)>;

/// Parts of the document that are present only on request.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct DetailsDoc {
    /// Distributions of the measures.
    pub cdf: CdfsDoc,
    /// The run over time.
    pub series: SeriesDoc,
}

/// Cumulative distributions over the measured jobs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CdfsDoc {
    /// Wait in seconds.
    pub wait: Cdf,
    /// Response time in seconds.
    pub response: Cdf,
    /// Bounded slowdown.
    pub bounded_slowdown: Cdf,
    /// Promised wait / actual wait.
    pub guarantees: Cdf,
}

/// The whole run over time in equal buckets. Bucket i covers `from` + i x `step` up to the next.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct SeriesDoc {
    /// Begin of the first bucket in seconds of the log, a multiple of `step`.
    pub from: f64,
    /// Width of a bucket in seconds, a power of two.
    pub step: f64,
    /// Mean number of busy processors in the bucket.
    pub busy: Vec<f64>,
    /// Mean number of waiting jobs in the bucket.
    pub waiting: Vec<f64>,
    /// Jobs shorter than a minute that ended in the bucket (Zotkin et al., Figures 9 and 10).
    pub short_jobs_ended: Vec<u64>,
    /// Jobs that ended in the bucket.
    pub jobs_ended: Vec<u64>,
}

impl UncertaintyDoc {
    /// Creates the document from the batches of a run.
    pub(super) fn new(batches: &Batches) -> UncertaintyDoc {
        let intervals: [Interval; MEASURES] = std::array::from_fn(|measure| batches.interval(measure));
        UncertaintyDoc {
            batches: batches.full() as u64,
            jobs_per_batch: batches.size(),
            level: 0.95,
            half_width: PerMeasure::from_fn(|measure| intervals[measure].half_width),
            autocorrelation: PerMeasure::from_fn(|measure| intervals[measure].autocorrelation),
        }
    }
}

impl GuaranteesDoc {
    /// Creates the document from the measured promises.
    pub(super) fn new(measured: &mut miserly_sim::Guarantees) -> GuaranteesDoc {
        let summary = measured.ratio.summary();
        let p80 = measured.ratio.percentile(80);
        GuaranteesDoc {
            without_wait: measured.without_wait(),
            promised_and_waited: measured.ratio.count(),
            ratio: GuaranteeRatio { median: summary.median, p80, mean: summary.mean, max: summary.max },
            reservations: ReservationsDoc::new(measured),
        }
    }
}

impl ReservationsDoc {
    fn new(measured: &mut miserly_sim::Guarantees) -> ReservationsDoc {
        let jobs = measured.reservation_error.count();
        ReservationsDoc {
            jobs,
            mean_error: measured.reservation_error.summary().mean,
            late: measured.after_reservation(),
        }
    }
}

impl DetailsDoc {
    /// Creates the details from the metrics and the series of the same run.
    pub(crate) fn new(metrics: &mut Metrics, series: &miserly_sim::Series) -> DetailsDoc {
        let measures = &mut metrics.measures;
        let cdf = CdfsDoc {
            wait: measures.wait.cdf(),
            response: measures.response.cdf(),
            bounded_slowdown: measures.bounded_slowdown.cdf(),
            guarantees: metrics.guarantees.ratio.cdf(),
        };
        DetailsDoc { cdf, series: SeriesDoc::new(series) }
    }
}

impl SeriesDoc {
    fn new(series: &miserly_sim::Series) -> SeriesDoc {
        let (buckets, width) = (series.buckets(), series.step().ticks() as f64);
        SeriesDoc {
            from: (series.from() - miserly_core::Time::ZERO).as_secs_f64(),
            step: Span::as_secs_f64(series.step()),
            busy: buckets.iter().map(|bucket| bucket.busy as f64 / width).collect(),
            waiting: buckets.iter().map(|bucket| bucket.waiting as f64 / width).collect(),
            short_jobs_ended: buckets.iter().map(|bucket| bucket.short).collect(),
            jobs_ended: buckets.iter().map(|bucket| bucket.ended).collect(),
        }
    }
}
