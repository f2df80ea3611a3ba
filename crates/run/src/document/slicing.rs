//! Document parts of time-sliced runs and of runs measured in batches by termination.

use std::collections::BTreeMap;

use miserly_core::{Procs, Time};
use miserly_sim::{BatchRule, Interval, MEASURES, Mark, Metrics, Window};
use serde::{Deserialize, Serialize};

use super::measures::{KEYS, MeasureDoc};

/// The results of time slicing.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct SlicingDoc {
    /// Slots in which each measured job ran, as a mean over its residence time.
    ///
    /// Jobs without residence time are excluded.
    pub slots: MeasureDoc,
    /// Runtime over residence time of each measured job, 0 to 1.
    pub run_fraction: MeasureDoc,
    /// Slots in use.
    pub rows: SlotsDoc,
    /// Slot unifications at terminations, over the whole run.
    pub unifications: u64,
    /// Slot unifications per ended job.
    pub unifications_per_termination: Option<f64>,
}

/// The number of slots in use.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct SlotsDoc {
    /// Mean over the makespan.
    pub mean: Option<f64>,
    /// Maximum.
    pub max: usize,
}

impl SlicingDoc {
    /// Creates the document from the metrics of a time-sliced run.
    pub(crate) fn new(metrics: &mut Metrics) -> SlicingDoc {
        let (ended, unifications) = (metrics.simulated(), metrics.sliced.unifications);
        let rows = SlotsDoc { mean: metrics.used_slots(), max: metrics.sliced.most_slots };
        SlicingDoc {
            slots: MeasureDoc::new(&mut metrics.sliced.slots),
            run_fraction: MeasureDoc::new(&mut metrics.sliced.run_fraction),
            rows,
            unifications,
            unifications_per_termination: (ended > 0).then(|| unifications as f64 / ended as f64),
        }
    }
}

/// The choice of measured terminations.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BatchSettings {
    /// Terminations per batch.
    pub jobs: u64,
    /// Measured batches.
    pub count: u64,
    /// Discarded batches before them.
    #[serde(default)]
    pub discard: u64,
}

impl From<BatchRule> for BatchSettings {
    fn from(BatchRule { jobs, count, discard }: BatchRule) -> BatchSettings {
        BatchSettings { jobs, count, discard }
    }
}

/// A run measured in batches by termination, from the begin of the first batch to the end of the
/// last.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct BatchesDoc {
    /// Begin of the first batch in seconds of the log.
    pub from: f64,
    /// End of the last batch in seconds of the log.
    pub to: f64,
    /// Work submitted in this interval as a share of the machine's capacity, 0 or more.
    pub offered: Option<f64>,
    /// Work done in this interval as a share of the machine's capacity, 0 to 1.
    pub utilization: Option<f64>,
    /// Jobs in the system at the begin.
    pub jobs_at_begin: usize,
    /// Jobs in the system at the end. Steady growth means that the queue is unstable.
    pub jobs_at_end: usize,
    /// Mean number of slots in use in this interval, with time slicing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<f64>,
    /// Slot unifications per termination, with time slicing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unifications: Option<f64>,
    /// Half widths of the 95 % intervals of these figures; null if an interval is unreliable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_width: Option<SlicedFigures<Option<f64>>>,
    /// Whether no job arrived any more before the end. The last batches are then those of a
    /// draining system.
    pub log_at_its_end: bool,
    /// Mean of each batch, by measure.
    pub means: MeansDoc,
}

/// A value for each figure of time slicing.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SlicedFigures<T> {
    /// Slots per job.
    pub slots: T,
    /// Slots in use.
    pub rows: T,
    /// Slot unifications per termination.
    pub unifications: T,
}

/// The figures of each batch in order.
pub type EachBatch = SlicedFigures<Vec<Option<f64>>>;

/// The mean of each batch in order; null if no job of the batch has the measure.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(from = "MeansFields")]
pub struct MeansDoc {
    /// Measures of every run.
    #[serde(flatten)]
    pub measures: BTreeMap<String, Vec<Option<f64>>>,
    /// Measures of time-sliced runs.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub sliced: Option<EachBatch>,
}

/// The fields of [`MeansDoc`] in the order in which they are read: the map takes the remaining ones.
#[derive(Deserialize)]
struct MeansFields {
    #[serde(flatten)]
    sliced: Option<EachBatch>,
    #[serde(flatten)]
    measures: BTreeMap<String, Vec<Option<f64>>>,
}

impl From<MeansFields> for MeansDoc {
    fn from(MeansFields { sliced, measures }: MeansFields) -> MeansDoc {
        MeansDoc { measures, sliced }
    }
}

impl BatchesDoc {
    /// Creates the document for a machine of `procs` processors.
    ///
    /// Returns `None` for a run without batches or with an incomplete batch.
    pub(crate) fn new(
        metrics: &Metrics,
        procs: Procs,
        slices: bool,
        log_at_its_end: bool,
    ) -> Option<BatchesDoc> {
        let window = metrics.window.as_ref()?;
        let (begin, end) = window.ends()?;
        let capacity = (end.at - begin.at).ticks() as f64 * procs.get() as f64;
        let share =
            |work: fn(&Mark) -> u128| (capacity > 0.0).then(|| (work(end) - work(begin)) as f64 / capacity);
        let figures = slices.then(|| figures(window));
        let mean =
            |values: fn(&EachBatch) -> &[Option<f64>]| interval(window, values(figures.as_ref()?)).mean;
        Some(BatchesDoc {
            from: (begin.at - Time::ZERO).as_secs_f64(),
            to: (end.at - Time::ZERO).as_secs_f64(),
            offered: share(|mark| mark.submitted_work),
            utilization: share(|mark| mark.done),
            jobs_at_begin: begin.jobs,
            jobs_at_end: end.jobs,
            rows: mean(|figures| &figures.rows),
            unifications: mean(|figures| &figures.unifications),
            half_width: figures.as_ref().map(|figures| half_widths(window, figures)),
            log_at_its_end,
            means: MeansDoc { measures: measures(metrics), sliced: figures },
        })
    }
}

fn measures(metrics: &Metrics) -> BTreeMap<String, Vec<Option<f64>>> {
    (0..MEASURES)
        .map(|measure| (KEYS[measure].to_owned(), metrics.batches.means(measure).collect()))
        .collect()
}

fn figures(window: &Window) -> EachBatch {
    let some = |figures: Vec<f64>| figures.into_iter().map(Some).collect();
    SlicedFigures {
        slots: window.slots(),
        rows: some(window.used_slots()),
        unifications: some(window.unifications()),
    }
}

fn half_widths(window: &Window, figures: &EachBatch) -> SlicedFigures<Option<f64>> {
    let half_width = |figures| interval(window, figures).half_width;
    SlicedFigures {
        slots: half_width(&figures.slots),
        rows: half_width(&figures.rows),
        unifications: half_width(&figures.unifications),
    }
}

fn interval(window: &Window, figures: &[Option<f64>]) -> Interval {
    window.interval(&figures.iter().copied().flatten().collect::<Vec<_>>())
}
