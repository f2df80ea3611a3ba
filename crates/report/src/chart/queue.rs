//! The waiting jobs below a Gantt chart, over its time axis.

use maud::{Markup, html};

use super::colours;
use super::data::{Axis, QueueStep};
use super::frame::PlotFrame;
use super::ink::{LETTERS, Px, SvgPath};
use super::readout::{PanelReadout, QueueReadout, hundredths};
use super::scale::Extent;
use super::values::number;

/// Height of the plot of a panel, and of its heading.
const TALL: (f64, f64) = (54.0, LETTERS * 1.7);

/// The panels: the number of waiting jobs, and the processors that they request.
pub(super) struct QueuePanels {
    /// Steps of the window, the first one at its begin.
    steps: Vec<QueueStep>,
    panels: [Panel; 2],
}

/// A value of a step.
type Quantity = fn(&QueueStep) -> u64;

/// A quantity over time, as an area.
struct Panel {
    heading: &'static str,
    value: Quantity,
    colour: usize,
    top: f64,
    /// Value at the top.
    high: f64,
}

impl QueuePanels {
    /// Lays out the panels below the axis of a schedule. Returns `None` if no job waits in the window.
    pub(super) fn new(frame: &PlotFrame<'_>, steps: &[QueueStep], window: (f64, f64)) -> Option<QueuePanels> {
        let steps = clipped(steps, window);
        if steps.iter().all(|step| step.jobs == 0) {
            return None;
        }
        let kinds: [(&str, Quantity, usize); 2] =
            [("jobs waiting", |step| step.jobs, 0), ("processors requested by them", |step| step.procs, 3)];
        let mut top = frame.foot();
        let panels = kinds.map(|(heading, value, colour)| {
            top += TALL.1;
            let panel = Panel { heading, value, colour, top, high: high(&steps, value) };
            top += TALL.0;
            panel
        });
        Some(QueuePanels { steps, panels })
    }

    /// Returns the lower end of the panels.
    pub(super) fn foot(&self) -> f64 {
        self.panels[1].bottom() + LETTERS * 0.5
    }

    pub(super) fn draw(&self, frame: &PlotFrame<'_>) -> Markup {
        html! { g class="queue" { @for panel in &self.panels { (panel.draw(frame, &self.steps)) } } }
    }

    pub(super) fn into_readout(self) -> QueueReadout {
        let step = |step: &QueueStep| (step.at, step.jobs, step.procs);
        let panel = |panel: &Panel| PanelReadout {
            top: hundredths(panel.top),
            bottom: hundredths(panel.bottom()),
            high: panel.high,
        };
        QueueReadout {
            steps: self.steps.iter().map(step).collect(),
            panels: self.panels.iter().map(panel).collect(),
        }
    }
}

impl Panel {
    fn bottom(&self) -> f64 {
        self.top + TALL.0
    }

    fn place(&self, value: u64) -> f64 {
        self.bottom() - value as f64 / self.high * TALL.0
    }

    fn draw(&self, frame: &PlotFrame<'_>, steps: &[QueueStep]) -> Markup {
        let place = |step: &QueueStep| Some((frame.x.place(step.at)?, self.place((self.value)(step))));
        let places: Vec<(f64, f64)> = steps.iter().filter_map(place).collect();
        let area = SvgPath::area(&places, self.bottom(), frame.right);
        html! {
            text class="note" x=(Px(frame.left)) y=(Px(self.top - LETTERS * 0.4)) { (self.heading) }
            path class={ "area " (colours::series(self.colour)) } fill-opacity="0.35" d=(area) {}
            path class="axis" d=(format!("M{l} {t}V{b}H{r}", l = Px(frame.left), t = Px(self.top), b = Px(self.bottom()), r = Px(frame.right))) {}
            g class="ticks" {
                @for (value, y) in [(0.0, self.bottom()), (self.high, self.top)] {
                    line x1=(Px(frame.left - 5.0)) y1=(Px(y)) x2=(Px(frame.left)) y2=(Px(y)) {}
                    text text-anchor="end" x=(Px(frame.left - 8.0)) y=(Px(y + LETTERS * 0.35)) { (number(value, 1.0)) }
                }
            }
        }
    }
}

/// Returns a round number at or above all values.
fn high(steps: &[QueueStep], value: Quantity) -> f64 {
    let values = steps.iter().map(|step| value(step) as f64).chain([0.0, 1.0]);
    let axis = Axis::linear("").from_zero();
    let extent = Extent::from_values(&axis, values);
    axis.bounds(extent).1
}

/// Returns the steps within a window. The first one is at its begin.
fn clipped(steps: &[QueueStep], (from, to): (f64, f64)) -> Vec<QueueStep> {
    let before = steps.iter().take_while(|step| step.at <= from).last();
    let first =
        before.map_or(QueueStep { at: from, jobs: 0, procs: 0 }, |step| QueueStep { at: from, ..*step });
    let within = steps.iter().filter(|step| step.at > from && step.at < to);
    std::iter::once(first).chain(within.copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_is_at_the_begin_of_the_window() {
        let step = |at, jobs| QueueStep { at, jobs, procs: 10 * jobs };
        let steps = [step(1.0, 3), step(4.0, 5), step(8.0, 0), step(20.0, 9)];
        assert_eq!(clipped(&steps, (5.0, 10.0)), [step(5.0, 5), step(8.0, 0)]);
        assert_eq!(clipped(&steps, (0.0, 4.0)), [step(0.0, 0), step(1.0, 3)]);
        assert_eq!(clipped(&[], (0.0, 4.0)), [step(0.0, 0)]);
    }

    #[test]
    fn the_top_of_a_panel_is_round() {
        let step = |jobs| QueueStep { at: 0.0, jobs, procs: 0 };
        assert_eq!(Some(high(&[step(3), step(17)], |step| step.jobs)), Some(20.0));
        assert_eq!(Some(high(&[step(3)], |step| step.procs)), Some(1.0));
    }
}
