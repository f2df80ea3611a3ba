//! What a chart says, as plain data. How it looks is decided by the modules beside this one.

use serde::Serialize;

/// One chart: two axes and what is drawn between them.
///
/// ```
/// use miserly_report::chart::{Axis, Body, Chart, Series, svg};
///
/// let easy = Series::line("easy", vec![(1.0, 40.2), (2.0, 31.7), (4.0, 33.0)]);
/// let chart = Chart {
///     id: "slowdown-by-r".into(),
///     title: "Slowdown against R".into(),
///     caption: None,
///     x: Axis::log("R, the estimate as a multiple of the runtime"),
///     y: Axis::linear("mean slowdown"),
///     body: Body::Lines { series: vec![easy] },
/// };
/// assert!(svg(&chart).starts_with("<svg"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// Names the chart in links and files; unique on a page. Anything but letters, digits, `-` and `_` becomes a `-`.
    pub id: String,
    /// What is shown, in a few words.
    pub title: String,
    /// What to see in it, and what a reader must know to trust it.
    pub caption: Option<String>,
    /// The axis below.
    pub x: Axis,
    /// The axis on the left.
    pub y: Axis,
    /// What is drawn.
    pub body: Body,
}

/// One axis: its label and how values lie along it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// What is measured, with its unit unless the scale is one of time: "mean slowdown", "share of the jobs".
    pub label: String,
    /// How values lie along it.
    pub scale: Scale,
    /// Where it begins; without it, at a round number below the data.
    pub from: Option<f64>,
    /// Where it ends; without it, at a round number above the data.
    pub to: Option<f64>,
}

/// How values lie along an axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Scale {
    /// Equal differences are equal distances.
    Linear,
    /// Equal ratios are equal distances. What is not above zero has no place on it; the chart says how much that was.
    Log,
    /// Seconds from the start of the log, with ticks such as 30m, 2h, 3d.
    Seconds,
    /// Lengths of time in seconds on a logarithmic scale, with ticks such as 1s, 1m, 1h.
    LogSeconds,
    /// Names, in this order; the value n is the place of the n-th one. The axes of a heat map are of this kind.
    Category(Vec<String>),
}

/// What is drawn between the axes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Body {
    /// Curves, steps or points. At most [`Body::SERIES`] are drawn; the chart says when there are more.
    Lines {
        /// In the order of the legend.
        series: Vec<Series>,
    },
    /// Bars from one value of x to another: histograms, and bars by category.
    Bars {
        /// From left to right.
        bins: Vec<Bin>,
    },
    /// A value for each pair of a row (of y, a category from the top down) and a column (of x, a category).
    Heat {
        /// One row of cells for each category of y; a cell without a value is `None`.
        cells: Vec<Vec<Option<f64>>>,
        /// How values become colours.
        ramp: Ramp,
        /// How many decimals the written values have.
        decimals: usize,
    },
    /// Jobs on processors over time. The axes need no bounds: the window and the processors are theirs.
    Gantt {
        /// The processors of the machine; they are numbered from zero.
        procs: u32,
        /// The first processor of each host but the first, ascending; empty where there is one host.
        hosts: Vec<u32>,
        /// How many slots lie one above the other, each with all processors: 1, unless jobs share processors by turns. Processor p of slot s
        /// is numbered s x `procs` + p.
        slots: u32,
        /// Where the window begins, in seconds.
        from: f64,
        /// Where the window ends, in seconds.
        to: f64,
        /// The jobs that run in the window; what lies outside of it is cut off.
        jobs: Vec<GanttJob>,
    },
    /// The matrix of a gang scheduler, slots by processors, at the instant of the window with the most slots; on a page, a slider leads
    /// to the others. The axes need no bounds.
    Matrix {
        /// The processors of the machine; they are numbered from zero.
        procs: u32,
        /// Where the window begins, in seconds.
        from: f64,
        /// Where the window ends, in seconds.
        to: f64,
        /// The jobs, in the order in which they get their colours.
        jobs: Vec<MatrixJob>,
        /// Their places.
        places: Vec<MatrixPlace>,
    },
}

impl Body {
    /// How many series can be told apart, in colour and in black and white.
    pub const SERIES: usize = 10;
}

/// A curve, and the band around it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// As the legend names it.
    pub name: String,
    /// How the points are joined.
    pub style: Style,
    /// x and y; from left to right, unless they are not joined.
    pub points: Vec<(f64, f64)>,
    /// An interval of y for values of x, such as a confidence interval: x, low, high. Empty for none.
    pub band: Vec<(f64, f64, f64)>,
}

/// How the points of a series are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Style {
    /// By straight lines, with marks on the points where there are few.
    Line,
    /// Each value holds until the next: distributions, queues, utilisation.
    Steps,
    /// Not at all.
    Points,
}

/// One bar, from the axis' lower end to `value`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// The lower end, on x.
    pub from: f64,
    /// The upper end, on x.
    pub to: f64,
    /// The height, on y.
    pub value: f64,
}

/// How the values of a heat map become colours.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Ramp {
    /// From the least to the greatest value.
    Linear,
    /// The same, by ratios; for positive values.
    Log,
    /// Away from a middle in two colours: changes against a baseline.
    Diverging {
        /// The value that is neither more nor less.
        middle: f64,
    },
}

/// A job on a Gantt chart, or one of its stays.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GanttJob {
    /// Its number in the log.
    pub number: i64,
    /// Its processors as inclusive ranges, ascending.
    pub pes: Vec<(u32, u32)>,
    /// When it was submitted, in seconds.
    pub submit: f64,
    /// When it, or the stay, began, in seconds.
    pub start: f64,
    /// When it, or the stay, ended, in seconds.
    pub end: f64,
    /// Who submitted it.
    pub user: Option<String>,
    /// What decides its colour, and stands in the legend: a user, a category, the reason of its start. Seven have a colour of
    /// their own.
    pub key: String,
    /// Which stay it is and of how many, of a job that moved, stopped or had other processors between its start and its end.
    pub part: Option<(usize, usize)>,
}

/// A job in a matrix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatrixJob {
    /// Its number in the log.
    pub number: i64,
    /// When it was submitted, in seconds.
    pub submit: f64,
    /// Who submitted it.
    pub user: Option<String>,
}

/// A place of a job in a slot of a matrix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatrixPlace {
    /// Which job it is: its place in the list of them.
    pub job: usize,
    /// The slot.
    pub slot: u32,
    /// Whether the place is its own; else it also runs there as long as nobody else needs its processors.
    pub own: bool,
    /// When it came there, in seconds.
    pub from: f64,
    /// When it left, in seconds.
    pub to: f64,
    /// Its processors as inclusive ranges, ascending.
    pub pes: Vec<(u32, u32)>,
}

impl Axis {
    /// An axis on which equal differences are equal distances.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis::of(label, Scale::Linear)
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis::of(label, Scale::Log)
    }

    /// An axis of seconds, with ticks in human units.
    pub fn seconds(label: impl Into<String>) -> Axis {
        Axis::of(label, Scale::Seconds)
    }

    /// A logarithmic axis of lengths of time in seconds.
    pub fn log_seconds(label: impl Into<String>) -> Axis {
        Axis::of(label, Scale::LogSeconds)
    }

    /// An axis of names.
    pub fn category(label: impl Into<String>, names: Vec<String>) -> Axis {
        Axis::of(label, Scale::Category(names))
    }

    /// The same axis, from `from` to `to` whatever the data are.
    #[must_use]
    pub fn between(self, from: f64, to: f64) -> Axis {
        Axis { from: Some(from), to: Some(to), ..self }
    }

    /// The same axis, from zero on.
    #[must_use]
    pub fn from_zero(self) -> Axis {
        Axis { from: Some(0.0), ..self }
    }

    fn of(label: impl Into<String>, scale: Scale) -> Axis {
        Axis { label: label.into(), scale, from: None, to: None }
    }
}

impl Series {
    /// Points joined by straight lines.
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), style: Style::Line, points, band: Vec::new() }
    }

    /// Values that hold until the next one.
    pub fn steps(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { style: Style::Steps, ..Series::line(name, points) }
    }

    /// Points that are not joined.
    pub fn points(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { style: Style::Points, ..Series::line(name, points) }
    }

    /// The share of `values` that is at most x, as steps. What is not a number is left out; the order does not matter.
    pub fn cdf(name: impl Into<String>, values: &[f64]) -> Series {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
        sorted.sort_by(f64::total_cmp);
        let all = sorted.len() as f64;
        let share = |(index, &value): (usize, &f64)| (value, (index + 1) as f64 / all);
        let mut points: Vec<(f64, f64)> = sorted.iter().enumerate().map(share).collect();
        // Of equal values, the last one's share is the share of them all.
        points.reverse();
        points.dedup_by_key(|point| point.0);
        points.reverse();
        Series::steps(name, points)
    }

    /// The same series, with a band around it: x, low, high.
    #[must_use]
    pub fn with_band(self, band: Vec<(f64, f64, f64)>) -> Series {
        Series { band, ..self }
    }
}
