//! Gantt charts: jobs on processors over time.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::colours::{self, SHADES};
use super::data::{Axis, AxisScale, Chart, GanttJob, GanttKeys, QueueStep};
use super::draw::Drawing;
use super::frame::PlotFrame;
use super::ink::{Px, SvgPath};
use super::legend::{Legend, LegendEntry};
use super::matrix::{drawable, job_key, number_in, slots_axis, with_axes};
use super::queue::QueuePanels;
use super::readout::{JobReadout, Plot, Readout};
use super::scale::Extent;

/// Least and greatest height of the plot, and preferred height of a processor.
const TALL: (f64, f64, f64) = (120.0, 380.0, 16.0);

/// Least width and height of an outlined rectangle. Outlines separate neighbours of the same
/// colour.
const OUTLINED: f64 = 3.0;

/// The drawn part of a schedule.
pub(super) struct GanttView<'a> {
    pub(super) procs: u32,
    pub(super) hosts: &'a [u32],
    pub(super) slots: u32,
    pub(super) from: f64,
    pub(super) to: f64,
}

impl GanttView<'_> {
    /// Returns the number of rows: one per processor and slot.
    fn lines(&self) -> f64 {
        f64::from(self.procs) * f64::from(self.slots.max(1))
    }
}

/// The content of a Gantt chart.
pub(super) struct GanttData<'a> {
    pub(super) jobs: &'a [GanttJob],
    pub(super) keys: &'a GanttKeys,
    pub(super) queue: &'a [QueueStep],
}

pub(super) fn draw(chart: &Chart, view: &GanttView<'_>, data: &GanttData<'_>) -> Drawing {
    let (slots, notes) = drawable(view.slots);
    let view = &GanttView { slots, ..*view };
    let chart = &bounded(chart, view);
    let shown: Vec<&GanttJob> =
        data.jobs.iter().filter(|job| job.start < view.to && job.end > view.from).collect();
    let keys = ColourKeys::from_keys(data.keys, &shown);
    let legend = Legend::new(keys.entries());
    let tall = (view.lines() * TALL.2).clamp(TALL.0, TALL.1);
    let frame = PlotFrame::new(chart, legend.tall, tall, [None::<Extent>, None]);
    let plot = ProcessorRows { frame: &frame, per_slot: (view.slots > 1).then_some(f64::from(view.procs)) };
    let drawable = view.procs > 0 && view.from < view.to && !shown.is_empty();
    let queue = drawable.then(|| QueuePanels::new(&frame, data.queue, (view.from, view.to))).flatten();
    let marks = html! {
        @if drawable {
            (legend.draw())
            (frame.behind())
            g class="jobs" { @for (n, paths) in &paths(&plot, &keys, &shown) { (paths.draw(keys.class(*n))) } }
            (boundaries(&plot, view))
            g class="numbers" { @for job in &shown { (number(&plot, job)) } }
            (frame.before())
            @if let Some(queue) = &queue { (queue.draw(&frame)) }
        } @else {
            (frame.empty())
        }
    };
    let foot = queue.as_ref().map_or(frame.foot(), QueuePanels::foot);
    let readout = drawable.then(|| Readout::Gantt {
        plot: Plot::new(&frame),
        procs: view.procs,
        slots: view.slots.max(1),
        from: view.from,
        to: view.to,
        scale: keys.scale.letter(),
        keys: keys.names(),
        jobs: shown.iter().map(|job| JobReadout::new(job, keys.colour(&job.key))).collect(),
        clock: match &chart.x.scale {
            AxisScale::Dates(clock) => Some(clock.clone()),
            _ => None,
        },
        queue: queue.map(QueuePanels::into_readout),
    });
    Drawing { marks, foot, notes, readout, description: None }
}

/// Maximum number of host boundaries. More would hide the jobs.
const HOSTS: usize = 63;

/// The plot with rows of processors.
struct ProcessorRows<'a> {
    frame: &'a PlotFrame<'a>,
    /// Rows per slot, for an axis of slots.
    per_slot: Option<f64>,
}

impl ProcessorRows<'_> {
    /// Returns the place of a row. Processors count upwards, slots downwards.
    fn place(&self, line: f64) -> Option<f64> {
        // The slot number is at the middle of its band.
        self.frame.y.place(self.per_slot.map_or(line, |procs| line / procs - 0.5))
    }
}

/// Draws lines between hosts or slots.
fn boundaries(plot: &ProcessorRows<'_>, view: &GanttView<'_>) -> Markup {
    let frame = plot.frame;
    let lows: Vec<f64> = match view.slots {
        0 | 1 => view.hosts.iter().copied().map(f64::from).collect(),
        slots => (1..slots).map(|slot| f64::from(slot) * f64::from(view.procs)).collect(),
    };
    let shown = if lows.len() > HOSTS { &[] } else { &lows[..] };
    let places = shown.iter().filter_map(|&low| plot.place(low));
    let lines: Vec<f64> = places.filter(|y| (frame.top..frame.bottom).contains(y)).collect();
    html! {
        @if !lines.is_empty() {
            g class="hosts" {
                @for y in lines {
                    path class="axis" stroke-dasharray="2 3" d=(format!("M{} {}H{}", Px(frame.left), Px(y), Px(frame.right))) {}
                }
            }
        }
    }
}

/// Returns the chart with the axes of the time window and the machine.
fn bounded(chart: &Chart, view: &GanttView<'_>) -> Chart {
    let scale = match &chart.x.scale {
        dates @ AxisScale::Dates(_) => dates.clone(),
        _ => AxisScale::Seconds,
    };
    let x = Axis { scale, ..chart.x.clone().between(view.from, view.to) };
    let y = match view.slots {
        0 | 1 => Axis { scale: AxisScale::Linear, ..chart.y.clone().between(0.0, f64::from(view.procs)) },
        slots => slots_axis("slot, with its processors", slots),
    };
    with_axes(chart, x, y)
}

/// The meaning of the colours: a given list, or the most frequent keys by name. All others share a colour.
struct ColourKeys<'a> {
    named: Vec<&'a str>,
    others: usize,
    scale: ColourScale,
    /// The colours in use, with a given list of keys.
    used: Option<BTreeSet<usize>>,
}

/// The colours of the jobs of a Gantt chart.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ColourScale {
    Series,
    Reasons,
    Diverging,
}

impl ColourScale {
    /// Returns the letter before the number of a colour in its class.
    fn letter(self) -> char {
        match self {
            ColourScale::Series => 's',
            ColourScale::Reasons => 'r',
            ColourScale::Diverging => 'd',
        }
    }

    /// Returns the number of keys with a colour of their own. The others share the next colour.
    fn named(self) -> usize {
        if self == ColourScale::Diverging { SHADES } else { NAMED }
    }

    /// Returns the class of a colour.
    fn class(self, colour: usize) -> &'static str {
        match self {
            ColourScale::Series => colours::series(colour),
            ColourScale::Reasons => colours::reason(colour),
            ColourScale::Diverging => colours::diverging(colour),
        }
    }
}

impl<'a> ColourKeys<'a> {
    fn from_keys(keys: &'a GanttKeys, jobs: &[&'a GanttJob]) -> ColourKeys<'a> {
        match keys {
            GanttKeys::Listed(keys) if !keys.is_empty() => {
                ColourKeys::fixed(keys, jobs, ColourScale::Reasons)
            }
            GanttKeys::Diverging(keys) => ColourKeys::fixed(keys, jobs, ColourScale::Diverging),
            _ => ColourKeys::new(jobs),
        }
    }

    fn new(jobs: &[&'a GanttJob]) -> ColourKeys<'a> {
        let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
        for job in jobs {
            *uses.entry(job.key.as_str()).or_default() += 1;
        }
        let mut keys: Vec<_> = uses.into_iter().collect();
        keys.sort_by_key(|&(key, uses)| (std::cmp::Reverse(uses), key));
        let others = keys.len().saturating_sub(NAMED);
        let mut named: Vec<&str> = keys.into_iter().take(NAMED).map(|(key, _)| key).collect();
        named.sort_unstable();
        ColourKeys { named, others, scale: ColourScale::Series, used: None }
    }

    /// Returns colours by the position in a list. Keys beyond it share the colour after its last one.
    fn fixed(keys: &'a [String], jobs: &[&'a GanttJob], scale: ColourScale) -> ColourKeys<'a> {
        let named: Vec<&str> = keys.iter().map(String::as_str).take(scale.named()).collect();
        let mut colours = ColourKeys { named, others: 0, scale, used: Some(BTreeSet::new()) };
        let used: BTreeSet<usize> = jobs.iter().map(|job| colours.colour(&job.key)).collect();
        let unnamed: BTreeSet<&str> =
            jobs.iter().map(|job| job.key.as_str()).filter(|key| !colours.named.contains(key)).collect();
        colours.others = unnamed.len();
        colours.used = Some(used);
        colours
    }

    /// Returns the colour of a key: its own, or the shared one.
    fn colour(&self, key: &str) -> usize {
        self.named.iter().position(|named| *named == key).unwrap_or(self.scale.named())
    }

    /// Returns the class of a colour.
    fn class(&self, colour: usize) -> &'static str {
        self.scale.class(colour)
    }

    /// Returns the name of each colour.
    fn names(&self) -> Vec<String> {
        let named = self.named.iter().map(|&key| key.to_owned());
        let unused = std::iter::repeat_n(String::new(), self.scale.named().saturating_sub(self.named.len()));
        let rest = (self.others > 0).then(|| format!("{} others", self.others));
        named.chain(unused).chain(rest).collect()
    }

    /// Returns a legend entry per colour in use, or none for a single key without a list.
    fn entries(&self) -> Vec<LegendEntry> {
        if self.used.is_none() && self.named.len() < 2 {
            return Vec::new();
        }
        let shown = |n: &usize| self.used.as_ref().is_none_or(|used| used.contains(n));
        let names = self.names().into_iter().enumerate().filter(|(n, name)| !name.is_empty() && shown(n));
        names.map(|(n, name)| LegendEntry { name, key: job_key(self.class(n)) }).collect()
    }
}

/// Number of keys with a colour of their own, unless the scale is diverging.
const NAMED: usize = 7;

/// The rectangles of one colour.
///
/// One path holds thousands of rectangles, because browsers are slow with as many elements.
#[derive(Default)]
struct ColourPaths {
    outlined: SvgPath,
    thin: SvgPath,
    /// Thin rectangles drawn so far, rounded, to draw coinciding ones once.
    seen: BTreeSet<[i64; 4]>,
}

impl ColourPaths {
    fn add(&mut self, [left, top, wide, tall]: [f64; 4]) {
        if wide > OUTLINED && tall > OUTLINED {
            self.outlined.rect(left, top, wide, tall);
            return;
        }
        // Places are small numbers, and half a unit is the resolution of a screen.
        #[allow(clippy::cast_possible_truncation)]
        let rounded = [left, top, left + wide, top + tall].map(|place| (place * 2.0).round() as i64);
        let [left, top, right, bottom] = rounded;
        let (right, bottom) = (right.max(left + 1), bottom.max(top + 1));
        if self.seen.insert([left, top, right, bottom]) {
            let half = |place: i64| place as f64 / 2.0;
            self.thin.rect(half(left), half(top), half(right - left), half(bottom - top));
        }
    }

    fn draw(&self, colour: &str) -> Markup {
        html! {
            @if !self.thin.is_empty() { path class={ "job thin " (colour) } d=(self.thin) {} }
            @if !self.outlined.is_empty() { path class={ "job " (colour) } d=(self.outlined) {} }
        }
    }
}

fn paths(plot: &ProcessorRows<'_>, keys: &ColourKeys, jobs: &[&GanttJob]) -> BTreeMap<usize, ColourPaths> {
    let mut paths: BTreeMap<usize, ColourPaths> = BTreeMap::new();
    for job in jobs {
        let paths = paths.entry(keys.colour(&job.key)).or_default();
        for &pes in &job.pes {
            if let Some(rect) = place(plot, job, pes) {
                paths.add(rect);
            }
        }
    }
    paths
}

/// Returns the rectangle of a job on a processor range: left, top, width, height.
fn place(plot: &ProcessorRows<'_>, job: &GanttJob, (low, high): (u32, u32)) -> Option<[f64; 4]> {
    let (left, right) = (plot.frame.x.place(job.start)?, plot.frame.x.place(job.end)?);
    let (one, other) = (plot.place(f64::from(high) + 1.0)?, plot.place(f64::from(low))?);
    Some([left, one.min(other), right - left, (other - one).abs()])
}

/// Draws the job's number in its largest rectangle, if it fits.
fn number(plot: &ProcessorRows<'_>, job: &GanttJob) -> Markup {
    let rects = job.pes.iter().filter_map(|&pes| place(plot, job, pes));
    let largest = rects.max_by(|left, right| left[3].total_cmp(&right[3]));
    number_in(largest, job.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(keys: &[&str]) -> Vec<GanttJob> {
        let job = |&key: &&str| GanttJob {
            number: 1,
            pes: Vec::new(),
            submit: 0.0,
            start: 0.0,
            end: 1.0,
            user: None,
            key: key.into(),
            part: None,
            note: None,
        };
        keys.iter().map(job).collect()
    }

    #[test]
    fn the_same_keys_have_the_same_colours() {
        for keys in [["a", "b", "b"], ["b", "a", "a"]] {
            let jobs = jobs(&keys);
            let keys = ColourKeys::new(&jobs.iter().collect::<Vec<_>>());
            assert_eq!((keys.colour("a"), keys.colour("b"), keys.others), (0, 1, 0));
        }
    }

    #[test]
    fn keys_of_a_list_have_its_colours_and_always_a_legend() {
        let list = ["a", "b", "c"].map(str::to_owned);
        let jobs = jobs(&["c", "c"]);
        let keys = ColourKeys::fixed(&list, &jobs.iter().collect::<Vec<_>>(), ColourScale::Reasons);
        assert_eq!((keys.colour("a"), keys.colour("c"), keys.class(2)), (0, 2, "r2"));
        let names: Vec<String> = keys.entries().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["c"]);
        assert!(ColourKeys::new(&jobs.iter().collect::<Vec<_>>()).entries().is_empty());
    }

    #[test]
    fn keys_without_a_colour_share_one() {
        let jobs = jobs(&["i", "h", "g", "f", "e", "d", "c", "b", "a", "i", "h"]);
        let keys = ColourKeys::new(&jobs.iter().collect::<Vec<_>>());
        assert_eq!(["a", "e", "f", "g", "h", "i"].map(|key| keys.colour(key)), [0, 4, 7, 7, 5, 6]);
        assert_eq!(keys.entries().last().map(|entry| entry.name.clone()), Some("2 others".into()));
    }
}
