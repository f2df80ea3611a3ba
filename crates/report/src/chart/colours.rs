//! Colours of the light and dark themes and the style sheet of the drawings.
//!
//! The series use the colours of Okabe and Ito, which colour-blind readers can distinguish. They
//! are darkened on white and lightened on black for contrast. The rules contain plain colours
//! instead of variables, because programs that import SVG rarely support those.

use std::collections::BTreeSet;

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
    /// Start reasons and other fixed keys of jobs in a schedule.
    reasons: [&'static str; 8],
    /// Steps of an ordered value of a job, from low to high.
    steps: [&'static str; 5],
    /// Changes of a job from below to above the neutral one. Numbers on all of them are readable.
    changes: [&'static str; SHADES],
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
    reasons: ["#1f7a6d", "#7d3fb0", "#64707d", "#a8326d", "#8a5a2b", "#66741c", "#8f959c", "#31363c"],
    steps: ["#6ba5d0", "#4a8fc4", "#2a72b2", "#12569c", "#08386f"],
    changes: [
        "#08386f", "#12569c", "#2a72b2", "#5a94c4", "#868c94", "#c17c3a", "#b5601a", "#9c4200", "#6b2a00",
    ],
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
    reasons: ["#63d2c2", "#c7a6f5", "#93a0ae", "#f08fc0", "#d9a877", "#c6d46a", "#6f7880", "#e3e7eb"],
    steps: ["#4f8dbd", "#76aad3", "#9dc6e6", "#c8e1f5", "#f2f8fd"],
    changes: [
        "#dff0ff", "#a5d4f7", "#76b4e4", "#4f8dbd", "#757d86", "#bd7a34", "#dd8a45", "#ffb681", "#ffe0c7",
    ],
};

/// Rules that are independent of the theme.
const SHAPES: &str = "\
.chart text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-variant-numeric:tabular-nums}\
.chart .grid line,.chart .ticks line,.chart .axis{fill:none;stroke-width:1}\
.chart .line{fill:none;stroke-width:2;stroke-linejoin:round}\
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

/// Returns the class of fixed key `n` of the jobs of a schedule.
pub(super) fn reason(n: usize) -> &'static str {
    const CLASSES: [&str; 8] = ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"];
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
    let lists = markup.split("class=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let classes: BTreeSet<&str> = lists.flat_map(str::split_whitespace).collect();
    by_theme(|theme| used(&all_rules(theme, ""), &classes)) + &used(SHAPES, &classes)
}

/// Returns the rules of the light theme, and those of the dark one for a reader whose system has that.
fn by_theme(rules: impl Fn(&Theme) -> String) -> String {
    format!("{}@media (prefers-color-scheme:dark){{{}}}", rules(&LIGHT), rules(&DARK))
}

/// Returns the rules of a theme for charts and schedules.
fn all_rules(theme: &Theme, scope: &str) -> String {
    rules(theme, scope) + &schedule_rules(theme, scope)
}

/// Returns the rules for those classes. Complexity: the length of `rules`.
fn used(rules: &str, classes: &BTreeSet<&str>) -> String {
    let applies = |selector: &&str| {
        let name = |rest: &str| rest.find([' ', ':']).unwrap_or(rest.len());
        selector.split('.').skip(1).all(|rest| classes.contains(&rest[..name(rest)]))
    };
    let rule = |rule: &str| {
        let (selectors, body) = rule.split_once('{')?;
        let selectors: Vec<&str> = selectors.split(',').filter(applies).collect();
        (!selectors.is_empty()).then(|| format!("{}{{{body}", selectors.join(",")))
    };
    rules.split_inclusive('}').filter_map(rule).collect()
}

/// Returns the style of any stand-alone file.
pub(crate) fn file() -> String {
    by_theme(|theme| rules(theme, "")) + SHAPES
}

/// Returns the style that a stand-alone file of a schedule needs besides [`file()`].
pub(crate) fn schedule_file() -> String {
    by_theme(|theme| schedule_rules(theme, ""))
}

fn schedule_rules(theme: &Theme, scope: &str) -> String {
    let rule = |class: &str, colours: &[&str]| {
        let rule = |(n, colour): (usize, &&str)| format!("{scope}.chart .job.{class}{n}{{fill:{colour}}}");
        colours.iter().enumerate().map(rule).collect::<String>()
    };
    rule("r", &theme.reasons) + &rule("v", &theme.steps) + &rule("d", &theme.changes)
}

/// Returns the style of an image in the light or the dark theme.
pub(crate) fn image(dark: bool) -> String {
    let theme = if dark { &DARK } else { &LIGHT };
    all_rules(theme, "") + SHAPES
}

/// Returns the style of all charts on a page.
///
/// The root element may select a theme with `data-theme`. Print is always light.
pub(crate) fn page() -> String {
    // `:where` adds no specificity, so the shapes that follow still override the dark theme.
    let system = all_rules(&DARK, ":where(:root:not([data-theme=light])) ");
    let chosen = all_rules(&DARK, ":where(:root[data-theme=dark]) ");
    format!(
        "{}@media screen and (prefers-color-scheme:dark){{{system}}}@media screen{{{chosen}}}{SHAPES}",
        all_rules(&LIGHT, "")
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
