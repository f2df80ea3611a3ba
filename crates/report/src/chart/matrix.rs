//! The matrix of a gang scheduler at one instant: slots by processors.

use maud::{Markup, html};

use super::colours;
use super::data::{Axis, Body, Chart, MatrixJob, MatrixPlace, Scale};
use super::draw::Drawn;
use super::frame::Frame;
use super::ink::{LETTERS, Path, Px, text_width};
use super::instant::Instant;
use super::legend::{Entry, Legend};
use super::readout::{MatrixJobReadout, MatrixPlaceReadout, Plot, Readout};
use super::scale::Extent;

/// The least and the greatest height of the plot, and what a slot would like to have.
const TALL: (f64, f64, f64) = (80.0, 420.0, 30.0);

/// So many slots have their numbers beside them; of more, each second, third...
const NUMBERED: u32 = 24;

/// More slots than that are no picture.
const DRAWN: u32 = 1_000;

/// The colours that jobs have in turn, in the order in which they first come; the next one is the legend's.
const COLOURS: usize = 6;

/// What there is to draw.
pub(super) struct Slots<'a> {
    pub(super) procs: u32,
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) jobs: &'a [MatrixJob],
    pub(super) places: &'a [MatrixPlace],
}

pub(super) fn draw(chart: &Chart, matrix: &Slots<'_>) -> Drawn {
    let slots = matrix.places.iter().map(|place| place.slot.saturating_add(1)).max().unwrap_or(0);
    let (slots, notes) = drawable(slots);
    let chart = &bounded(chart, matrix.procs, slots);
    let legend = Legend::new(keys());
    let tall = (f64::from(slots) * TALL.2).clamp(TALL.0, TALL.1);
    let frame = Frame::new(chart, legend.tall, tall, [None::<Extent>, None]);
    let bounded = matrix.from.is_finite() && matrix.to.is_finite();
    let fullest = matrix.fullest().filter(|_| matrix.procs > 0 && bounded);
    let Some(at) = fullest else {
        return Drawn { marks: frame.empty(), foot: frame.foot(), ..Drawn::default() };
    };
    let now = Instant::of(matrix, at);
    let rows = Rows { frame: &frame, tall: (frame.bottom - frame.top) / f64::from(slots.max(1)), slots };
    let marks = html! {
        (legend.draw())
        (frame.behind())
        g class="places" { @for place in &now.places { (rows.place(&now, matrix, place)) } }
        g class="numbers" { @for place in now.places.iter().filter(|place| place.own) { (rows.number(matrix, place)) } }
        g class="guests" { @for place in now.places.iter().filter(|place| !place.own) { (rows.number(matrix, place)) } }
        (frame.before())
        text class="note instant" x="8" y=(Px(frame.foot() + LETTERS)) { (now.short()) }
    };
    let foot = frame.foot() + LETTERS * 1.4;
    let readout = Readout::Matrix {
        plot: Plot::of(&frame),
        procs: matrix.procs,
        slots,
        from: matrix.from,
        to: matrix.to,
        at,
        jobs: matrix.jobs.iter().map(MatrixJobReadout::of).collect(),
        places: matrix.places.iter().map(MatrixPlaceReadout::of).collect(),
    };
    Drawn { marks, foot, notes, readout: Some(readout), said: Some(now.said(matrix.procs)) }
}

/// How many of so many slots are drawn, and what to say if that is not all.
pub(super) fn drawable(slots: u32) -> (u32, Vec<String>) {
    let note = || format!("Of {slots} slots, the first {DRAWN} are drawn.");
    (slots.min(DRAWN), (slots > DRAWN).then(note).into_iter().collect())
}

/// The chart with the axes of the machine and of its slots.
fn bounded(chart: &Chart, procs: u32, slots: u32) -> Chart {
    let x = Axis { scale: Scale::Linear, ..chart.x.clone().between(0.0, f64::from(procs.max(1))) };
    let y = slots_axis(&chart.y.label, slots);
    let body = Body::Lines { series: Vec::new() };
    Chart { id: chart.id.clone(), title: String::new(), caption: None, x, y, body }
}

/// An axis of slots, the first one above.
pub(super) fn slots_axis(label: &str, slots: u32) -> Axis {
    let every = slots.div_ceil(NUMBERED).max(1);
    let name = |slot: u32| if slot.is_multiple_of(every) { slot.to_string() } else { String::new() };
    Axis::category(label, (0..slots).map(name).collect())
}

fn keys() -> Vec<Entry> {
    let key = |class: &str| {
        html! { rect class={ "job " (class) (colours::series(COLOURS)) } x="2" y="-6" width="18" height="12" {} }
    };
    let entry = |class, name: &str| Entry { name: name.into(), key: key(class) };
    vec![
        entry("", "a job's own place"),
        entry("guest ", "where it also runs, since nobody else needs its processors there"),
    ]
}

/// Where the slots lie.
struct Rows<'a> {
    frame: &'a Frame<'a>,
    tall: f64,
    slots: u32,
}

impl Rows<'_> {
    /// Where a range of processors of a slot lies: left, top, width, height.
    fn rect(&self, slot: u32, (low, high): (u32, u32)) -> Option<[f64; 4]> {
        if slot >= self.slots {
            return None;
        }
        let (left, right) = (self.frame.x.place(f64::from(low))?, self.frame.x.place(f64::from(high) + 1.0)?);
        let gap = (self.tall * 0.1).min(2.0);
        let top = self.frame.top + f64::from(slot) * self.tall + gap / 2.0;
        Some([left, top, (right - left).max(0.5), (self.tall - gap).max(0.5)])
    }

    fn place(&self, now: &Instant<'_>, matrix: &Slots<'_>, place: &MatrixPlace) -> Markup {
        let mut path = Path::default();
        for [left, top, wide, tall] in place.pes.iter().filter_map(|&pes| self.rect(place.slot, pes)) {
            path.rect(left, top, wide, tall);
        }
        let class = if place.own { "job " } else { "job guest " };
        html! {
            path class={ (class) (colours::series(place.job % COLOURS)) } d=(path) {
                @if let Some(job) = matrix.jobs.get(place.job) { title { (now.told(job, place)) } }
            }
        }
    }

    /// The job's number, in its widest range, if there is room.
    fn number(&self, matrix: &Slots<'_>, place: &MatrixPlace) -> Markup {
        let rects = place.pes.iter().filter_map(|&pes| self.rect(place.slot, pes));
        let widest = rects.max_by(|one, other| one[2].total_cmp(&other[2]));
        let number = matrix.jobs.get(place.job).map(|job| job.number.to_string()).unwrap_or_default();
        let room = widest.filter(|rect| rect[2] > text_width(&number) + 4.0 && rect[3] > LETTERS);
        html! {
            @if let Some([left, top, wide, tall]) = room {
                text text-anchor="middle" x=(Px(left + wide / 2.0)) y=(Px(top + tall / 2.0 + LETTERS * 0.35)) { (number) }
            }
        }
    }
}
