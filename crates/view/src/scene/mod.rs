//! The scene: what a chart of jobs over time shows, for all painters.
//!
//! Lanes and bars come from [`Bars`](crate::Bars) and [`Tile`](crate::Tile). This module adds colours with their [`Legend`] and the
//! [`Curves`] below the bars. A painter turns milliseconds and rows into pixels and decides nothing else.

mod card;

mod colour;

mod curves;

mod opening;

mod palette;

pub use card::{Card, card};
pub use colour::{ColourBy, Entry, Legend};
pub use curves::{CurvePart, Curves};
pub use opening::Opening;
pub use palette::{Inks, Rgb};

pub(crate) use colour::{Classes, Colours};
pub(crate) use palette::mixed;
