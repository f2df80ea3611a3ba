//! Heat maps, with the value written into each cell: a colour alone cannot be read off.

use maud::{Markup, html};

use super::colours::{self, SHADES};
use super::data::{Chart, Ramp, Scale};
use super::draw::Drawn;
use super::frame::Frame;
use super::ink::{LETTERS, Px, text_width};
use super::values::with_decimals;

/// How high a row is.
const ROW: f64 = 30.0;

pub(super) fn draw(chart: &Chart, cells: &[Vec<Option<f64>>], ramp: Ramp, decimals: usize) -> Drawn {
    let (rows, columns) = (names(&chart.y.scale), names(&chart.x.scale));
    let frame = Frame::new(chart, 0.0, ROW * rows.len().max(4) as f64, [None, None]);
    let grid = Grid {
        left: frame.left,
        top: frame.top,
        wide: (frame.right - frame.left) / columns.len().max(1) as f64,
        tall: (frame.bottom - frame.top) / rows.len().max(1) as f64,
    };
    // What is outside of the named rows and columns has no place.
    let inside = cells.iter().take(rows.len()).enumerate().flat_map(|(row, cells)| {
        cells
            .iter()
            .take(columns.len())
            .enumerate()
            .map(move |(column, &value)| (row, column, value.filter(|value| value.is_finite())))
    });
    let inside: Vec<_> = inside.collect();
    let shades = Shades::of(ramp, inside.iter().filter_map(|cell| cell.2));
    let marks = html! {
        @match shades {
            None => (frame.empty()),
            Some(shades) => {
                @for &(row, column, value) in &inside {
                    (grid.cell(row, column, value.map(|value| (shades.class(value), with_decimals(value, decimals))), &title(rows, columns, row, column)))
                }
                (frame.before())
            }
        }
    };
    Drawn { marks, foot: frame.foot(), ..Drawn::default() }
}

/// The names on an axis. One that has none has no rows or columns to show.
fn names(scale: &Scale) -> &[String] {
    match scale {
        Scale::Category(names) => names,
        _ => &[],
    }
}

fn title(rows: &[String], columns: &[String], row: usize, column: usize) -> String {
    format!("{}, {}", rows[row], columns[column])
}

/// Where the cells lie.
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
                    text text-anchor="middle" x=(Px(left + self.wide / 2.0)) y=(Px(top + self.tall / 2.0 + LETTERS * 0.35)) { (text) }
                }
            }
        }
    }
}

/// Which shade a value gets.
struct Shades {
    low: f64,
    high: f64,
    log: bool,
    class: fn(usize) -> &'static str,
}

impl Shades {
    /// Shades for those values, or none if there are no values.
    fn of(ramp: Ramp, values: impl Iterator<Item = f64>) -> Option<Shades> {
        let log = ramp == Ramp::Log;
        let fit =
            |value: f64| if log { value.max(f64::MIN_POSITIVE).ln() } else { value.clamp(-1e300, 1e300) };
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|&value| !log || value > 0.0).map(fit) {
            (low, high) = (low.min(value), high.max(value));
        }
        match ramp {
            Ramp::Diverging { middle } if low <= high && middle.is_finite() => {
                let far = (high - middle).max(middle - low);
                Some(Shades { low: middle - far, high: middle + far, log, class: colours::diverging })
            }
            // Values that are all at or below zero have no ratios, but they can still be written down.
            _ if low > high && !log => None,
            _ => Some(Shades { low, high, log, class: colours::shade }),
        }
    }

    fn class(&self, value: f64) -> &'static str {
        let value = if self.log { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let span = self.high - self.low;
        let along = if span > 0.0 { ((value - self.low) / span).clamp(0.0, 1.0) } else { 0.5 };
        // A number between 0 and 1 of a handful of shades.
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
        let shades = Shades::of(ramp, values.iter().copied()).unwrap();
        let shown: Vec<_> = values.iter().map(|&value| shades.class(value)).collect();
        assert_eq!(shown.join(" "), expect);
    }

    #[test]
    fn shades_follow_the_ramp() {
        check(Ramp::Linear, &[1.0, 50.0, 100.0], "q0 q4 q8");
        check(Ramp::Log, &[1.0, 10.0, 100.0, 0.0], "q0 q4 q8 q0");
        check(Ramp::Diverging { middle: 1.0 }, &[0.5, 1.0, 3.0], "d3 d4 d8");
        check(Ramp::Linear, &[7.0], "q4");
    }

    #[test]
    fn without_values_there_are_no_shades() {
        assert!(Shades::of(Ramp::Linear, std::iter::empty()).is_none());
    }
}
