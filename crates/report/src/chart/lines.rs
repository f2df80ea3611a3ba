//! Curves, steps and points.

use maud::{Markup, html};

use super::colours;
use super::data::{Body, Chart, DataSeries, Style};
use super::draw::Drawing;
use super::frame::PlotFrame;
use super::ink::{Px, SvgPath};
use super::legend::{Legend, LegendEntry};
use super::readout::{Plot, Readout, SeriesReadout, hundredths, shown};
use super::scale::Extent;

const TALL: f64 = 300.0;

/// Maximum number of points of a curve with marks.
const MARKED: usize = 40;

/// Maximum number of points drawn as large dots.
const FEW_DOTS: usize = 200;

/// Dash patterns that distinguish curves without colour; as many as there are marks below.
const DASHES: [&str; 5] = ["none", "7 3", "2 3", "9 3 2 3", "4 2"];

pub(super) fn draw(chart: &Chart, series: &[DataSeries]) -> Drawing {
    let drawing = &series[..series.len().min(Body::SERIES)];
    let legend = Legend::new(entries(drawing));
    let frame = PlotFrame::new(chart, legend.tall, TALL, extents(chart, drawing));
    let has_data = drawing.iter().any(|series| series.points.iter().any(|&point| has_place(chart, point)));
    let marks = html! {
        (legend.draw())
        @if has_data {
            (frame.behind())
            @for (n, series) in drawing.iter().enumerate() { (band(&frame, series.look(n), series)) }
            @for (n, series) in drawing.iter().enumerate() {
                (curve(&frame, series.look(n), series, is_covered(series, &drawing[n + 1..])))
            }
            (frame.before())
        } @else {
            (frame.empty())
        }
    };
    let readout = has_data
        .then(|| Readout::Points { plot: Plot::new(&frame), series: readouts(chart, &frame, drawing) });
    Drawing { marks, foot: frame.foot(), notes: notes(chart, series, drawing), readout, ..Drawing::default() }
}

/// Returns notes on omitted series and points.
fn notes(chart: &Chart, series: &[DataSeries], drawing: &[DataSeries]) -> Vec<String> {
    let points = drawing.iter().flat_map(|series| &series.points);
    let (placed, lost): (Vec<&_>, Vec<&_>) = points.partition(|&&point| has_place(chart, point));
    let lost = if placed.is_empty() { 0 } else { lost.len() as u64 };
    let lost = (lost > 0)
        .then(|| format!("{} points not drawn (not above zero, or not a number)", crate::count(lost)));
    undrawn(series.len()).into_iter().chain(lost).collect()
}

/// Returns the note on omitted series, of so many.
pub(super) fn undrawn(series: usize) -> Option<String> {
    let more = series.saturating_sub(Body::SERIES);
    (more > 0)
        .then(|| format!("{more} more series are not drawn: at most {} are distinguishable", Body::SERIES))
}

fn has_place(chart: &Chart, (x, y): (f64, f64)) -> bool {
    chart.x.scale.has(x) && chart.y.scale.has(y)
}

pub(super) fn extents(chart: &Chart, series: &[DataSeries]) -> [Option<Extent>; 2] {
    let points = || series.iter().flat_map(|series| &series.points);
    let bands = || series.iter().flat_map(|series| &series.band);
    let xs = points().map(|point| point.0).chain(bands().map(|band| band.0));
    let ys = points().map(|point| point.1).chain(bands().flat_map(|band| [band.1, band.2]));
    [Extent::from_values(&chart.x, xs), Extent::from_values(&chart.y, ys)]
}

/// A point: its place and its value.
#[derive(Clone, Copy)]
pub(super) struct PlotPoint {
    pub(super) place: (f64, f64),
    pub(super) value: (f64, f64),
}

/// Returns the points on the drawing within the x range, thinned to the resolution of a screen.
fn spots(frame: &PlotFrame, series: &DataSeries) -> Vec<PlotPoint> {
    let inside = series.points.iter().filter(|(x, _)| frame.x.holds(*x));
    let spots = inside.filter_map(|&(x, y)| {
        Some(PlotPoint { place: (frame.x.place(x)?, frame.y.place(y)?), value: (x, y) })
    });
    match series.style {
        Style::Points => apart(spots.collect()),
        Style::Line | Style::Reference | Style::Steps => thinned(&spots.collect::<Vec<_>>()),
    }
}

/// Returns whether a curve lies below another one. It is drawn so wide that both are visible.
fn is_covered(series: &DataSeries, above: &[DataSeries]) -> bool {
    let connects = |series: &DataSeries| matches!(series.style, Style::Line | Style::Steps);
    connects(series) && above.iter().any(|other| connects(other) && other.points == series.points)
}

fn curve(frame: &PlotFrame, n: usize, series: &DataSeries, is_covered: bool) -> Markup {
    let colour = colours::series(n);
    // A dashed line below a dashed one has no gap.
    let (class, dash) = if is_covered { ("line under ", "none") } else { ("line ", dash(n)) };
    let places: Vec<(f64, f64)> = spots(frame, series).into_iter().map(|spot| spot.place).collect();
    match series.style {
        Style::Points => {
            let size = if places.len() <= FEW_DOTS { "dots big " } else { "dots " };
            html! { path class={ (size) (colour) } d=(SvgPath::dots(&places)) {} }
        }
        Style::Steps => {
            html! { path class={ (class) (colour) } stroke-dasharray=(dash) d=(SvgPath::steps(&places)) {} }
        }
        Style::Reference => html! { path class="axis" d=(SvgPath::along(&places)) {} },
        Style::Line => html! {
            path class={ (class) (colour) } stroke-dasharray=(dash) d=(SvgPath::along(&places)) {}
            @if places.len() <= MARKED {
                g class={ "marks " (colour) } { @for &(x, y) in &places { (mark(n, x, y)) } }
            }
        },
    }
}

/// Keeps one of the points in each unit square.
fn apart(mut spots: Vec<PlotPoint>) -> Vec<PlotPoint> {
    // Places are small numbers.
    #[allow(clippy::cast_possible_truncation)]
    let square = |spot: &PlotPoint| (spot.place.0.round() as i32, spot.place.1.round() as i32);
    spots.sort_by_key(square);
    spots.dedup_by_key(|spot| square(spot));
    spots
}

/// Keeps at most four points per half unit of x: first, last, lowest and highest.
pub(super) fn thinned(spots: &[PlotPoint]) -> Vec<PlotPoint> {
    #[allow(clippy::cast_possible_truncation)]
    let column = |spot: &PlotPoint| (spot.place.0 * 2.0).floor() as i32;
    let mut kept = Vec::new();
    for run in spots.chunk_by(|left, right| column(left) == column(right)) {
        if run.len() <= 4 {
            kept.extend_from_slice(run);
            continue;
        }
        let height = |&n: &usize| run[n].place.1;
        let by_height = |left: &usize, right: &usize| height(left).total_cmp(&height(right));
        let (low, high) = ((0..run.len()).min_by(by_height), (0..run.len()).max_by(by_height));
        let mut picked = [0, low.unwrap_or(0), high.unwrap_or(0), run.len() - 1];
        picked.sort_unstable();
        kept.extend(picked.map(|n| run[n]));
    }
    kept
}

/// Returns the tooltips, at most one per unit of x for dense curves.
fn readouts(chart: &Chart, frame: &PlotFrame, series: &[DataSeries]) -> Vec<SeriesReadout> {
    let one = |series: &DataSeries| {
        let mut spots = spots(frame, series);
        if series.style != Style::Points {
            #[allow(clippy::cast_possible_truncation)]
            spots.dedup_by_key(|spot| spot.place.0.round() as i32);
        } else if spots.len() > POINTED {
            spots.clear();
        }
        let point = |PlotPoint { place, value }: &PlotPoint| {
            let texts = (shown(&chart.x.scale, value.0), shown(&chart.y.scale, value.1));
            (hundredths(place.0), hundredths(place.1), texts.0, texts.1)
        };
        SeriesReadout { name: series.name.clone(), points: spots.iter().map(point).collect() }
    };
    series.iter().map(one).collect()
}

/// Maximum number of points with tooltips in a scatter plot.
const POINTED: usize = 2_000;

fn band(frame: &PlotFrame, n: usize, series: &DataSeries) -> Markup {
    let inside = series.band.iter().filter(|(x, ..)| frame.x.holds(*x));
    let edges: Vec<(f64, f64, f64)> = inside
        .filter_map(|&(x, low, high)| Some((frame.x.place(x)?, frame.y.place(low)?, frame.y.place(high)?)))
        .collect();
    let above = edges.iter().map(|&(x, _, high)| (x, high));
    let below = edges.iter().rev().map(|&(x, low, _)| (x, low));
    let outline = SvgPath::along(&above.chain(below).collect::<Vec<_>>());
    html! {
        @if edges.len() > 1 {
            path class={ "band " (colours::series(n)) } d=(format!("{outline}Z")) {}
        }
    }
}

fn entries(series: &[DataSeries]) -> Vec<LegendEntry> {
    // A single series needs no legend: the title and the axis name it.
    if series.len() < 2 {
        return Vec::new();
    }
    series
        .iter()
        .enumerate()
        .map(|(n, series)| LegendEntry { name: series.name.clone(), key: key(series.look(n), series) })
        .collect()
}

fn key(n: usize, series: &DataSeries) -> Markup {
    let colour = colours::series(n);
    html! {
        @match series.style {
            Style::Points => path class={ "dots big " (colour) } d="M11 0h0" {},
            Style::Reference => path class="axis" d="M0 0H22" {},
            style => {
                path class={ "line " (colour) } stroke-dasharray=(dash(n)) d="M0 0H22" {}
                @if style == Style::Line && series.points.len() <= MARKED { g class={ "marks " (colour) } { (mark(n, 11.0, 0.0)) } }
            }
        }
    }
}

fn dash(n: usize) -> &'static str {
    DASHES[n % DASHES.len()]
}

/// Draws the mark of series `n`: circle, square, triangle, diamond, inverted triangle.
fn mark(n: usize, x: f64, y: f64) -> Markup {
    let path = |corners: &[(f64, f64)]| {
        let corners: Vec<_> = corners.iter().map(|(right, down)| (x + right, y + down)).collect();
        html! { path d={ (SvgPath::along(&corners)) "Z" } {} }
    };
    match n % 5 {
        0 => html! { circle cx=(Px(x)) cy=(Px(y)) r="3" {} },
        1 => path(&[(-3.0, -3.0), (3.0, -3.0), (3.0, 3.0), (-3.0, 3.0)]),
        2 => path(&[(0.0, -4.0), (4.0, 3.0), (-4.0, 3.0)]),
        3 => path(&[(0.0, -4.0), (4.0, 0.0), (0.0, 4.0), (-4.0, 0.0)]),
        _ => path(&[(0.0, 4.0), (4.0, -3.0), (-4.0, -3.0)]),
    }
}
