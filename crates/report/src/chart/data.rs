//! Charts as plain data. The sibling modules decide their appearance.

use miserly_scene::{ColourBy, Part, QueueStep};
use serde::Serialize;

use super::clock::LocalClock;
use super::schedule::most_of_curves;

/// A chart: two axes and the data between them.
///
/// ```
/// use miserly_report::chart::{Axis, Body, Chart, DataSeries, svg};
///
/// let easy = DataSeries::line("easy", vec![(1.0, 40.2), (2.0, 31.7), (4.0, 33.0)]);
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
    /// Identifier in links and file names, unique on a page.
    ///
    /// Characters other than letters, digits, `-` and `_` become `-`.
    pub id: String,
    /// Short title.
    pub title: String,
    /// Main observation and caveats.
    pub caption: Option<String>,
    /// Axis below.
    pub x: Axis,
    /// Axis on the left.
    pub y: Axis,
    /// Data.
    pub body: Body,
}

/// An axis: its label and scale.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// Measured quantity, with its unit unless the scale is a time scale: "mean slowdown", "share
    /// of the jobs".
    pub label: String,
    /// Scale.
    pub scale: AxisScale,
    /// Lower end; by default a round number below the data.
    pub from: Option<f64>,
    /// Upper end; by default a round number above the data.
    pub to: Option<f64>,
}

/// The scale of an axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum AxisScale {
    /// Linear.
    Linear,
    /// Logarithmic. Values at or below zero are omitted, and the chart notes their number.
    Log,
    /// Seconds since the start of the log, with ticks such as 30m, 2h, 3d.
    Seconds,
    /// Seconds since the start of the log, with dates.
    Dates(LocalClock),
    /// Durations in seconds on a logarithmic scale, with ticks such as 1s, 1m, 1h.
    LogSeconds,
    /// Names in this order; value n is the place of name n. Heat maps need two such axes.
    Category(Vec<String>),
}

/// The data between the axes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Body {
    /// Curves, steps or points. At most [`Body::SERIES`] are drawn, and the chart notes further
    /// ones.
    Lines {
        /// Series in the order of the legend.
        series: Vec<DataSeries>,
    },
    /// Small multiples: a panel for each series, with common axes. At most [`Body::SERIES`] are drawn.
    ///
    /// A value at or below zero on a logarithmic axis is at its lower end.
    Panels {
        /// Series from the top.
        series: Vec<DataSeries>,
    },
    /// Bars from one value of x to another: histograms and bars by category.
    Bars {
        /// Bars from left to right.
        bins: Vec<Bar>,
    },
    /// Bars side by side in groups: a group for each category of x, a bar in it for each series. At most [`Body::SERIES`]
    /// are drawn.
    Groups {
        /// Series in the order of the legend.
        series: Vec<BarSeries>,
    },
    /// A value per row (a category of y, from the top) and column (a category of x).
    Heat {
        /// A row of cells for each category of y; `None` for a cell without a value.
        cells: Vec<Vec<Option<f64>>>,
        /// Mapping from values to colours.
        ramp: Ramp,
        /// Decimals of the printed values.
        decimals: usize,
    },
    /// Jobs on processors over time: the scene of the pages of machines and runs. It has its own axes.
    Gantt {
        /// Processors of the machine, numbered from zero.
        procs: u32,
        /// First processor of each host with its name, ascending; empty for a single host.
        hosts: Vec<(u32, String)>,
        /// Number of slots, each with all processors: 1 unless jobs share processors in time
        /// slices.
        ///
        /// Processor p of slot s has number s x `procs` + p.
        slots: u32,
        /// Begin of the time window in seconds.
        from: f64,
        /// End of the time window in seconds.
        to: f64,
        /// Jobs that run in the window. Parts outside it are clipped.
        jobs: Vec<GanttJob>,
        /// What the colours show first.
        by: ColourBy,
        /// Waiting jobs over the window, ascending.
        queue: Vec<QueueStep>,
        /// Least upper ends of the curves below the first one: [`Body::share_scales`] sets those of several schedules.
        tops: [i64; 3],
    },
    /// The matrix of a gang scheduler, slots by processors, at the instant with the most slots in
    /// use.
    ///
    /// On a page, a slider selects other instants of the time window. The window and the processors
    /// determine the axes.
    Matrix {
        /// Processors of the machine, numbered from zero.
        procs: u32,
        /// Begin of the time window in seconds.
        from: f64,
        /// End of the time window in seconds.
        to: f64,
        /// Jobs in the order in which they receive colours.
        jobs: Vec<MatrixJob>,
        /// Placements of the jobs.
        places: Vec<MatrixPlace>,
    },
}

impl Body {
    /// Number of series that remain distinguishable, in colour and in black and white.
    pub const SERIES: usize = 10;

    /// Gives the curves of several schedules one scale. Bodies of other kinds are not changed.
    pub fn share_scales<'a>(bodies: impl IntoIterator<Item = &'a mut Body>) {
        let mut bodies: Vec<&mut Body> = bodies.into_iter().collect();
        let most = bodies.iter().filter_map(|body| most_of_curves(body));
        let shared = most.fold([0; 3], |one, other| [0, 1, 2].map(|curve| one[curve].max(other[curve])));
        for body in &mut bodies {
            if let Body::Gantt { tops, .. } = body {
                *tops = shared;
            }
        }
    }
}

/// A curve with an optional band around it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DataSeries {
    /// Name in the legend.
    pub name: String,
    /// Connection of the points.
    pub style: Style,
    /// x and y, from left to right unless the points are not connected.
    pub points: Vec<(f64, f64)>,
    /// Interval of y for values of x, such as a confidence interval: x, low, high. May be empty.
    pub band: Vec<(f64, f64, f64)>,
    /// Number of the colour, dashes and mark, so that a name looks alike in several charts. By default the
    /// position in the chart.
    pub look: Option<usize>,
}

/// The connection of the points of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Style {
    /// Straight lines, with marks if there are few points.
    Line,
    /// A straight line without marks: what is expected, and no data.
    Reference,
    /// Each value holds until the next: distributions, queues, utilisation.
    Steps,
    /// None.
    Points,
}

/// A bar from the axis' lower end to `value`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// Lower end on x.
    pub from: f64,
    /// Upper end on x.
    pub to: f64,
    /// Height on y.
    pub value: f64,
}

/// The bars of one series, one in each group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BarSeries {
    /// Name in the legend.
    pub name: String,
    /// A bar for each category of x; `None` where there is no value.
    pub bars: Vec<Option<GroupBar>>,
}

/// A bar in a group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GroupBar {
    /// Height on y.
    pub value: f64,
    /// Lower and upper end of an interval of the value, such as a confidence interval.
    pub interval: Option<[f64; 2]>,
}

/// The mapping from the values of a heat map to colours.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Ramp {
    /// Logarithmic, for positive values.
    Log,
    /// Two colours around a middle: changes against a baseline.
    Diverging {
        /// Neutral value.
        middle: f64,
    },
}

/// A job on a Gantt chart, or one of its allocations.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GanttJob {
    /// Number in the log.
    pub number: i64,
    /// Processors as inclusive ranges, ascending.
    pub pes: Vec<(u32, u32)>,
    /// Number of processors, if they are not known one by one.
    pub procs: u64,
    /// Submission in seconds.
    pub submit: f64,
    /// Start of the job or allocation in seconds.
    pub start: f64,
    /// End of the job or allocation in seconds.
    pub end: f64,
    /// User.
    pub user: Option<String>,
    /// Word for the reason of the start.
    pub reason: String,
    /// Latest start that was promised in seconds.
    pub promised: Option<f64>,
    /// Whether the job was killed at its limit.
    pub killed: bool,
    /// What the job does in this allocation.
    pub part: Part,
    /// Start in the schedule to which this one is compared, in seconds.
    pub compared: Option<f64>,
    /// Line of the tooltip; by default the reason.
    pub note: Option<String>,
}

/// A job in a matrix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatrixJob {
    /// Number in the log.
    pub number: i64,
    /// Submission in seconds.
    pub submit: f64,
    /// User.
    pub user: Option<String>,
}

/// A placement of a job in a slot of a matrix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatrixPlace {
    /// Index of the job in the list of jobs.
    pub job: usize,
    /// Slot.
    pub slot: u32,
    /// Whether this is the job's own slot, or an alternate one while no other job needs its
    /// processors.
    pub own: bool,
    /// Start in seconds.
    pub from: f64,
    /// End in seconds.
    pub to: f64,
    /// Processors as inclusive ranges, ascending.
    pub pes: Vec<(u32, u32)>,
}

impl GanttJob {
    /// Returns the number of its processors.
    pub(super) fn held(&self) -> u64 {
        let numbered = self.pes.iter().map(|(low, high)| u64::from(high.saturating_sub(*low)) + 1);
        numbered.sum::<u64>().max(self.procs)
    }
}

impl Axis {
    /// Creates a linear axis.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis::new(label, AxisScale::Linear)
    }

    /// Creates a logarithmic axis.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis::new(label, AxisScale::Log)
    }

    /// Creates an axis of seconds with ticks in common units.
    pub fn seconds(label: impl Into<String>) -> Axis {
        Axis::new(label, AxisScale::Seconds)
    }

    /// Creates a logarithmic axis of durations in seconds.
    pub fn log_seconds(label: impl Into<String>) -> Axis {
        Axis::new(label, AxisScale::LogSeconds)
    }

    /// Creates a categorical axis.
    pub fn category(label: impl Into<String>, names: Vec<String>) -> Axis {
        Axis::new(label, AxisScale::Category(names))
    }

    /// Sets both ends of the axis.
    #[must_use]
    pub fn between(self, from: f64, to: f64) -> Axis {
        Axis { from: Some(from), to: Some(to), ..self }
    }

    /// Sets the lower end to zero.
    #[must_use]
    pub fn from_zero(self) -> Axis {
        Axis { from: Some(0.0), ..self }
    }

    fn new(label: impl Into<String>, scale: AxisScale) -> Axis {
        Axis { label: label.into(), scale, from: None, to: None }
    }
}

impl DataSeries {
    /// Creates points connected by straight lines.
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> DataSeries {
        DataSeries { name: name.into(), style: Style::Line, points, band: Vec::new(), look: None }
    }

    /// Creates a straight line of what is expected.
    pub fn reference(name: impl Into<String>, points: Vec<(f64, f64)>) -> DataSeries {
        DataSeries { style: Style::Reference, ..DataSeries::line(name, points) }
    }

    /// Creates values that hold until the next one.
    pub fn steps(name: impl Into<String>, points: Vec<(f64, f64)>) -> DataSeries {
        DataSeries { style: Style::Steps, ..DataSeries::line(name, points) }
    }

    /// Creates unconnected points.
    pub fn points(name: impl Into<String>, points: Vec<(f64, f64)>) -> DataSeries {
        DataSeries { style: Style::Points, ..DataSeries::line(name, points) }
    }

    /// Creates the share of `values` at or below x, as steps.
    ///
    /// The order does not matter. Values that are not a number are omitted.
    pub fn cdf(name: impl Into<String>, values: &[f64]) -> DataSeries {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
        sorted.sort_by(f64::total_cmp);
        let all = sorted.len() as f64;
        let share = |(index, &value): (usize, &f64)| (value, (index + 1) as f64 / all);
        let mut points: Vec<(f64, f64)> = sorted.iter().enumerate().map(share).collect();
        // Among equal values, the last one has the share of all.
        points.reverse();
        points.dedup_by_key(|point| point.0);
        points.reverse();
        DataSeries::steps(name, points)
    }

    /// Returns the number of the colour, dashes and mark of the series at `position` of a chart.
    pub(super) fn look(&self, position: usize) -> usize {
        self.look.unwrap_or(position)
    }

    /// Adds a band of x, low, high.
    #[must_use]
    pub fn with_band(self, band: Vec<(f64, f64, f64)>) -> DataSeries {
        DataSeries { band, ..self }
    }
}
