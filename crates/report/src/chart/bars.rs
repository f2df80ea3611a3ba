//! Bars: histograms, and bars by category.

use maud::{Markup, html};

use super::data::{Bin, Chart, Scale};
use super::draw::Drawn;
use super::frame::Frame;
use super::ink::Px;
use super::scale::Extent;
use super::values::{number, time};

const TALL: f64 = 260.0;

/// The part of a bar that is left free on each side, in units of the drawing, where there is room.
const APART: f64 = 0.5;

pub(super) fn draw(chart: &Chart, bins: &[Bin]) -> Drawn {
    let shown: Vec<&Bin> = bins.iter().filter(|bin| has_place(chart, bin)).collect();
    let frame = Frame::new(chart, 0.0, TALL, extents(chart, &shown));
    let marks = html! {
        @if shown.is_empty() {
            (frame.empty())
        } @else {
            (frame.behind())
            g class="bars s0" { @for bin in &shown { (bar(chart, &frame, bin)) } }
            (frame.before())
        }
    };
    Drawn { marks, foot: frame.foot(), notes: notes(chart, bins), ..Drawn::default() }
}

/// What has no place on the axes. An empty bin on a logarithmic axis is none of it: no bar is what it should be.
fn notes(chart: &Chart, bins: &[Bin]) -> Vec<String> {
    let lost = bins.iter().filter(|bin| !has_place(chart, bin) && bin.value != 0.0).count();
    let note = format!("{lost} bars have no place on these axes (not above zero, or not a number)");
    (lost > 0).then_some(note).into_iter().collect()
}

fn has_place(chart: &Chart, bin: &Bin) -> bool {
    chart.x.scale.has(bin.from) && chart.x.scale.has(bin.to) && chart.y.scale.has(bin.value)
}

/// Bars stand on zero: it is among the values, unless the axis is logarithmic.
fn extents(chart: &Chart, bins: &[&Bin]) -> [Option<Extent>; 2] {
    let values = bins.iter().map(|bin| bin.value);
    let floor = if chart.y.scale.is_log() {
        bins.iter().map(|bin| bin.value / 2.0).reduce(f64::min)
    } else {
        Some(0.0)
    };
    [
        Extent::of(&chart.x, bins.iter().flat_map(|bin| [bin.from, bin.to])),
        Extent::of(&chart.y, values.chain(floor)),
    ]
}

fn bar(chart: &Chart, frame: &Frame, bin: &Bin) -> Markup {
    let place = |value| frame.x.place(value).unwrap_or(frame.left);
    // An axis may run the other way.
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

/// What a reader is told who points at the bar.
fn title(chart: &Chart, bin: &Bin) -> String {
    let value = number(bin.value, bin.value / 1000.0);
    let end = |at: f64| match &chart.x.scale {
        Scale::Seconds | Scale::LogSeconds => time(at),
        _ => number(at, (bin.to - bin.from) / 10.0),
    };
    match chart.x.scale.name(f64::midpoint(bin.from, bin.to)) {
        Some(name) => format!("{name}: {value}"),
        None => format!("{} to {}: {value}", end(bin.from), end(bin.to)),
    }
}
