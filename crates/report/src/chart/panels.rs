//! Small multiples: a panel for each series, with common axes.

use maud::{Markup, html};

use super::colours;
use super::data::{Body, Chart, DataSeries};
use super::draw::Drawing;
use super::frame::PlotFrame;
use super::ink::{LETTERS, Px, SvgPath, fitted};
use super::lines::{PlotPoint, extents, thinned, undrawn};
use super::readout::{Plot, Readout, SeriesReadout, hundredths, shown};
use super::values::number;

/// Height of the plot of a panel, and of its heading.
const TALL: (f64, f64) = (64.0, LETTERS * 1.7);

pub(super) fn draw(chart: &Chart, series: &[DataSeries]) -> Drawing {
    let drawing = &series[..series.len().min(Body::SERIES)];
    let bounds = extents(chart, drawing);
    let mut top = LETTERS * 0.5;
    let mut frames = Vec::new();
    for _ in drawing {
        frames.push(PlotFrame::new(chart, top, TALL.0, bounds));
        top += TALL.0 + TALL.1;
    }
    let (Some(first), Some(last)) = (frames.first(), frames.last()) else {
        let frame = PlotFrame::new(chart, 0.0, TALL.0, bounds);
        return Drawing { marks: frame.empty(), foot: frame.foot(), ..Drawing::default() };
    };
    let count = drawing.len();
    let panels: Vec<Vec<PlotPoint>> =
        frames.iter().zip(drawing).map(|(frame, series)| spots(frame, series)).collect();
    let marks = html! {
        @for (n, (frame, (series, spots))) in frames.iter().zip(drawing.iter().zip(&panels)).enumerate() {
            (frame.behind())
            (curve(series.look(n), spots, frame))
            (heading(frame, series))
            @if n + 1 == count { (frame.before()) } @else { (frame.before_inner()) }
        }
    };
    let readout = Readout::Points {
        plot: Plot::spanning(first, last),
        series: drawing.iter().zip(&panels).map(|(series, spots)| readout(chart, series, spots)).collect(),
    };
    let notes = undrawn(series.len()).into_iter().collect();
    Drawing { marks, foot: last.foot(), notes, readout: Some(readout), ..Drawing::default() }
}

/// Draws steps. They are solid, because a panel has only one series.
fn curve(n: usize, spots: &[PlotPoint], frame: &PlotFrame<'_>) -> Markup {
    let places: Vec<(f64, f64)> = spots.iter().map(|spot| spot.place).collect();
    let area = SvgPath::area(&places, frame.bottom, places.last().map_or(frame.left, |place| place.0));
    html! { path class={ "area " (colours::series(n)) } fill-opacity="0.35" d=(area) {} }
}

/// Draws the name of the series with its mean and its greatest value.
fn heading(frame: &PlotFrame<'_>, series: &DataSeries) -> Markup {
    let values = || series.points.iter().map(|point| point.1).filter(|value| value.is_finite());
    let greatest = values().fold(0.0, f64::max);
    let mean = values().sum::<f64>() / values().count().max(1) as f64;
    let [mean, greatest] = [mean, greatest].map(|value| number(value, value.abs() / 100.0));
    let y = frame.top - LETTERS * 0.4;
    html! {
        text x=(Px(frame.left)) y=(Px(y)) { (fitted(&series.name, (frame.right - frame.left) * 0.6)) }
        text class="note" text-anchor="end" x=(Px(frame.right)) y=(Px(y)) { "mean " (mean) ", max " (greatest) }
    }
}

/// Returns the points of a panel. Values below the axis are at its lower end.
fn spots(frame: &PlotFrame<'_>, series: &DataSeries) -> Vec<PlotPoint> {
    let inside = series.points.iter().filter(|(x, y)| frame.x.holds(*x) && y.is_finite());
    let spot = |&(x, y): &(f64, f64)| {
        let place = (frame.x.place(x)?, frame.y.place(y).unwrap_or(frame.bottom));
        Some(PlotPoint { place, value: (x, y) })
    };
    thinned(&inside.filter_map(spot).collect::<Vec<_>>())
}

fn readout(chart: &Chart, series: &DataSeries, spots: &[PlotPoint]) -> SeriesReadout {
    let mut spots = spots.to_vec();
    // One value in each unit of the drawing is enough for the pointer.
    #[allow(clippy::cast_possible_truncation)]
    spots.dedup_by_key(|spot| spot.place.0.round() as i32);
    let point = |PlotPoint { place, value }: &PlotPoint| {
        let texts = (shown(&chart.x.scale, value.0), shown(&chart.y.scale, value.1));
        (hundredths(place.0), hundredths(place.1), texts.0, texts.1)
    };
    SeriesReadout { name: series.name.clone(), points: spots.iter().map(point).collect() }
}
