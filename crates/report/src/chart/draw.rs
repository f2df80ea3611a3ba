//! From a chart to its SVG.

use maud::{Markup, PreEscaped, html};

use super::colours;
use super::data::{Body, Chart};
use super::frame::WIDTH;
use super::gantt::Window;
use super::ink::{LETTERS, Px, allowed};
use super::{bars, gantt, heat, lines};

/// What a kind of chart has drawn.
pub(super) struct Drawn {
    pub(super) marks: Markup,
    /// Where it ends.
    pub(super) foot: f64,
    /// What a reader must know: what was left out, and why.
    pub(super) notes: Vec<String>,
}

/// The chart as an SVG file of its own, light or dark as the reader's system is.
///
/// The same chart gives the same bytes. What cannot be drawn (not a number, not above zero on a logarithmic axis) is left
/// out, and said below the chart; a chart without any data is an empty frame that says so. Every text is escaped.
pub fn svg(chart: &Chart) -> String {
    let name = html! {
        title { (chart.title) }
        @if let Some(caption) = &chart.caption { desc { (caption) } }
        style { (PreEscaped(colours::file())) }
    };
    allowed(&element(chart, &name, html! {}).into_string())
}

/// The chart within a page, which brings the style and names the chart by the element `label`.
pub(crate) fn inline(chart: &Chart, label: &str) -> String {
    let name = html! { @if let Some(caption) = &chart.caption { desc { (caption) } } };
    allowed(&element(chart, &name, html! { (label) }).into_string())
}

fn element(chart: &Chart, name: &Markup, label: Markup) -> Markup {
    let drawn = body(chart);
    let tall = drawn.foot + drawn.notes.len() as f64 * LETTERS * 1.4 + 4.0;
    let label = label.into_string();
    let label = (!label.is_empty()).then_some(label);
    html! {
        svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox=(format!("0 0 {} {}", Px(WIDTH), Px(tall))) width=(Px(WIDTH)) height=(Px(tall)) role="img" aria-labelledby=[label] {
            (name)
            rect class="paper" width=(Px(WIDTH)) height=(Px(tall)) {}
            (drawn.marks)
            @for (n, note) in drawn.notes.iter().enumerate() {
                text class="note" x="8" y=(Px(drawn.foot + (n + 1) as f64 * LETTERS * 1.4)) { (note) }
            }
        }
    }
}

fn body(chart: &Chart) -> Drawn {
    match &chart.body {
        Body::Lines { series } => lines::draw(chart, series),
        Body::Bars { bins } => bars::draw(chart, bins),
        Body::Heat { cells, ramp, decimals } => heat::draw(chart, cells, *ramp, *decimals),
        Body::Gantt { procs, from, to, jobs } => {
            gantt::draw(chart, &Window { procs: *procs, from: *from, to: *to }, jobs)
        }
    }
}
