//! Charts as SVG. The same data gives the same bytes on every machine.
//!
//! The drawing for a page and for a file is the same. It needs no script and no font of its own,
//! and follows the light or dark theme of the reader's system. Dashes and marks distinguish series
//! without colour.
//!
//! A schedule is drawn by the crate `scene`, as on the pages of machines and runs.

mod data;

mod ticks;

mod values;

mod scale;

mod frame;

mod draw;

mod lines;

mod panels;

mod clock;

mod bars;

mod groups;

mod heat;

mod schedule;

mod matrix;

mod instant;

mod legend;

mod readout;

mod colours;

mod ink;

pub use clock::LocalClock;
pub use data::{
    Axis, AxisScale, Bar, BarSeries, Body, Chart, DataSeries, GanttJob, GroupBar, MatrixJob, MatrixPlace,
    Ramp, Style,
};
pub use draw::svg;
pub use miserly_scene::{ColourBy, Part, QueueStep};

pub(crate) use colours::{file as file_style, image as image_style, page as page_style};
pub(crate) use draw::inline;
pub(crate) use ink::allowed;
pub(crate) use readout::Readout;
pub(crate) use schedule::bars_alone;
