//! Rendering of a chart as SVG.

use maud::{Markup, html};

use super::colours;
use super::data::{Body, Chart};
use super::frame::WIDTH;
use super::ink::{LETTERS, Px, allowed};
use super::matrix::MatrixView;
use super::readout::Readout;
use super::{bars, groups, heat, lines, matrix, panels, schedule};

/// The drawing of one kind of chart.
#[derive(Default)]
pub(super) struct Drawing {
    pub(super) marks: Markup,
    /// Lower end.
    pub(super) foot: f64,
    /// Notes on omitted data.
    pub(super) notes: Vec<String>,
    /// Data for the page's script.
    pub(super) readout: Option<Readout>,
    /// Whether it has the colours of the scene.
    pub(super) is_scene: bool,
    /// Text alternative, for drawings whose parts have texts of their own.
    pub(super) description: Option<String>,
}

/// Renders the chart as a stand-alone SVG that follows the theme of the reader's system.
///
/// The same chart gives the same bytes. Every text is escaped. Undrawable values (not a number, not
/// above zero on a logarithmic axis) are omitted, with a note below. A chart without data is an
/// empty frame with a note.
pub fn svg(chart: &Chart) -> String {
    let drawing = body(chart);
    let words: Vec<&str> =
        [&chart.caption, &drawing.description].into_iter().flatten().map(String::as_str).collect();
    let name = html! {
        title { (chart.title) }
        @if !words.is_empty() { desc { (words.join(" ")) } }
        style {}
    };
    let unstyled = element(&drawing, &name, None).into_string();
    // No text has this element: texts are escaped.
    let style = format!("<style>{}</style>", colours::drawn(&unstyled));
    allowed(unstyled.replacen("<style></style>", &style, 1))
}

/// A chart embedded in a page.
pub(crate) struct Inline {
    pub(crate) svg: String,
    pub(crate) readout: Option<Readout>,
    /// Text alternative below the drawing.
    pub(crate) description: Option<String>,
}

/// Renders the chart for a page that provides the style and the title in the element `label`.
pub(crate) fn inline(chart: &Chart, label: &str) -> Inline {
    let drawing = body(chart);
    let svg = allowed(element(&drawing, &html! {}, Some(label)).into_string());
    Inline { svg, readout: drawing.readout, description: drawing.description }
}

fn element(drawing: &Drawing, name: &Markup, label: Option<&str>) -> Markup {
    let tall = drawing.foot + drawing.notes.len() as f64 * NOTE + 4.0;
    // Screen readers treat an image as a leaf, so drawings with a text alternative are groups.
    let role = if drawing.description.is_some() { "group" } else { "img" };
    let view = format!("0 0 {} {}", Px(WIDTH), Px(tall));
    let class = if drawing.is_scene { "chart scene" } else { "chart" };
    html! {
        svg xmlns="http://www.w3.org/2000/svg" class=(class) viewBox=(view) width=(Px(WIDTH)) height=(Px(tall))
            role=(role) aria-labelledby=[label] {
            (name)
            rect class="paper" width=(Px(WIDTH)) height=(Px(tall)) {}
            (drawing.marks)
            @for (n, note) in drawing.notes.iter().enumerate() {
                text class="note" x="8" y=(Px(drawing.foot + (n as f64 + 0.8) * NOTE)) { (note) }
            }
        }
    }
}

/// Height of a line of notes.
const NOTE: f64 = LETTERS * 1.4;

fn body(chart: &Chart) -> Drawing {
    match &chart.body {
        Body::Lines { series } => lines::draw(chart, series),
        Body::Panels { series } => panels::draw(chart, series),
        Body::Bars { bins } => bars::draw(chart, bins),
        Body::Groups { series } => groups::draw(chart, series),
        Body::Heat { cells, ramp, decimals } => heat::draw(chart, cells, *ramp, *decimals),
        Body::Gantt { .. } => schedule::draw(chart),
        Body::Matrix { procs, from, to, jobs, places } => {
            matrix::draw(chart, &MatrixView { procs: *procs, from: *from, to: *to, jobs, places })
        }
    }
}
