//! Charts as SVG: plain data in, the same bytes out on every machine.
//!
//! One drawing serves the page and the file. It needs no script and no font of its own, is light or dark as the reader's
//! system is, and reads in black and white: what colours tell apart, dashes and marks tell apart too.

mod data;

mod ticks;

mod values;

mod scale;

mod frame;

mod draw;

mod lines;

mod bars;

mod heat;

mod gantt;

mod matrix;

mod instant;

mod legend;

mod readout;

mod colours;

mod ink;

pub use data::{Axis, Bin, Body, Chart, GanttJob, MatrixJob, MatrixPlace, Ramp, Scale, Series, Style};
pub use draw::svg;

pub(crate) use colours::{file as file_style, page as page_style};
pub(crate) use draw::inline;
pub(crate) use ink::allowed;
pub(crate) use readout::Readout;
