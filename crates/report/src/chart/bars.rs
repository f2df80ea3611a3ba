//! Bars: histograms and bars by category.

use maud::{Markup, html};

use super::data::{AxisScale, Bar, Chart};
use super::draw::Drawing;
use super::frame::PlotFrame;
use super::ink::Px;
use super::scale::Extent;
use super::values::{number, time};

const TALL: f64 = 260.0;

/// Gap on each side of a bar in drawing units, if the bar is wide enough.
const APART: f64 = 0.5;

pub(super) fn draw(chart: &Chart, bins: &[Bar]) -> Drawing {
    let shown: Vec<&Bar> = bins.iter().filter(|bin| has_place(chart, bin)).collect();
    let frame = PlotFrame::new(chart, 0.0, TALL, extents(chart, &shown));
    let marks = html! {
        @if shown.is_empty() {
            (frame.empty())
        } @else {
            (frame.behind())
            g class="bars s0" { @for bin in &shown { (bar(chart, &frame, bin)) } }
            (frame.before())
        }
    };
    Drawing { marks, foot: frame.foot(), notes: notes(chart, bins), ..Drawing::default() }
}

/// Returns a note on bars outside the axes. Empty bars on a logarithmic axis are correctly
/// invisible and not counted.
fn notes(chart: &Chart, bins: &[Bar]) -> Vec<String> {
    let lost = bins.iter().filter(|bin| !has_place(chart, bin) && bin.value != 0.0).count();
    let note = format!("{lost} bars not drawn (not above zero, or not a number)");
    (lost > 0).then_some(note).into_iter().collect()
}

fn has_place(chart: &Chart, bin: &Bar) -> bool {
    chart.x.scale.has(bin.from) && chart.x.scale.has(bin.to) && chart.y.scale.has(bin.value)
}

/// Returns the extents of the axes. The y axis includes zero unless it is logarithmic.
fn extents(chart: &Chart, bins: &[&Bar]) -> [Option<Extent>; 2] {
    let values = bins.iter().map(|bin| bin.value);
    let floor = if chart.y.scale.is_log() {
        bins.iter().map(|bin| bin.value / 2.0).reduce(f64::min)
    } else {
        Some(0.0)
    };
    [
        Extent::from_values(&chart.x, bins.iter().flat_map(|bin| [bin.from, bin.to])),
        Extent::from_values(&chart.y, values.chain(floor)),
    ]
}

fn bar(chart: &Chart, frame: &PlotFrame, bin: &Bar) -> Markup {
    let place = |value| frame.x.place(value).unwrap_or(frame.left);
    // The axis may be reversed.
    let (one, other) = (place(bin.from), place(bin.to));
    let (left, right) = (one.min(other), one.max(other));
    let foot = frame.y.place(0.0).unwrap_or(frame.y.start());
    let head = frame.y.place(bin.value).unwrap_or(foot);
    let apart = if right - left > 4.0 * APART { APART } else { 0.0 };
    html! {
        rect x=(Px(left + apart)) y=(Px(head.min(foot))) width=(Px(right - left - 2.0 * apart)) height=(Px((foot - head).abs())) {
            title { (title(chart, bin)) }
        }
    }
}

/// Returns the tooltip of a bar.
fn title(chart: &Chart, bin: &Bar) -> String {
    let value = number(bin.value, bin.value / 1000.0);
    let end = |at: f64| match &chart.x.scale {
        AxisScale::Seconds | AxisScale::LogSeconds => time(at),
        _ => number(at, (bin.to - bin.from) / 10.0),
    };
    match chart.x.scale.name(f64::midpoint(bin.from, bin.to)) {
        Some(name) => format!("{name}: {value}"),
        None => format!("{} to {}: {value}", end(bin.from), end(bin.to)),
    }
}
