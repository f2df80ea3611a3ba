//! The matrix of a gang scheduler at one instant: slots by processors.

use maud::{Markup, html};

use super::colours;
use super::data::{Axis, AxisScale, Body, Chart, MatrixJob, MatrixPlace};
use super::draw::Drawing;
use super::frame::PlotFrame;
use super::ink::{ENLARGED, LETTERS, Px, SvgPath, TIGHT, text_width};
use super::instant::MatrixSnapshot;
use super::legend::{Legend, LegendEntry};
use super::readout::{MatrixJobReadout, MatrixPlaceReadout, Plot, Readout};
use super::scale::Extent;

/// Least and greatest height of the plot, and preferred height of a slot.
const TALL: (f64, f64, f64) = (80.0, 420.0, 30.0);

/// Maximum number of labelled slots. Beyond that, only every second, third, ... slot is labelled.
const NUMBERED: u32 = 24;

/// Maximum number of drawn slots.
const DRAWN: u32 = 1_000;

/// Number of job colours, assigned in order of first appearance. The next colour is the legend's.
const COLOURS: usize = 6;

/// The data of a matrix chart.
pub(super) struct MatrixView<'a> {
    pub(super) procs: u32,
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) jobs: &'a [MatrixJob],
    pub(super) places: &'a [MatrixPlace],
}

pub(super) fn draw(chart: &Chart, matrix: &MatrixView<'_>) -> Drawing {
    let slots = matrix.places.iter().map(|place| place.slot.saturating_add(1)).max().unwrap_or(0);
    let (slots, notes) = drawable(slots);
    let chart = &bounded(chart, matrix.procs, slots);
    let legend = Legend::new(keys());
    let tall = (f64::from(slots) * TALL.2).clamp(TALL.0, TALL.1);
    let frame = PlotFrame::new(chart, legend.tall, tall, [None::<Extent>, None]);
    let bounded = matrix.from.is_finite() && matrix.to.is_finite();
    let fullest = matrix.fullest().filter(|_| matrix.procs > 0 && bounded);
    let Some(at) = fullest else {
        return Drawing { marks: frame.empty(), foot: frame.foot(), ..Drawing::default() };
    };
    let snapshot = MatrixSnapshot::new(matrix, at);
    let rows = SlotRows { frame: &frame, tall: (frame.bottom - frame.top) / f64::from(slots.max(1)), slots };
    let marks = html! {
        (legend.draw())
        (frame.behind())
        g class="places" { @for place in &snapshot.places { (rows.place(&snapshot, matrix, place)) } }
        g class="numbers" { @for place in snapshot.places.iter().filter(|place| place.own) { (rows.number(matrix, place)) } }
        g class="guests" { @for place in snapshot.places.iter().filter(|place| !place.own) { (rows.number(matrix, place)) } }
        (frame.before())
        text class="note instant" x="8" y=(Px(frame.foot() + LETTERS)) { (snapshot.slots_used()) }
    };
    let foot = frame.foot() + LETTERS * 1.4;
    let readout = Readout::Matrix {
        plot: Plot::new(&frame),
        procs: matrix.procs,
        slots,
        from: matrix.from,
        to: matrix.to,
        at,
        jobs: matrix.jobs.iter().map(MatrixJobReadout::new).collect(),
        places: matrix.places.iter().map(MatrixPlaceReadout::new).collect(),
    };
    Drawing {
        marks,
        foot,
        notes,
        readout: Some(readout),
        description: Some(snapshot.description(matrix.procs)),
        is_scene: false,
    }
}

/// Returns the number of drawn slots, with a note if some are omitted.
pub(super) fn drawable(slots: u32) -> (u32, Vec<String>) {
    let note = || format!("Of {slots} slots, the first {DRAWN} are drawn.");
    (slots.min(DRAWN), (slots > DRAWN).then(note).into_iter().collect())
}

/// Returns the chart with the axes of the machine and its slots.
fn bounded(chart: &Chart, procs: u32, slots: u32) -> Chart {
    let x = Axis { scale: AxisScale::Linear, ..chart.x.clone().between(0.0, f64::from(procs.max(1))) };
    with_axes(chart, x, slots_axis(&chart.y.label, slots))
}

/// Returns an empty chart with these axes.
pub(super) fn with_axes(chart: &Chart, x: Axis, y: Axis) -> Chart {
    let body = Body::Lines { series: Vec::new() };
    Chart { id: chart.id.clone(), title: String::new(), caption: None, x, y, body }
}

/// Returns an axis of slots with the first one on top.
pub(super) fn slots_axis(label: &str, slots: u32) -> Axis {
    let every = slots.div_ceil(NUMBERED).max(1);
    let name = |slot: u32| if slot.is_multiple_of(every) { slot.to_string() } else { String::new() };
    Axis::category(label, (0..slots).map(name).collect())
}

fn keys() -> Vec<LegendEntry> {
    let entry = |class, name: &str| LegendEntry {
        name: name.into(),
        key: job_key(&format!("{class}{}", colours::series(COLOURS))),
    };
    vec![
        entry("", "a job's own slot"),
        entry("guest ", "an alternate slot: no other job needs its processors there"),
    ]
}

/// Returns the key of jobs of this class in a legend.
pub(super) fn job_key(class: &str) -> Markup {
    html! { rect class={ "job " (class) } x="2" y="-6" width="18" height="12" {} }
}

/// Draws the number of a job in a rectangle (left, top, width, height), if it fits.
pub(super) fn number_in(rect: Option<[f64; 4]>, number: i64) -> Markup {
    let number = number.to_string();
    let wide = text_width(&number) * ENLARGED + 4.0;
    let tight = rect.is_some_and(|rect| rect[2] <= wide || rect[3] <= LETTERS * ENLARGED);
    let room = rect.filter(|rect| rect[2] > text_width(&number) + 4.0 && rect[3] > LETTERS);
    html! {
        @if let Some([left, top, wide, tall]) = room {
            text class=[tight.then_some(TIGHT)] text-anchor="middle" x=(Px(left + wide / 2.0)) y=(Px(top + tall / 2.0 + LETTERS * 0.35)) { (number) }
        }
    }
}

/// The geometry of the slots.
struct SlotRows<'a> {
    frame: &'a PlotFrame<'a>,
    tall: f64,
    slots: u32,
}

impl SlotRows<'_> {
    /// Returns the rectangle of a processor range in a slot: left, top, width, height.
    fn rect(&self, slot: u32, (low, high): (u32, u32)) -> Option<[f64; 4]> {
        if slot >= self.slots {
            return None;
        }
        let (left, right) = (self.frame.x.place(f64::from(low))?, self.frame.x.place(f64::from(high) + 1.0)?);
        let gap = (self.tall * 0.1).min(2.0);
        let top = self.frame.top + f64::from(slot) * self.tall + gap / 2.0;
        Some([left, top, (right - left).max(0.5), (self.tall - gap).max(0.5)])
    }

    fn place(&self, snapshot: &MatrixSnapshot<'_>, matrix: &MatrixView<'_>, place: &MatrixPlace) -> Markup {
        let mut path = SvgPath::default();
        for [left, top, wide, tall] in place.pes.iter().filter_map(|&pes| self.rect(place.slot, pes)) {
            path.rect(left, top, wide, tall);
        }
        let class = if place.own { "job " } else { "job guest " };
        html! {
            path class={ (class) (colours::series(place.job % COLOURS)) } d=(path) {
                @if let Some(job) = matrix.jobs.get(place.job) { title { (snapshot.place_description(job, place)) } }
            }
        }
    }

    /// Draws the job's number in its widest range, if it fits.
    fn number(&self, matrix: &MatrixView<'_>, place: &MatrixPlace) -> Markup {
        let rects = place.pes.iter().filter_map(|&pes| self.rect(place.slot, pes));
        let widest = rects.max_by(|one, other| one[2].total_cmp(&other[2]));
        matrix.jobs.get(place.job).map_or_else(Markup::default, |job| number_in(widest, job.number))
    }
}
