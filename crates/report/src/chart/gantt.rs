//! Jobs on processors over time.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::colours;
use super::data::{Axis, Body, Chart, GanttJob, Scale};
use super::draw::Drawn;
use super::frame::Frame;
use super::ink::{LETTERS, Path, Px, text_width};
use super::legend::{Entry, Legend};
use super::matrix::{drawable, slots_axis};
use super::readout::{JobReadout, Plot, Readout};
use super::scale::Extent;

/// The least and the greatest height of the plot, and what a processor would like to have.
const TALL: (f64, f64, f64) = (120.0, 380.0, 16.0);

/// A rectangle wider and higher than this has an outline, which tells it from its neighbours of the same colour.
const OUTLINED: f64 = 3.0;

/// What is drawn of a schedule.
pub(super) struct Window<'a> {
    pub(super) procs: u32,
    pub(super) hosts: &'a [u32],
    pub(super) slots: u32,
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Window<'_> {
    /// The lines that there are: a processor each, in each slot.
    fn lines(&self) -> f64 {
        f64::from(self.procs) * f64::from(self.slots.max(1))
    }
}

pub(super) fn draw(chart: &Chart, window: &Window<'_>, jobs: &[GanttJob]) -> Drawn {
    let (slots, notes) = drawable(window.slots);
    let window = &Window { slots, ..*window };
    let chart = &bounded(chart, window);
    let shown: Vec<&GanttJob> =
        jobs.iter().filter(|job| job.start < window.to && job.end > window.from).collect();
    let keys = Keys::of(&shown);
    let legend = Legend::new(keys.entries());
    let tall = (window.lines() * TALL.2).clamp(TALL.0, TALL.1);
    let frame = Frame::new(chart, legend.tall, tall, [None::<Extent>, None]);
    let plot = Lines { frame: &frame, per_slot: (window.slots > 1).then_some(f64::from(window.procs)) };
    let drawable = window.procs > 0 && window.from < window.to && !shown.is_empty();
    let marks = html! {
        @if drawable {
            (legend.draw())
            (frame.behind())
            g class="jobs" { @for (n, paths) in &paths(&plot, &keys, &shown) { (paths.draw(*n)) } }
            (boundaries(&plot, window))
            g class="numbers" { @for job in &shown { (number(&plot, job)) } }
            (frame.before())
        } @else {
            (frame.empty())
        }
    };
    let readout = drawable.then(|| Readout::Gantt {
        plot: Plot::of(&frame),
        procs: window.procs,
        slots: window.slots.max(1),
        from: window.from,
        to: window.to,
        jobs: shown.iter().map(|job| JobReadout::of(job, keys.colour(&job.key))).collect(),
    });
    Drawn { marks, foot: frame.foot(), notes, readout, said: None }
}

/// More lines between hosts would hide the jobs.
const HOSTS: usize = 63;

/// The plot, with lines of processors one above the other.
struct Lines<'a> {
    frame: &'a Frame<'a>,
    /// How many there are in each slot, where the axis is one of slots.
    per_slot: Option<f64>,
}

impl Lines<'_> {
    /// Where a line begins: processors are counted from below, slots from above.
    fn place(&self, line: f64) -> Option<f64> {
        // A slot's number is at its middle.
        self.frame.y.place(self.per_slot.map_or(line, |procs| line / procs - 0.5))
    }
}

/// Lines between the hosts, or the slots.
fn boundaries(plot: &Lines<'_>, window: &Window<'_>) -> Markup {
    let frame = plot.frame;
    let lows: Vec<f64> = match window.slots {
        0 | 1 => window.hosts.iter().copied().map(f64::from).collect(),
        slots => (1..slots).map(|slot| f64::from(slot) * f64::from(window.procs)).collect(),
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

/// The chart with the axes that every Gantt chart has: the window, and the machine.
fn bounded(chart: &Chart, window: &Window<'_>) -> Chart {
    let x = Axis { scale: Scale::Seconds, ..chart.x.clone().between(window.from, window.to) };
    let y = match window.slots {
        0 | 1 => Axis { scale: Scale::Linear, ..chart.y.clone().between(0.0, f64::from(window.procs)) },
        slots => slots_axis("slot, with its processors", slots),
    };
    let body = Body::Lines { series: Vec::new() };
    Chart { id: chart.id.clone(), title: String::new(), caption: None, x, y, body }
}

/// What the colours mean: the most used keys by name, so that schedules of the same kind have the same colours, and the others
/// together.
struct Keys<'a> {
    named: Vec<&'a str>,
    others: usize,
}

impl<'a> Keys<'a> {
    fn of(jobs: &[&'a GanttJob]) -> Keys<'a> {
        let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
        for job in jobs {
            *uses.entry(job.key.as_str()).or_default() += 1;
        }
        let mut keys: Vec<_> = uses.into_iter().collect();
        keys.sort_by_key(|&(key, uses)| (std::cmp::Reverse(uses), key));
        let others = keys.len().saturating_sub(NAMED);
        let mut named: Vec<&str> = keys.into_iter().take(NAMED).map(|(key, _)| key).collect();
        named.sort_unstable();
        Keys { named, others }
    }

    /// Which colour a key has: its own, or the next one for all that have none.
    fn colour(&self, key: &str) -> usize {
        self.named.binary_search(&key).unwrap_or(NAMED)
    }

    /// One entry for each colour. A single key needs no legend.
    fn entries(&self) -> Vec<Entry> {
        if self.named.len() < 2 {
            return Vec::new();
        }
        let key =
            |n| html! { rect class={ "job " (colours::series(n)) } x="2" y="-6" width="18" height="12" {} };
        let named = self.named.iter().map(|&key| key.to_owned());
        let rest = (self.others > 0).then(|| format!("{} others", self.others));
        named.chain(rest).enumerate().map(|(n, name)| Entry { name, key: key(n) }).collect()
    }
}

/// So many keys have a colour of their own; the others share the next one.
const NAMED: usize = 7;

/// The rectangles of one colour. Few elements: a path holds thousands of rectangles, where as many elements would make a
/// browser slow.
#[derive(Default)]
struct Paths {
    outlined: Path,
    thin: Path,
    /// The thin ones there are already, in hundredths, so that what falls together is drawn once.
    seen: BTreeSet<[i64; 4]>,
}

impl Paths {
    fn add(&mut self, [left, top, wide, tall]: [f64; 4]) {
        if wide > OUTLINED && tall > OUTLINED {
            self.outlined.rect(left, top, wide, tall);
            return;
        }
        // Places on the drawing are small numbers. Half a unit is what a screen can show.
        #[allow(clippy::cast_possible_truncation)]
        let rounded = [left, top, left + wide, top + tall].map(|place| (place * 2.0).round() as i64);
        let [left, top, right, bottom] = rounded;
        let (right, bottom) = (right.max(left + 1), bottom.max(top + 1));
        if self.seen.insert([left, top, right, bottom]) {
            let half = |place: i64| place as f64 / 2.0;
            self.thin.rect(half(left), half(top), half(right - left), half(bottom - top));
        }
    }

    fn draw(&self, n: usize) -> Markup {
        let colour = colours::series(n);
        html! {
            @if !self.thin.is_empty() { path class={ "job thin " (colour) } d=(self.thin) {} }
            @if !self.outlined.is_empty() { path class={ "job " (colour) } d=(self.outlined) {} }
        }
    }
}

fn paths(plot: &Lines<'_>, keys: &Keys, jobs: &[&GanttJob]) -> BTreeMap<usize, Paths> {
    let mut paths: BTreeMap<usize, Paths> = BTreeMap::new();
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

/// Where a job lies on a range of processors: left, top, width, height.
fn place(plot: &Lines<'_>, job: &GanttJob, (low, high): (u32, u32)) -> Option<[f64; 4]> {
    let (left, right) = (plot.frame.x.place(job.start)?, plot.frame.x.place(job.end)?);
    let (one, other) = (plot.place(f64::from(high) + 1.0)?, plot.place(f64::from(low))?);
    Some([left, one.min(other), right - left, (other - one).abs()])
}

/// The job's number, in its largest rectangle, if there is room.
fn number(plot: &Lines<'_>, job: &GanttJob) -> Markup {
    let rects = job.pes.iter().filter_map(|&pes| place(plot, job, pes));
    let largest = rects.max_by(|left, right| left[3].total_cmp(&right[3]));
    let number = job.number.to_string();
    let room = largest.filter(|rect| rect[2] > text_width(&number) + 4.0 && rect[3] > LETTERS);
    html! {
        @if let Some([left, top, wide, tall]) = room {
            text text-anchor="middle" x=(Px(left + wide / 2.0)) y=(Px(top + tall / 2.0 + LETTERS * 0.35)) { (number) }
        }
    }
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
        };
        keys.iter().map(job).collect()
    }

    #[test]
    fn the_same_keys_have_the_same_colours() {
        for keys in [["a", "b", "b"], ["b", "a", "a"]] {
            let jobs = jobs(&keys);
            let keys = Keys::of(&jobs.iter().collect::<Vec<_>>());
            assert_eq!((keys.colour("a"), keys.colour("b"), keys.others), (0, 1, 0));
        }
    }

    #[test]
    fn keys_without_a_colour_share_one() {
        let jobs = jobs(&["i", "h", "g", "f", "e", "d", "c", "b", "a", "i", "h"]);
        let keys = Keys::of(&jobs.iter().collect::<Vec<_>>());
        assert_eq!(["a", "e", "f", "g", "h", "i"].map(|key| keys.colour(key)), [0, 4, 7, 7, 5, 6]);
        assert_eq!(keys.entries().last().map(|entry| entry.name.clone()), Some("2 others".into()));
    }
}
