//! Bars side by side in groups, with intervals.

use maud::{Markup, html};

use super::colours;
use super::data::{AxisScale, BarSeries, Body, Chart, GroupBar};
use super::draw::Drawing;
use super::frame::PlotFrame;
use super::ink::{Px, SvgPath};
use super::legend::{Legend, LegendEntry};
use super::lines::undrawn;
use super::readout::shown;
use super::scale::Extent;

const TALL: f64 = 300.0;

/// Part of the room of a group that its bars take.
const FILLED: f64 = 0.8;

/// Part of the width of a bar that lies on either side of its middle in the caps of an interval.
const CAP: f64 = 0.25;

/// A bar with its group and the number of its series, at its place on the drawing.
struct Placed<'a> {
    bar: &'a GroupBar,
    group: usize,
    series: usize,
    left: f64,
    width: f64,
}

pub(super) fn draw(chart: &Chart, series: &[BarSeries]) -> Drawing {
    let drawing = &series[..series.len().min(Body::SERIES)];
    let legend = Legend::new(entries(drawing));
    let frame = PlotFrame::new(chart, legend.tall, TALL, [None, extent(chart, drawing)]);
    let bars = placed(chart, &frame, drawing);
    let marks = html! {
        (legend.draw())
        @if bars.is_empty() {
            (frame.empty())
        } @else {
            (frame.behind())
            @for n in 0..drawing.len() {
                g class={ "bars " (colours::series(n)) } {
                    @for placed in bars.iter().filter(|placed| placed.series == n) {
                        (bar(chart, &frame, &drawing[n].name, placed))
                    }
                }
            }
            g class="whiskers" { @for placed in &bars { (whisker(&frame, placed)) } }
            (frame.before())
        }
    };
    let all = drawing.iter().flat_map(|series| &series.bars).flatten().count();
    let lost = all - bars.len();
    let lost = (lost > 0).then(|| format!("{lost} bars not drawn (not above zero, or not a number)"));
    Drawing {
        marks,
        foot: frame.foot(),
        notes: undrawn(series.len()).into_iter().chain(lost).collect(),
        ..Drawing::default()
    }
}

fn entries(series: &[BarSeries]) -> Vec<LegendEntry> {
    let key = |n| html! { g class={ "bars " (colours::series(n)) } { rect x="5" y="-6" width="12" height="12" {} } };
    let entry = |(n, series): (usize, &BarSeries)| LegendEntry { name: series.name.clone(), key: key(n) };
    series.iter().enumerate().map(entry).collect()
}

/// Returns the extent of the y axis: with the intervals, and with zero unless the axis is logarithmic.
fn extent(chart: &Chart, series: &[BarSeries]) -> Option<Extent> {
    let bars = || series.iter().flat_map(|series| &series.bars).flatten();
    let ends = bars().flat_map(|bar| bar.interval.into_iter().flatten());
    let floor = if chart.y.scale.is_log() {
        bars().map(|bar| bar.value / 2.0).filter(|value| *value > 0.0).reduce(f64::min)
    } else {
        Some(0.0)
    };
    Extent::from_values(&chart.y, bars().map(|bar| bar.value).chain(ends).chain(floor))
}

fn placed<'a>(chart: &Chart, frame: &PlotFrame, series: &'a [BarSeries]) -> Vec<Placed<'a>> {
    let wide = FILLED / series.len().max(1) as f64;
    let mut bars = Vec::new();
    for (n, of_series) in series.iter().enumerate() {
        for (group, bar) in of_series.bars.iter().enumerate() {
            let Some(bar) = bar.as_ref().filter(|bar| chart.y.scale.has(bar.value)) else { continue };
            let from = group as f64 - FILLED / 2.0 + wide * n as f64;
            let (Some(left), Some(right)) = (frame.x.place(from), frame.x.place(from + wide)) else {
                continue;
            };
            bars.push(Placed { bar, group, series: n, left, width: right - left });
        }
    }
    bars
}

fn bar(
    chart: &Chart,
    frame: &PlotFrame,
    series: &str,
    Placed { bar, group, left, width, .. }: &Placed,
) -> Markup {
    let foot = frame.y.place(0.0).unwrap_or(frame.y.start());
    let head = frame.y.place(bar.value).unwrap_or(foot);
    let shown = |value| shown(&chart.y.scale, value);
    let interval = bar.interval.map(|[low, high]| format!(" ({} to {})", shown(low), shown(high)));
    let name = match &chart.x.scale {
        AxisScale::Category(names) => names.get(*group).map_or("", String::as_str),
        _ => "",
    };
    html! {
        rect x=(Px(*left)) y=(Px(head.min(foot))) width=(Px(*width)) height=(Px((foot - head).abs())) {
            title { (name) ", " (series) ": " (shown(bar.value)) (interval.unwrap_or_default()) }
        }
    }
}

/// Draws the interval of a bar. An end that has no place on the axis is at its lower end.
fn whisker(frame: &PlotFrame, placed: &Placed) -> Markup {
    let Some(ends) = placed.bar.interval else { return html! {} };
    let [low, high] = ends.map(|end| frame.y.place(end).unwrap_or(frame.y.start()));
    let middle = placed.left + placed.width / 2.0;
    let cap = placed.width * CAP;
    let across = |y: f64| SvgPath::along(&[(middle - cap, y), (middle + cap, y)]);
    let path = format!("{}{}{}", SvgPath::along(&[(middle, low), (middle, high)]), across(low), across(high));
    html! { path class="whisker" d=(path) {} }
}
