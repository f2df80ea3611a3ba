//! The axes: position of the plot, grid, ticks and labels.

use maud::{Markup, html};

use super::data::{Axis, AxisScale, Chart};
use super::ink::{ENLARGED, LETTERS, Px, TIGHT, fitted, text_width};
use super::scale::{AxisMap, Extent};
use super::ticks::{Tick, ticks};

/// Width of every drawing. Text sizes fit this width; narrower screens scroll.
pub(super) const WIDTH: f64 = 640.0;

/// Right margin for half of the last x label.
const RIGHT: f64 = 24.0;

/// Height of an axis label and its distance from the tick labels.
const LABEL: f64 = LETTERS * 1.8;

/// Length of a tick and its distance from its label.
const TICK: f64 = 8.0;

/// Maximum width of labels on a categorical axis.
const NAMES: f64 = 130.0;

/// The plot between the axes.
pub(super) struct PlotFrame<'a> {
    chart: &'a Chart,
    pub(super) x: AxisMap,
    pub(super) y: AxisMap,
    x_ticks: Vec<Tick>,
    /// Whether the label of each x tick has no room to be enlarged.
    tight: Vec<bool>,
    y_ticks: Vec<Tick>,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// Height of the labels below.
    foot: f64,
}

impl<'a> PlotFrame<'a> {
    /// Lays out the plot with height `tall` below `top`, for values of these extents.
    pub(super) fn new(chart: &'a Chart, top: f64, tall: f64, extents: [Option<Extent>; 2]) -> PlotFrame<'a> {
        let (x_bounds, y_bounds) = (chart.x.bounds(extents[0]), chart.y.bounds(extents[1]));
        let (top, bottom) = (top + LETTERS, top + LETTERS + tall);
        let mut y_ticks = labelled(&chart.y, y_bounds, 6);
        let left = LABEL + TICK + y_room(&chart.y, &y_ticks);
        let right = WIDTH - RIGHT;
        let x = AxisMap::new(&chart.x.scale, x_bounds, (left, right));
        let y_places = match chart.y.scale {
            // Names read from top to bottom.
            AxisScale::Category(_) => (top, bottom),
            _ => (bottom, top),
        };
        let y = AxisMap::new(&chart.y.scale, y_bounds, y_places);
        thin_out_rows(&mut y_ticks, &chart.y, &y);
        let mut x_ticks = labelled(&chart.x, x_bounds, 7);
        let foot = if is_slanted(&chart.x, &x_ticks, right - left) {
            widest(&x_ticks).min(NAMES) * SLANT.0 + LETTERS
        } else {
            thin_out(&mut x_ticks, &x);
            LETTERS
        };
        let tight = tight(&x_ticks, &x);
        PlotFrame {
            chart,
            x,
            y,
            x_ticks,
            tight,
            y_ticks,
            left,
            right,
            top,
            bottom,
            foot: TICK + foot + LABEL,
        }
    }

    /// Returns the lower end of the labels.
    pub(super) fn foot(&self) -> f64 {
        self.bottom + self.foot
    }

    /// Draws the layer behind the data: the grid.
    pub(super) fn behind(&self) -> Markup {
        html! {
            g class="grid" {
                @for x in self.lines(&self.chart.x, &self.x, &self.x_ticks) {
                    line x1=(Px(x)) y1=(Px(self.top)) x2=(Px(x)) y2=(Px(self.bottom)) {}
                }
                @for y in self.lines(&self.chart.y, &self.y, &self.y_ticks) {
                    line x1=(Px(self.left)) y1=(Px(y)) x2=(Px(self.right)) y2=(Px(y)) {}
                }
            }
        }
    }

    /// Draws the layer over the data: the axes with ticks and labels.
    pub(super) fn before(&self) -> Markup {
        let middle = f64::midpoint(self.top, self.bottom);
        let x_room = self.right - self.left;
        html! {
            path class="axis" d=(format!("M{l} {t}V{b}H{r}", l = Px(self.left), t = Px(self.top), b = Px(self.bottom), r = Px(self.right))) {}
            g class=(ticks_class(&self.chart.x, "ticks x")) {
                @for (tick, tight) in self.x_ticks.iter().zip(&self.tight) { (self.x_tick(tick, *tight)) }
            }
            g class=(ticks_class(&self.chart.y, "ticks y")) { @for tick in &self.y_ticks { (self.y_tick(tick)) } }
            text class="label" text-anchor="middle" x=(Px(f64::midpoint(self.left, self.right))) y=(Px(self.foot() - 4.0)) {
                (fitted(&self.chart.x.label, x_room))
            }
            text class="label" text-anchor="middle" transform=(format!("translate({} {}) rotate(-90)", Px(LETTERS * 1.2), Px(middle))) {
                (fitted(&self.chart.y.label, self.bottom - self.top + 2.0 * LETTERS))
            }
        }
    }

    /// Draws the axes over the data of a panel that is not the lowest one: without labels below.
    pub(super) fn before_inner(&self) -> Markup {
        html! {
            path class="axis" d=(format!("M{l} {t}V{b}H{r}", l = Px(self.left), t = Px(self.top), b = Px(self.bottom), r = Px(self.right))) {}
            g class="ticks y" { @for tick in &self.y_ticks { (self.y_tick(tick)) } }
        }
    }

    /// Draws the frame without ticks, for a chart without data.
    pub(super) fn empty(&self) -> Markup {
        html! {
            path class="axis" d=(format!("M{l} {t}V{b}H{r}", l = Px(self.left), t = Px(self.top), b = Px(self.bottom), r = Px(self.right))) {}
            text class="nothing" text-anchor="middle" x=(Px(f64::midpoint(self.left, self.right))) y=(Px(f64::midpoint(self.top, self.bottom))) { "no data" }
        }
    }

    /// Returns the places of grid lines: the labelled ticks. Categorical axes have none.
    fn lines(&self, axis: &Axis, map: &AxisMap, ticks: &[Tick]) -> Vec<f64> {
        let shown =
            ticks.iter().filter(|tick| tick.label.is_some() && !matches!(axis.scale, AxisScale::Category(_)));
        let places = shown.filter_map(|tick| map.place(tick.at));
        // A line on an axis would make it look uneven.
        places.filter(|&place| (place - self.left).abs() > 0.5 && (place - self.bottom).abs() > 0.5).collect()
    }

    fn x_tick(&self, tick: &Tick, tight: bool) -> Markup {
        let x = self.x.place(tick.at).unwrap_or(self.left);
        let long = if tick.label.is_some() { 5.0 } else { 3.0 };
        let slanted = self.foot > TICK + LETTERS + LABEL;
        let y = self.bottom + TICK + LETTERS * if slanted { 0.5 } else { 0.9 };
        html! {
            line x1=(Px(x)) y1=(Px(self.bottom)) x2=(Px(x)) y2=(Px(self.bottom + long)) {}
            @if let Some(label) = &tick.label {
                @if slanted {
                    text text-anchor="end" transform=(format!("translate({} {}) rotate(-{})", Px(x + 4.0), Px(y), SLANT.1)) { (fitted(label, NAMES)) }
                } @else {
                    text class=[tight.then_some(TIGHT)] text-anchor="middle" x=(Px(x)) y=(Px(y)) { (label) }
                }
            }
        }
    }

    fn y_tick(&self, tick: &Tick) -> Markup {
        let y = self.y.place(tick.at).unwrap_or(self.bottom);
        let long = if tick.label.is_some() { 5.0 } else { 3.0 };
        html! {
            line x1=(Px(self.left - long)) y1=(Px(y)) x2=(Px(self.left)) y2=(Px(y)) {}
            @if let Some(label) = &tick.label {
                text text-anchor="end" x=(Px(self.left - TICK)) y=(Px(y + LETTERS * 0.35)) { (fitted(label, NAMES)) }
            }
        }
    }
}

/// Sine of the angle of slanted labels, and the angle in degrees.
const SLANT: (f64, u32) = (0.574, 35);

/// Returns whether the names below the axis are too long to fit side by side.
fn is_slanted(axis: &Axis, ticks: &[Tick], room: f64) -> bool {
    matches!(axis.scale, AxisScale::Category(_)) && widest(ticks) > room / ticks.len().max(1) as f64 - 4.0
}

fn labelled(axis: &Axis, bounds: (f64, f64), count: usize) -> Vec<Tick> {
    ticks(&axis.scale, bounds, count)
}

fn widest(ticks: &[Tick]) -> f64 {
    let widths = ticks.iter().filter_map(|tick| tick.label.as_deref()).map(text_width);
    widths.fold(0.0, f64::max)
}

/// Returns the class of the ticks of an axis. Names are enlarged less than numbers.
fn ticks_class(axis: &Axis, class: &'static str) -> String {
    let names = if matches!(axis.scale, AxisScale::Category(_)) { " names" } else { "" };
    format!("{class}{names}")
}

/// Returns the width of the labels on the left, with room to enlarge numbers.
fn y_room(axis: &Axis, ticks: &[Tick]) -> f64 {
    match axis.scale {
        AxisScale::Category(_) => widest(ticks).min(NAMES),
        _ => (widest(ticks) * ENLARGED).min(NAMES),
    }
}

/// Returns for each tick whether its label would overlap the previous one if it were enlarged.
fn tight(ticks: &[Tick], x: &AxisMap) -> Vec<bool> {
    let mut free = f64::NEG_INFINITY;
    let mut is_tight = |tick: &Tick| {
        let (Some(label), Some(place)) = (&tick.label, x.place(tick.at)) else { return false };
        let half = text_width(label) * ENLARGED / 2.0;
        let tight = place - half < free || place + half > WIDTH;
        if !tight {
            free = place + half + 6.0;
        }
        tight
    };
    ticks.iter().map(&mut is_tight).collect()
}

/// Removes labels of numbers on the left that would overlap the one below.
fn thin_out_rows(ticks: &mut [Tick], axis: &Axis, y: &AxisMap) {
    if matches!(axis.scale, AxisScale::Category(_)) {
        return;
    }
    let mut free = f64::INFINITY;
    for tick in ticks.iter_mut().filter(|tick| tick.label.is_some()) {
        let Some(place) = y.place(tick.at) else { continue };
        if place > free {
            tick.label = None;
        } else {
            free = place - LETTERS * 1.4;
        }
    }
}

/// Removes labels that would overlap the previous one.
fn thin_out(ticks: &mut [Tick], x: &AxisMap) {
    let mut free = f64::NEG_INFINITY;
    for tick in ticks {
        let (Some(label), Some(place)) = (&tick.label, x.place(tick.at)) else { continue };
        let half = text_width(label) / 2.0;
        if place - half < free {
            tick.label = None;
        } else {
            free = place + half + 6.0;
        }
    }
}
