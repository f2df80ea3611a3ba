//! The content of a chart.

use miserly_report::chart::Body;

/// The content of a chart, with the names of categories along its axes.
pub(super) struct Drawn {
    pub(super) body: Body,
    /// The categories along the x axis, if it has any.
    pub(super) columns: Vec<String>,
    /// The categories along the y axis, if it has any.
    pub(super) rows: Vec<String>,
}

impl From<Body> for Drawn {
    fn from(body: Body) -> Drawn {
        Drawn { body, columns: Vec::new(), rows: Vec::new() }
    }
}
