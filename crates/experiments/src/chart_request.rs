//! Requests for charts of results: which figures of which runs, and how to draw them.
//!
//! The charts of an experiment file and those of the page of a few runs are both requests.

use serde::Deserialize;

use crate::selector::Selector;

/// A chart to draw.
#[derive(Clone, Debug)]
pub struct ChartRequest {
    /// Its title.
    pub title: String,
    /// A note for its caption.
    pub note: Option<String>,
    /// The kind of the chart.
    pub kind: ChartKind,
    /// The axis of runs along which the figures of a line chart lie.
    pub along: Option<String>,
    /// The x axis.
    pub x: AxisRequest,
    /// The y axis.
    pub y: AxisRequest,
    /// The lines; one for a chart that shows a single run.
    pub lines: Vec<LineRequest>,
}

/// An axis of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisRequest {
    /// The text beside it.
    pub label: String,
    /// Its spacing.
    pub scale: Scale,
}

/// A line of a chart, or a column of a heat map.
#[derive(Clone, Debug)]
pub struct LineRequest {
    /// The text beside it.
    pub label: String,
    /// The figure: a path into the document of a run, or of a log.
    pub figure: String,
    /// The divisor of the figure.
    pub unit: f64,
    /// Its runs.
    pub runs: Selector,
}

/// The kind of a chart.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ChartKind {
    /// A figure along an axis of runs.
    Line,
    /// Pairs of a document, as a step function: distributions.
    Steps,
    /// Pairs or bins of a document, as bars.
    Bars,
    /// A figure over time, of `details.series`.
    Series,
    /// A measure by the groups of a breakdown, as lines.
    Groups,
    /// Pairs of a document, as points.
    Points,
    /// A measure by category, as a heat map.
    Heat,
    /// The jobs of a window.
    Gantt,
    /// The matrix of a gang scheduler in that window, slots by processors.
    Matrix,
}

/// The spacing of an axis.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By ratio.
    Log,
    /// Evenly, in seconds that are shown as minutes, hours or days.
    Time,
    /// By ratio, likewise.
    LogTime,
}

impl AxisRequest {
    /// Returns an axis.
    pub fn new(label: &str, scale: Scale) -> AxisRequest {
        AxisRequest { label: label.to_owned(), scale }
    }
}
