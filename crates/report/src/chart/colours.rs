//! Colours for light and dark, and the style sheet that gives them to the drawings.
//!
//! The series have the colours of Okabe and Ito, which the colour-blind can tell apart, made darker on white and lighter on
//! black until they stand out. The rules name plain colours and no variables: programs that draw an SVG into a paper
//! seldom know those.

use super::data::Body;

/// The colours of one theme.
struct Theme {
    paper: &'static str,
    ink: &'static str,
    muted: &'static str,
    grid: &'static str,
    /// Of the series; their order is that of blue, vermillion, green, purple, amber, sky, grey, olive.
    series: [&'static str; 8],
}

const LIGHT: Theme = Theme {
    paper: "#fff",
    ink: "#1b1f24",
    muted: "#5a636e",
    grid: "#e3e6ea",
    series: ["#0072b2", "#d55e00", "#008f68", "#b0568a", "#a87400", "#2f93cc", "#555b63", "#857a00"],
};

const DARK: Theme = Theme {
    paper: "#14171a",
    ink: "#e8eaed",
    muted: "#a3abb5",
    grid: "#2c3238",
    series: ["#56b4e9", "#ff8b47", "#2cc99b", "#e596c0", "#f0b429", "#a5dcff", "#b9c0c8", "#e3d94b"],
};

/// What does not depend on the theme.
const SHAPES: &str = "\
.chart text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-variant-numeric:tabular-nums}\
.chart .grid line,.chart .ticks line,.chart .axis{fill:none;stroke-width:1}\
.chart .line{fill:none;stroke-width:2;stroke-linejoin:round}\
.chart .dots{fill:none;stroke-width:2;stroke-linecap:round;stroke-opacity:.6}\
.chart .dots.big{stroke-width:6;stroke-opacity:1}\
.chart .band{stroke:none;fill-opacity:.16}\
";

/// The class of the n-th series.
pub(super) fn series(n: usize) -> &'static str {
    const CLASSES: [&str; Body::SERIES] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s0", "s1"];
    CLASSES[n % CLASSES.len()]
}

/// The style of a file of its own.
pub(crate) fn file() -> String {
    format!("{}@media (prefers-color-scheme:dark){{{}}}{SHAPES}", rules(&LIGHT, ""), rules(&DARK, ""))
}

/// The style of all charts on a page, whose root may name a theme with `data-theme`. On paper it is always light.
pub(crate) fn page() -> String {
    let system = rules(&DARK, ":root:not([data-theme=light]) ");
    let chosen = rules(&DARK, ":root[data-theme=dark] ");
    format!(
        "{}@media screen and (prefers-color-scheme:dark){{{system}}}@media screen{{{chosen}}}{SHAPES}",
        rules(&LIGHT, "")
    )
}

fn rules(theme: &Theme, scope: &str) -> String {
    let Theme { paper, ink, muted, grid, series } = theme;
    let mut css = format!(
        "{scope}.chart .paper{{fill:{paper}}}{scope}.chart text{{fill:{ink}}}{scope}.chart .axis{{stroke:{ink}}}\
         {scope}.chart .ticks line{{stroke:{muted}}}{scope}.chart .grid line{{stroke:{grid}}}\
         {scope}.chart .note,{scope}.chart .nothing{{fill:{muted}}}"
    );
    for (n, colour) in series.iter().enumerate() {
        css.push_str(&format!("{scope}.chart .s{n}{{stroke:{colour};fill:{colour}}}"));
    }
    css
}
