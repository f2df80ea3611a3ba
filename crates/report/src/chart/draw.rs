//! From a chart to its SVG.

use maud::{Markup, PreEscaped, html};

use super::colours;
use super::data::{Body, Chart};
use super::frame::WIDTH;
use super::gantt::Window;
use super::ink::{LETTERS, Px, allowed};
use super::matrix::Slots;
use super::readout::Readout;
use super::{bars, gantt, heat, lines, matrix};

/// What a kind of chart has drawn.
#[derive(Default)]
pub(super) struct Drawn {
    pub(super) marks: Markup,
    /// Where it ends.
    pub(super) foot: f64,
    /// What a reader must know: what was left out, and why.
    pub(super) notes: Vec<String>,
    /// What the page's script says and does on it.
    pub(super) readout: Option<Readout>,
    /// What is drawn, in words, where parts of the drawing have words of their own too.
    pub(super) said: Option<String>,
}

/// The chart as an SVG file of its own, light or dark as the reader's system is.
///
/// The same chart gives the same bytes. What cannot be drawn (not a number, not above zero on a logarithmic axis) is left
/// out, and said below the chart; a chart without any data is an empty frame that says so. Every text is escaped.
pub fn svg(chart: &Chart) -> String {
    let drawn = body(chart);
    let words: Vec<&str> = [&chart.caption, &drawn.said].into_iter().flatten().map(String::as_str).collect();
    let name = html! {
        title { (chart.title) }
        @if !words.is_empty() { desc { (words.join(" ")) } }
        style { (PreEscaped(colours::file())) }
    };
    allowed(&element(&drawn, &name, None).into_string())
}

/// A chart within a page: the drawing, and what the page's script needs.
pub(crate) struct Inline {
    pub(crate) svg: String,
    pub(crate) readout: Option<Readout>,
    /// What is drawn, in words, to stand below it.
    pub(crate) said: Option<String>,
}

/// The chart within a page, which brings the style and names the chart in the element `label`.
pub(crate) fn inline(chart: &Chart, label: &str) -> Inline {
    let drawn = body(chart);
    let svg = allowed(&element(&drawn, &html! {}, Some(label)).into_string());
    Inline { svg, readout: drawn.readout, said: drawn.said }
}

fn element(drawn: &Drawn, name: &Markup, label: Option<&str>) -> Markup {
    let tall = drawn.foot + drawn.notes.len() as f64 * NOTE + 4.0;
    // Within an image there is nothing to be pointed at, as far as readers of the screen are told.
    let role = if drawn.said.is_some() { "group" } else { "img" };
    let view = format!("0 0 {} {}", Px(WIDTH), Px(tall));
    html! {
        svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox=(view) width=(Px(WIDTH)) height=(Px(tall))
            role=(role) aria-labelledby=[label] {
            (name)
            rect class="paper" width=(Px(WIDTH)) height=(Px(tall)) {}
            (drawn.marks)
            @for (n, note) in drawn.notes.iter().enumerate() {
                text class="note" x="8" y=(Px(drawn.foot + (n as f64 + 0.8) * NOTE)) { (note) }
            }
        }
    }
}

/// How high a line of the notes is.
const NOTE: f64 = LETTERS * 1.4;

fn body(chart: &Chart) -> Drawn {
    match &chart.body {
        Body::Lines { series } => lines::draw(chart, series),
        Body::Bars { bins } => bars::draw(chart, bins),
        Body::Heat { cells, ramp, decimals } => heat::draw(chart, cells, *ramp, *decimals),
        Body::Gantt { procs, hosts, slots, from, to, jobs } => {
            let window = Window { procs: *procs, hosts, slots: *slots, from: *from, to: *to };
            gantt::draw(chart, &window, jobs)
        }
        Body::Matrix { procs, from, to, jobs, places } => {
            matrix::draw(chart, &Slots { procs: *procs, from: *from, to: *to, jobs, places })
        }
    }
}
