//! Heat maps with the value printed in each cell, because colours alone are not readable as values.

use maud::{Markup, html};

use super::colours::{self, SHADES};
use super::data::{AxisScale, Chart, Ramp};
use super::draw::Drawing;
use super::frame::PlotFrame;
use super::ink::{ENLARGED, LETTERS, Px, text_width};
use super::values::with_decimals;

/// Height of a row.
const ROW: f64 = 30.0;

pub(super) fn draw(chart: &Chart, cells: &[Vec<Option<f64>>], ramp: Ramp, decimals: usize) -> Drawing {
    let (rows, columns) = (names(&chart.y.scale), names(&chart.x.scale));
    let frame = PlotFrame::new(chart, 0.0, ROW * rows.len().max(4) as f64, [None, None]);
    let grid = Grid {
        left: frame.left,
        top: frame.top,
        wide: (frame.right - frame.left) / columns.len().max(1) as f64,
        tall: (frame.bottom - frame.top) / rows.len().max(1) as f64,
    };
    // Cells outside the named rows and columns are omitted.
    let inside = cells.iter().take(rows.len()).enumerate().flat_map(|(row, cells)| {
        cells
            .iter()
            .take(columns.len())
            .enumerate()
            .map(move |(column, &value)| (row, column, value.filter(|value| value.is_finite())))
    });
    let inside: Vec<_> = inside.collect();
    let shades = Shades::new(ramp, inside.iter().filter_map(|cell| cell.2));
    let marks = html! {
        @match shades {
            None => (frame.empty()),
            Some(shades) => {
                @for &(row, column, value) in &inside {
                    (grid.cell(row, column, value.map(|value| (shades.class(value), printed(value, decimals))), &title(rows, columns, row, column)))
                }
                (frame.before())
            }
        }
    };
    Drawing { marks, foot: frame.foot(), ..Drawing::default() }
}

/// Returns the names of a categorical axis. Other axes have no rows or columns.
fn names(scale: &AxisScale) -> &[String] {
    match scale {
        AxisScale::Category(names) => names,
        _ => &[],
    }
}

/// Returns the printed value of a cell. Thousands have no decimals.
fn printed(value: f64, decimals: usize) -> String {
    with_decimals(value, if value.abs() >= 1_000.0 { 0 } else { decimals })
}

fn title(rows: &[String], columns: &[String], row: usize, column: usize) -> String {
    format!("{}, {}", rows[row], columns[column])
}

/// The geometry of the cells.
struct Grid {
    left: f64,
    top: f64,
    wide: f64,
    tall: f64,
}

impl Grid {
    fn cell(&self, row: usize, column: usize, value: Option<(&'static str, String)>, title: &str) -> Markup {
        let (left, top) = (self.left + column as f64 * self.wide, self.top + row as f64 * self.tall);
        let (class, text) = value.unwrap_or(("q", "–".into()));
        html! {
            g class={ "cell " (class) } {
                rect x=(Px(left + 0.5)) y=(Px(top + 0.5)) width=(Px(self.wide - 1.0)) height=(Px(self.tall - 1.0)) {
                    title { (title) ": " (text) }
                }
                @if text_width(&text) <= self.wide {
                    text class=[(text_width(&text) * ENLARGED > self.wide).then_some("small")] text-anchor="middle" x=(Px(left + self.wide / 2.0)) y=(Px(top + self.tall / 2.0 + LETTERS * 0.35)) { (text) }
                }
            }
        }
    }
}

/// The mapping from values to shades.
struct Shades {
    low: f64,
    high: f64,
    log: bool,
    class: fn(usize) -> &'static str,
}

impl Shades {
    /// Returns the shades for these values, or `None` without values.
    fn new(ramp: Ramp, values: impl Iterator<Item = f64>) -> Option<Shades> {
        let log = ramp == Ramp::Log;
        let fit =
            |value: f64| if log { value.max(f64::MIN_POSITIVE).ln() } else { value.clamp(-1e300, 1e300) };
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut values = values.peekable();
        values.peek()?;
        for value in values.filter(|&value| !log || value > 0.0).map(fit) {
            (low, high) = (low.min(value), high.max(value));
        }
        match ramp {
            Ramp::Diverging { middle } if low <= high && middle.is_finite() => {
                let far = (high - middle).max(middle - low);
                Some(Shades { low: middle - far, high: middle + far, log, class: colours::diverging })
            }
            // On a logarithmic ramp, values at or below zero are printed without distinct shades.
            _ if low > high && !log => None,
            _ => Some(Shades { low, high, log, class: colours::shade }),
        }
    }

    fn class(&self, value: f64) -> &'static str {
        let value = if self.log { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let span = self.high - self.low;
        let along = if span > 0.0 { ((value - self.low) / span).clamp(0.0, 1.0) } else { 0.5 };
        // The product lies between 0 and the number of shades.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let shade = (along * SHADES as f64) as usize;
        (self.class)(shade.min(SHADES - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ramp: Ramp, values: &[f64], expect: &str) {
        let shades = Shades::new(ramp, values.iter().copied()).unwrap();
        let shown: Vec<_> = values.iter().map(|&value| shades.class(value)).collect();
        assert_eq!(shown.join(" "), expect);
    }

    #[test]
    fn shades_follow_the_ramp() {
        check(Ramp::Log, &[1.0, 10.0, 100.0, 0.0], "q0 q4 q8 q0");
        check(Ramp::Diverging { middle: 1.0 }, &[0.5, 1.0, 3.0], "d3 d4 d8");
        check(Ramp::Log, &[7.0], "q4");
    }

    #[test]
    fn without_values_there_are_no_shades() {
        assert!(Shades::new(Ramp::Diverging { middle: 0.0 }, std::iter::empty()).is_none());
    }
}
