//! Data for the page's script: tooltips, and the contents of schedules to redraw when zoomed.

use miserly_scene::{ColourBy, Embedded};
use serde::Serialize;

use super::data::{AxisScale, GanttJob, MatrixJob, MatrixPlace};
use super::frame::PlotFrame;
use super::values::{number, time};

/// The data of one chart. Places are in drawing units and values are text, so the script needs no
/// scales.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Readout {
    /// Points with a tooltip, by series.
    Points { plot: Plot, series: Vec<SeriesReadout> },
    /// A schedule as the chart of a page draws it, with its first colours and what tooltips say of its jobs.
    Gantt { scene: Embedded, by: ColourBy, jobs: Vec<JobReadout> },
    /// Placements in a matrix, to draw it at any instant of the window. `at` is the instant drawn
    /// first.
    Matrix {
        plot: Plot,
        procs: u32,
        slots: u32,
        from: f64,
        to: f64,
        at: f64,
        jobs: Vec<MatrixJobReadout>,
        places: Vec<MatrixPlaceReadout>,
    },
}

/// Bounds of the plot.
#[derive(Serialize)]
pub(crate) struct Plot {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

#[derive(Serialize)]
pub(crate) struct SeriesReadout {
    pub(super) name: String,
    /// Place and value of each point: x, y, and both as text.
    pub(super) points: Vec<(f64, f64, String, String)>,
}

/// A job or an allocation: number, start and submission in milliseconds, processors, user, note.
#[derive(Serialize)]
pub(crate) struct JobReadout(i64, i64, i64, u64, Option<String>, String);

/// A job in a matrix: number, submission, user.
#[derive(Serialize)]
pub(crate) struct MatrixJobReadout(i64, f64, Option<String>);

/// A placement: job, slot, 1 for the own slot, start, end, processor ranges.
#[derive(Serialize)]
pub(crate) struct MatrixPlaceReadout(usize, u32, u8, f64, f64, Vec<(u32, u32)>);

impl Plot {
    pub(super) fn new(frame: &PlotFrame) -> Plot {
        let [left, top, right, bottom] = [frame.left, frame.top, frame.right, frame.bottom].map(hundredths);
        Plot { left, top, right, bottom }
    }

    /// Returns the bounds of plots one below the other.
    pub(super) fn spanning(first: &PlotFrame, last: &PlotFrame) -> Plot {
        Plot { top: hundredths(first.top), ..Plot::new(last) }
    }
}

impl JobReadout {
    pub(super) fn new(job: &GanttJob, start: i64, submit: i64) -> JobReadout {
        let note = job.note.as_ref().unwrap_or(&job.reason).clone();
        JobReadout(job.number, start, submit, job.held(), job.user.clone(), note)
    }
}

impl MatrixJobReadout {
    pub(super) fn new(job: &MatrixJob) -> MatrixJobReadout {
        MatrixJobReadout(job.number, finite(job.submit), job.user.clone())
    }
}

impl MatrixPlaceReadout {
    pub(super) fn new(place: &MatrixPlace) -> MatrixPlaceReadout {
        let own = u8::from(place.own);
        MatrixPlaceReadout(
            place.job,
            place.slot,
            own,
            finite(place.from),
            finite(place.to),
            place.pes.clone(),
        )
    }
}

/// Replaces a number that JSON cannot represent.
fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

pub(super) fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Formats a value for a tooltip: about four digits, a time, or a name.
pub(super) fn shown(scale: &AxisScale, value: f64) -> String {
    match scale {
        AxisScale::Seconds | AxisScale::LogSeconds => time(value),
        AxisScale::Dates(clock) => clock.minute(value),
        AxisScale::Linear | AxisScale::Log => number(value, value.abs() / 1000.0),
        AxisScale::Category(_) => scale.name(value).map_or_else(|| number(value, 1.0), str::to_owned),
    }
}
