//! What the document of a run tells where processors are sliced in time, and of runs that are measured in batches by termination.

use miserly_core::Time;
use miserly_sim::{BatchRule, Interval, MEASURES, Mark, Metrics, Window};
use serde::Serialize;

use super::details::KEYS;
use super::document::Measure;

/// What the slicing of time came to.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SlicingDoc {
    /// The rows in which each measured job ran, as a mean over its time on the machine. Jobs that were there for no time are left out.
    pub slots: Measure,
    /// The share of its time on the machine that each measured job ran, 0 to 1: its runtime over that time.
    pub run_fraction: Measure,
    /// The rows that were used.
    pub rows: RowsDoc,
    /// How often rows were united at terminations, over the whole run.
    pub unifications: u64,
    /// That over the jobs that ended.
    pub unifications_per_termination: Option<f64>,
}

/// The rows that were used.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RowsDoc {
    /// On the average over the makespan.
    pub mean: Option<f64>,
    /// At most.
    pub max: usize,
}

impl SlicingDoc {
    /// As it was measured, if a policy sliced time.
    pub fn of(metrics: &mut Metrics) -> SlicingDoc {
        let (ended, unifications) = (metrics.simulated(), metrics.sliced.unifications);
        let rows = RowsDoc { mean: metrics.rows(), max: metrics.sliced.most_rows };
        SlicingDoc {
            slots: Measure::of(&mut metrics.sliced.slots),
            run_fraction: Measure::of(&mut metrics.sliced.run_fraction),
            rows,
            unifications,
            unifications_per_termination: (ended > 0).then(|| unifications as f64 / ended as f64),
        }
    }
}

/// Which terminations of a run are measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BatchSettings {
    /// Terminations in a batch.
    pub jobs: u64,
    /// Batches that are measured.
    pub count: u64,
    /// Batches before them that are not.
    pub discard: u64,
}

impl From<BatchRule> for BatchSettings {
    fn from(BatchRule { jobs, count, discard }: BatchRule) -> BatchSettings {
        BatchSettings { jobs, count, discard }
    }
}

/// A run that is measured in batches by termination, from the begin of the first one to the end of the last.
#[derive(Clone, Debug, Serialize)]
pub struct BatchesDoc {
    /// Where the first batch begins, seconds of the log.
    pub from: f64,
    /// Where the last one ends.
    pub to: f64,
    /// The work of the jobs that were submitted between these, as a share of what the machine could do, 0 or more.
    pub offered: Option<f64>,
    /// The work that was done, likewise, 0 to 1.
    pub utilization: Option<f64>,
    /// Jobs in the system at the begin.
    pub jobs_at_begin: usize,
    /// And at the end: where they are ever more, the means are those of a queue that grows.
    pub jobs_at_end: usize,
    /// The rows that were used, over that time, where time is sliced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<f64>,
    /// Unifications per termination, where time is sliced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unifications: Option<f64>,
    /// Half the widths of the 95 % intervals of these two and of the slots; null where an interval could not be trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_width: Option<SlicedFigures<Option<f64>>>,
    /// Whether nobody came any more when the last batch ended: then the last batches are those of a system that empties.
    pub log_at_its_end: bool,
    /// The mean of each batch, by measure.
    pub means: MeansDoc,
}

/// A figure for each thing that is told where time is sliced.
#[derive(Clone, Debug, Serialize)]
pub struct SlicedFigures<T> {
    /// The slots of jobs.
    pub slots: T,
    /// The rows that are used.
    pub rows: T,
    /// Unifications per termination.
    pub unifications: T,
}

/// The figures of each batch, in order.
pub type EachBatch = SlicedFigures<Vec<Option<f64>>>;

/// The mean of each batch, in order; null where no job of it has the measure.
#[derive(Clone, Debug, Serialize)]
pub struct MeansDoc {
    /// By the measures that there are of every run.
    #[serde(flatten)]
    pub measures: std::collections::BTreeMap<&'static str, Vec<Option<f64>>>,
    /// And by those that there are where time is sliced.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub sliced: Option<EachBatch>,
}

impl BatchesDoc {
    /// As it was measured, on so many processors; `None` if the run is not in batches, or not all of them are full.
    pub fn of(metrics: &Metrics, procs: u32, slices: bool, log_at_its_end: bool) -> Option<BatchesDoc> {
        let window = metrics.window.as_ref()?;
        let (begin, end) = window.ends()?;
        let capacity = (end.at - begin.at).ticks() as f64 * f64::from(procs);
        let share = |of: fn(&Mark) -> u128| (capacity > 0.0).then(|| (of(end) - of(begin)) as f64 / capacity);
        let figures = slices.then(|| figures(window));
        let mean = |of: fn(&EachBatch) -> &[Option<f64>]| interval(window, of(figures.as_ref()?)).mean;
        Some(BatchesDoc {
            from: (begin.at - Time::ZERO).as_secs_f64(),
            to: (end.at - Time::ZERO).as_secs_f64(),
            offered: share(|mark| mark.arrived),
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

fn measures(metrics: &Metrics) -> std::collections::BTreeMap<&'static str, Vec<Option<f64>>> {
    (0..MEASURES).map(|measure| (KEYS[measure], metrics.batches.means(measure).collect())).collect()
}

fn figures(window: &Window) -> EachBatch {
    let some = |figures: Vec<f64>| figures.into_iter().map(Some).collect();
    SlicedFigures {
        slots: window.slots(),
        rows: some(window.rows()),
        unifications: some(window.unifications()),
    }
}

fn half_widths(window: &Window, figures: &EachBatch) -> SlicedFigures<Option<f64>> {
    let of = |figures| interval(window, figures).half_width;
    SlicedFigures {
        slots: of(&figures.slots),
        rows: of(&figures.rows),
        unifications: of(&figures.unifications),
    }
}

fn interval(window: &Window, figures: &[Option<f64>]) -> Interval {
    window.interval(&figures.iter().copied().flatten().collect::<Vec<_>>())
}
