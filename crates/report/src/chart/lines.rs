//! Curves, steps and points.

use maud::{Markup, html};

use super::data::{Axis, Body, Chart, Series, Style};
use super::draw::Drawn;
use super::frame::Frame;
use super::ink::{Path, Px};
use super::legend::{Entry, Legend};
use super::scale::Extent;

const TALL: f64 = 300.0;

/// Curves of at most so many points have marks on them.
const MARKED: usize = 40;

/// The dashes that tell curves apart without colour; as many as there are marks below.
const DASHES: [&str; 5] = ["none", "7 3", "2 3", "9 3 2 3", "4 2"];

pub(super) fn draw(chart: &Chart, series: &[Series]) -> Drawn {
    let shown = &series[..series.len().min(Body::SERIES)];
    let legend = Legend::new(entries(shown));
    let frame = Frame::new(chart, legend.tall, TALL, extents(chart, shown));
    let has_data = shown.iter().any(|series| series.points.iter().any(|&point| has_place(chart, point)));
    let mut notes = Vec::new();
    if series.len() > shown.len() {
        notes.push(format!(
            "{} more series are not drawn: more than {} cannot be told apart",
            series.len() - shown.len(),
            Body::SERIES
        ));
    }
    let lost =
        shown.iter().flat_map(|series| &series.points).filter(|&&point| !has_place(chart, point)).count();
    if lost > 0 && has_data {
        notes.push(format!(
            "{} points have no place on these axes (not above zero, or not a number)",
            crate::count(lost as u64)
        ));
    }
    let marks = html! {
        (legend.draw())
        @if has_data {
            (frame.behind())
            @for (n, series) in shown.iter().enumerate() { (band(&frame, n, series)) }
            @for (n, series) in shown.iter().enumerate() { (curve(&frame, n, series)) }
            (frame.before())
        } @else {
            (frame.empty())
        }
    };
    Drawn { marks, foot: frame.foot(), notes }
}

fn has_place(chart: &Chart, (x, y): (f64, f64)) -> bool {
    chart.x.scale.has(x) && chart.y.scale.has(y)
}

fn extents(chart: &Chart, series: &[Series]) -> [Option<Extent>; 2] {
    let points = || series.iter().flat_map(|series| &series.points);
    let bands = || series.iter().flat_map(|series| &series.band);
    let xs = points().map(|point| point.0).chain(bands().map(|band| band.0));
    let ys = points().map(|point| point.1).chain(bands().flat_map(|band| [band.1, band.2]));
    let extent = |axis: &Axis, values: &mut dyn Iterator<Item = f64>| Extent::of(axis, values);
    [extent(&chart.x, &mut { xs }), extent(&chart.y, &mut { ys })]
}

/// The places of the points that have one and lie between the ends of x.
fn places(frame: &Frame, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let inside = points.iter().filter(|(x, _)| frame.x.holds(*x));
    inside.filter_map(|&(x, y)| Some((frame.x.place(x)?, frame.y.place(y)?))).collect()
}

fn curve(frame: &Frame, n: usize, series: &Series) -> Markup {
    let colour = super::colours::series(n);
    let places = places(frame, &series.points);
    match series.style {
        Style::Points => html! { path class={ "dots " (colour) } d=(dots(&places)) {} },
        Style::Steps => {
            html! { path class={ "line " (colour) } stroke-dasharray=(dash(n)) d=(steps(&places)) {} }
        }
        Style::Line => html! {
            path class={ "line " (colour) } stroke-dasharray=(dash(n)) d=(straight(&places)) {}
            @if places.len() <= MARKED {
                g class={ "marks " (colour) } { @for &(x, y) in &places { (mark(n, x, y)) } }
            }
        },
    }
}

fn straight(places: &[(f64, f64)]) -> Path {
    let mut path = Path::default();
    for (n, &(x, y)) in thinned(places).iter().enumerate() {
        if n == 0 { path.go(x, y) } else { path.line(x, y) }
    }
    path
}

fn steps(places: &[(f64, f64)]) -> Path {
    let mut path = Path::default();
    let mut before = None;
    for &(x, y) in &thinned(places) {
        match before {
            None => path.go(x, y),
            Some(level) => {
                path.line(x, level);
                path.line(x, y);
            }
        }
        before = Some(y);
    }
    path
}

/// One dot for all points that lie on the same half unit.
fn dots(places: &[(f64, f64)]) -> Path {
    // Places are small numbers.
    #[allow(clippy::cast_possible_truncation)]
    let mut halves: Vec<(i32, i32)> =
        places.iter().map(|(x, y)| ((x * 2.0).round() as i32, (y * 2.0).round() as i32)).collect();
    halves.sort_unstable();
    halves.dedup();
    let mut path = Path::default();
    for (x, y) in halves {
        path.dot(f64::from(x) / 2.0, f64::from(y) / 2.0);
    }
    path
}

/// The same curve with at most four points on a half unit of x: the first, the last, the lowest and the highest.
fn thinned(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    #[allow(clippy::cast_possible_truncation)]
    let column = |place: &(f64, f64)| (place.0 * 2.0).floor() as i32;
    let mut kept = Vec::new();
    for run in places.chunk_by(|left, right| column(left) == column(right)) {
        if run.len() <= 4 {
            kept.extend_from_slice(run);
            continue;
        }
        let by_y = |pick: fn(f64, f64) -> bool| {
            (1..run.len() - 1)
                .reduce(|best, n| if pick(run[n].1, run[best].1) { n } else { best })
                .unwrap_or(0)
        };
        let mut picked = [0, by_y(|new, best| new < best), by_y(|new, best| new > best), run.len() - 1];
        picked.sort_unstable();
        kept.extend(picked.map(|n| run[n]));
    }
    kept
}

fn band(frame: &Frame, n: usize, series: &Series) -> Markup {
    let inside = series.band.iter().filter(|(x, ..)| frame.x.holds(*x));
    let edges: Vec<(f64, f64, f64)> = inside
        .filter_map(|&(x, low, high)| Some((frame.x.place(x)?, frame.y.place(low)?, frame.y.place(high)?)))
        .collect();
    let mut path = Path::default();
    for (n, &(x, _, high)) in edges.iter().enumerate() {
        if n == 0 { path.go(x, high) } else { path.line(x, high) }
    }
    for &(x, low, _) in edges.iter().rev() {
        path.line(x, low);
    }
    html! {
        @if edges.len() > 1 {
            path class={ "band " (super::colours::series(n)) } d=(format!("{path}Z")) {}
        }
    }
}

fn entries(series: &[Series]) -> Vec<Entry> {
    // One series needs no legend: the title and the axis say what it is.
    if series.len() < 2 {
        return Vec::new();
    }
    series
        .iter()
        .enumerate()
        .map(|(n, series)| Entry { name: series.name.clone(), key: key(n, series) })
        .collect()
}

fn key(n: usize, series: &Series) -> Markup {
    let colour = super::colours::series(n);
    html! {
        @match series.style {
            Style::Points => path class={ "dots big " (colour) } d="M11 0h0" {},
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

/// The mark of the n-th series: a circle, a square, a triangle, a diamond, a triangle upside down.
fn mark(n: usize, x: f64, y: f64) -> Markup {
    let path = |corners: &[(f64, f64)]| {
        let mut path = Path::default();
        for (n, &(right, down)) in corners.iter().enumerate() {
            if n == 0 { path.go(x + right, y + down) } else { path.line(x + right, y + down) }
        }
        path.close();
        html! { path d=(path) {} }
    };
    match n % 5 {
        0 => html! { circle cx=(Px(x)) cy=(Px(y)) r="3" {} },
        1 => path(&[(-3.0, -3.0), (3.0, -3.0), (3.0, 3.0), (-3.0, 3.0)]),
        2 => path(&[(0.0, -4.0), (4.0, 3.0), (-4.0, 3.0)]),
        3 => path(&[(0.0, -4.0), (4.0, 0.0), (0.0, 4.0), (-4.0, 0.0)]),
        _ => path(&[(0.0, 4.0), (4.0, -3.0), (-4.0, -3.0)]),
    }
}
