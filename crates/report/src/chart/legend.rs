//! The legend, above the plot so that it never covers data.

use maud::{Markup, html};

use super::frame::WIDTH;
use super::ink::{ENLARGED, LETTERS, Px, fitted, text_width};

const ROW: f64 = LETTERS * 1.5;
const KEY: f64 = 26.0;
const GAP: f64 = 14.0;
const LEFT: f64 = 8.0;

/// A name with the key drawn before it.
pub(super) struct LegendEntry {
    pub(super) name: String,
    /// Drawn around the middle line of a box of width 26, from 0 0 at its left.
    pub(super) key: Markup,
}

/// Entries in rows from left to right.
pub(super) struct Legend {
    placed: Vec<(f64, f64, String, Markup)>,
    /// Height of all rows.
    pub(super) tall: f64,
}

impl Legend {
    pub(super) fn new(entries: Vec<LegendEntry>) -> Legend {
        let (mut x, mut row) = (LEFT, 0);
        let mut placed = Vec::new();
        for entry in entries {
            let name = fitted(&entry.name, (WIDTH - 2.0 * LEFT - KEY) / ENLARGED);
            let wide = KEY + text_width(&name) * ENLARGED + GAP;
            if x > LEFT && x + wide > WIDTH {
                (x, row) = (LEFT, row + 1);
            }
            placed.push((x, f64::from(row) * ROW + ROW / 2.0, name, entry.key));
            x += wide;
        }
        let tall = if placed.is_empty() { 0.0 } else { f64::from(row + 1) * ROW };
        Legend { placed, tall }
    }

    pub(super) fn draw(&self) -> Markup {
        html! {
            @if !self.placed.is_empty() {
                g class="legend" {
                    @for (x, y, name, key) in &self.placed {
                        g transform=(format!("translate({} {})", Px(*x), Px(*y))) {
                            (key)
                            text x=(Px(KEY)) y=(Px(LETTERS * 0.35)) { (name) }
                        }
                    }
                }
            }
        }
    }
}
