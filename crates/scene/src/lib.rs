//! The scene: what a chart of jobs over time shows, for the pages of machines and runs and for reports.
//!
//! A [`Schedule`] has the jobs. [`Bars`] are its lanes and bars with the [`Legend`] of each way to colour them and the [`Curves`] below; a
//! [`Tile`] is a part of them at a level of detail. Two painters turn milliseconds and rows into pixels and decide nothing else: [`Picture`]
//! draws SVG, and [`PAINT`] draws on the canvas of a page. A test compares their rectangles.
//!
//! Times are milliseconds: since 1970, or since the start of a log ([`Clock`]).

mod schedule;

mod job;

mod clock;

mod bars;

mod lanes;

mod tile;

mod colour;

mod palette;

mod curves;

mod embedded;

mod opening;

mod card;

mod picture;

mod sizes;

mod style;

pub use bars::{Bar, Bars, Group, Kind};
pub use card::{Card, card};
pub use clock::{Clock, DAY, HOUR, MINUTE, SECOND, span, whole_step};
pub use colour::{ColourBy, Entry, Legend};
pub use curves::{CurvePart, Curves};
pub use embedded::Embedded;
pub use job::{ANY_GPU, Cause, Job, Part, RUN_NUMBERS, State, Stay, Whole};
pub use opening::Opening;
pub use palette::{Inks, Rgb};
pub use picture::{Picture, PictureRequest};
pub use schedule::{Pool, QueueStep, Schedule};
pub use sizes::PAINT;
pub use style::{rules, used_rules};
pub use tile::{PackedTile, Shade, Tile, TileBar, TileRequest};

/// The chart of a page, which uses the painter: its view, its parts and its control by mouse and keys.
pub const CHART: &str = include_str!("../assets/chart.js");

/// The function that prints a picture, as a module of a page.
pub const PRINT: &str = include_str!("../assets/print.js");

/// Returns a number and its word, in the plural if needed.
pub fn counted(number: u64, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}
