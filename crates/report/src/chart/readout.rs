//! What the page's script needs beyond the drawing: what to say where, and how to draw a schedule again when it is zoomed.

use serde::Serialize;

use super::data::{GanttJob, MatrixJob, MatrixPlace, Scale};
use super::frame::Frame;
use super::values::{number, time};

/// What belongs to one chart. The script knows nothing of scales: places are in the units of the drawing, and values are text.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Readout {
    /// The points that a reader may point at, series by series.
    Points { plot: Plot, series: Vec<SeriesReadout> },
    /// The jobs, to draw any part of the window.
    Gantt { plot: Plot, procs: u32, slots: u32, from: f64, to: f64, jobs: Vec<JobReadout> },
    /// The places in a matrix, to draw it at any instant of the window; `at` is the one that is drawn.
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

/// Where the plot lies.
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
    /// Where it lies and what it is: x, y, and both as text.
    pub(super) points: Vec<(f64, f64, String, String)>,
}

/// A job: number, colour, submitted, started, ended, user, key, its processors as inclusive ranges, and, of a stay, which
/// of how many it is.
#[derive(Serialize)]
pub(crate) struct JobReadout(
    i64,
    usize,
    f64,
    f64,
    f64,
    Option<String>,
    String,
    Vec<(u32, u32)>,
    Option<(usize, usize)>,
);

/// A job in a matrix: number, submitted, user.
#[derive(Serialize)]
pub(crate) struct MatrixJobReadout(i64, f64, Option<String>);

/// A place: job, slot, 1 if it is the job's own, from, to, its processors as inclusive ranges.
#[derive(Serialize)]
pub(crate) struct MatrixPlaceReadout(usize, u32, u8, f64, f64, Vec<(u32, u32)>);

impl Plot {
    pub(super) fn of(frame: &Frame) -> Plot {
        let [left, top, right, bottom] = [frame.left, frame.top, frame.right, frame.bottom].map(hundredths);
        Plot { left, top, right, bottom }
    }
}

impl JobReadout {
    pub(super) fn of(job: &GanttJob, colour: usize) -> JobReadout {
        let times = [job.submit, job.start, job.end].map(finite);
        JobReadout(
            job.number,
            colour,
            times[0],
            times[1],
            times[2],
            job.user.clone(),
            job.key.clone(),
            job.pes.clone(),
            job.part,
        )
    }
}

impl MatrixJobReadout {
    pub(super) fn of(job: &MatrixJob) -> MatrixJobReadout {
        MatrixJobReadout(job.number, finite(job.submit), job.user.clone())
    }
}

impl MatrixPlaceReadout {
    pub(super) fn of(place: &MatrixPlace) -> MatrixPlaceReadout {
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

/// A number that JSON has.
fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

pub(super) fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// A value as a reader wants it: with about four digits, or as a time, or by its name.
pub(super) fn shown(scale: &Scale, value: f64) -> String {
    match scale {
        Scale::Seconds | Scale::LogSeconds => time(value),
        Scale::Linear | Scale::Log => number(value, value.abs() / 1000.0),
        Scale::Category(_) => scale.name(value).map_or_else(|| number(value, 1.0), str::to_owned),
    }
}
