//! Colours of the light and dark themes and the style sheet of the drawings.
//!
//! The series use the colours of Okabe and Ito, which colour-blind readers can distinguish. They
//! are darkened on white and lightened on black for contrast. The rules contain plain colours
//! instead of variables, because programs that import SVG rarely support those.

use miserly_scene::used_rules;

use super::data::Body;

/// The colours of one theme.
struct Theme {
    paper: &'static str,
    ink: &'static str,
    muted: &'static str,
    grid: &'static str,
    /// Series in the order blue, vermilion, green, purple, amber, sky, grey, olive.
    series: [&'static str; 8],
    /// Shades from low to high.
    shades: [&'static str; SHADES],
    /// Shades from below to above the middle.
    diverging: [&'static str; SHADES],
    /// Text colour on shades far from the paper's colour.
    on_shade: &'static str,
}

/// Number of shades of a heat map. Each cell prints its value, so shades only guide the eye.
pub(super) const SHADES: usize = 9;

/// First shade with a light text colour.
///
/// For diverging shades, the distance from the middle.
const FAR: (usize, usize) = (5, 3);

const LIGHT: Theme = Theme {
    paper: "#fff",
    ink: "#1b1f24",
    muted: "#5a636e",
    grid: "#e3e6ea",
    series: ["#0072b2", "#d55e00", "#008f68", "#b0568a", "#a87400", "#2f93cc", "#555b63", "#857a00"],
    shades: [
        "#f1f6fb", "#deebf7", "#c6dbef", "#a3cbe5", "#7ab2d9", "#4a8fc4", "#2a72b2", "#12569c", "#08386f",
    ],
    diverging: [
        "#12569c", "#3d82bd", "#86b6db", "#c9def0", "#f4f4f2", "#f9dcc2", "#f0ae78", "#cf6a1f", "#9c4200",
    ],
    on_shade: "#fff",
};

const DARK: Theme = Theme {
    paper: "#14171a",
    ink: "#e8eaed",
    muted: "#a3abb5",
    grid: "#2c3238",
    series: ["#56b4e9", "#ff8b47", "#2cc99b", "#e596c0", "#f0b429", "#a5dcff", "#b9c0c8", "#e3d94b"],
    shades: [
        "#182029", "#1b2c3d", "#1d3a53", "#1f4a6c", "#235c87", "#4f8dbd", "#76aad3", "#9dc6e6", "#c8e1f5",
    ],
    diverging: [
        "#8cc4ee", "#5a9bcf", "#2f6796", "#21425e", "#22262a", "#54341b", "#91521d", "#dd8a45", "#ffb681",
    ],
    on_shade: "#0d1013",
};

/// Rules that are independent of the theme.
const SHAPES: &str = "\
.chart text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-variant-numeric:tabular-nums}\
.chart .grid line,.chart .ticks line,.chart .axis{fill:none;stroke-width:1}\
.chart .line{fill:none;stroke-width:2;stroke-linejoin:round}.chart .line.under{stroke-width:6;stroke-opacity:.45}\
.chart .dots{fill:none;stroke-width:2;stroke-linecap:round;stroke-opacity:.6}\
.chart .dots.big{stroke-width:6;stroke-opacity:1}\
.chart .band{stroke:none;fill-opacity:.16}\
.chart .bars rect,.chart .cell rect,.chart .marks{stroke:none}\
.chart .ring{fill:none;stroke-width:2}\
.chart .whisker{fill:none;stroke-width:1.5}\
.chart .job{stroke-width:.75}.chart .thin{stroke:none}\
.chart .guest{fill-opacity:.25;stroke-dasharray:3 2}\
.chart .numbers,.chart .guests{pointer-events:none}\
";

/// Returns the class of series `n`.
pub(super) fn series(n: usize) -> &'static str {
    const CLASSES: [&str; Body::SERIES] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s0", "s1"];
    CLASSES[n % CLASSES.len()]
}

/// Returns the class of sequential shade `n`.
pub(super) fn shade(n: usize) -> &'static str {
    const CLASSES: [&str; SHADES] = ["q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8"];
    CLASSES[n.min(SHADES - 1)]
}

/// Returns the class of diverging shade `n`.
pub(super) fn diverging(n: usize) -> &'static str {
    const CLASSES: [&str; SHADES] = ["d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8"];
    CLASSES[n.min(SHADES - 1)]
}

/// Returns the style of one stand-alone file: the rules for the classes that its `markup` has.
pub(super) fn drawn(markup: &str) -> String {
    let all = |dark: bool| used_rules(&(rules(theme(dark), "") + &miserly_scene::rules(dark, "")), markup);
    by_theme(all) + &used_rules(SHAPES, markup)
}

/// Returns the rules of the light theme, and those of the dark one for a reader whose system has that.
fn by_theme(rules: impl Fn(bool) -> String) -> String {
    format!("{}@media (prefers-color-scheme:dark){{{}}}", rules(false), rules(true))
}

fn theme(dark: bool) -> &'static Theme {
    if dark { &DARK } else { &LIGHT }
}

/// Returns the style of any stand-alone file but that of a schedule, whose script paints it with its colours.
pub(crate) fn file() -> String {
    by_theme(|dark| rules(theme(dark), "")) + SHAPES
}

/// Returns the style of an image in the light or the dark theme.
pub(crate) fn image(dark: bool) -> String {
    rules(theme(dark), "") + SHAPES
}

/// Returns the style of all charts on a page, of the scene only what the `markup` of the page has.
///
/// The root element may select a theme with `data-theme`. Print is always light.
pub(crate) fn page(markup: &str) -> String {
    let all = |dark: bool, scope: &str| {
        rules(theme(dark), scope) + &used_rules(&miserly_scene::rules(dark, scope), markup)
    };
    // `:where` adds no specificity, so the shapes that follow still override the dark theme.
    let system = all(true, ":where(:root:not([data-theme=light])) ");
    let chosen = all(true, ":where(:root[data-theme=dark]) ");
    format!(
        "{}@media screen and (prefers-color-scheme:dark){{{system}}}@media screen{{{chosen}}}{SHAPES}",
        all(false, "")
    )
}

fn rules(theme: &Theme, scope: &str) -> String {
    let Theme { paper, ink, muted, grid, series, .. } = theme;
    let mut css = format!(
        "{scope}.chart .paper{{fill:{paper}}}{scope}.chart text{{fill:{ink}}}{scope}.chart .axis,{scope}.chart .ring,{scope}.chart .whisker{{stroke:{ink}}}\
         {scope}.chart .ticks line{{stroke:{muted}}}{scope}.chart .grid line{{stroke:{grid}}}\
         {scope}.chart .note,{scope}.chart .nothing{{fill:{muted}}}"
    );
    for (n, colour) in series.iter().enumerate() {
        css.push_str(&format!("{scope}.chart .s{n}{{stroke:{colour};fill:{colour}}}"));
    }
    css.push_str(&format!("{scope}.chart .job{{stroke:{paper}}}{scope}.chart .numbers text{{fill:{paper}}}{scope}.chart .guest{{stroke:{muted}}}"));
    css.push_str(&format!("{scope}.chart .q rect{{fill:{grid}}}"));
    for (n, colour) in theme.shades.iter().enumerate() {
        css.push_str(&cell(scope, "q", n, colour, if n >= FAR.0 { theme.on_shade } else { ink }));
    }
    for (n, colour) in theme.diverging.iter().enumerate() {
        let far = n.abs_diff(SHADES / 2) >= FAR.1;
        css.push_str(&cell(scope, "d", n, colour, if far { theme.on_shade } else { ink }));
    }
    css
}

fn cell(scope: &str, class: &str, n: usize, fill: &str, text: &str) -> String {
    format!("{scope}.chart .{class}{n} rect{{fill:{fill}}}{scope}.chart .{class}{n} text{{fill:{text}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_rules_for_its_own_classes() {
        let css = drawn(r#"<svg class="chart"><g class="bars s0"><rect></rect></g></svg>"#);
        let stroke = |theme: &Theme| format!(".chart .s0{{stroke:{0};fill:{0}}}", theme.series[0]);
        let light = format!(".chart text{{fill:{}}}{}", LIGHT.ink, stroke(&LIGHT));
        let dark = format!(".chart text{{fill:{}}}{}", DARK.ink, stroke(&DARK));
        assert!(
            css.starts_with(&format!(
                "{light}@media (prefers-color-scheme:dark){{{dark}}}.chart text{{font:"
            )),
            "{css}"
        );
        assert!(css.ends_with(".chart .bars rect{stroke:none}"), "{css}");
    }
}
