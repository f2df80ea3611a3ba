//! The style of pictures: the colours of a theme by class, so that a picture in a page follows the theme of its reader.

use std::collections::BTreeSet;

use crate::palette::Inks;

/// The colours of a theme beside those of the bars. The page has them, too.
struct Theme {
    paper: &'static str,
    ink: &'static str,
    muted: &'static str,
    rule: &'static str,
    now: &'static str,
    bad: &'static str,
}

const LIGHT: Theme = Theme {
    paper: "#fff",
    ink: "#1b1f24",
    muted: "#5a636e",
    rule: "#d9dde2",
    now: "#c2185b",
    bad: "#b04a00",
};
const DARK: Theme = Theme {
    paper: "#14171a",
    ink: "#e8eaed",
    muted: "#a3abb5",
    rule: "#343b42",
    now: "#ff7eb6",
    bad: "#ff9d63",
};

/// Rules that are independent of the theme.
const SHAPES: &str = "\
.scene .rim,.scene .edge,.scene .rule,.scene .curve{fill:none}.scene .curve{stroke-width:1.5}.scene .curve.under{stroke-width:5;stroke-opacity:.45}\
.scene .name{font-size:11px}.scene .title{font-weight:600}.scene .mark{font-size:11px;text-anchor:end;paint-order:stroke;stroke-width:3px}";

/// Returns the rules of a theme for pictures with the class `scene` below `scope`.
pub fn rules(dark: bool, scope: &str) -> String {
    let Theme { paper, ink, muted, rule, now, bad } = if dark { DARK } else { LIGHT };
    let mut css = String::new();
    let mut add =
        |selector: &str, style: String| css.push_str(&format!("{scope}.scene {selector}{{{style}}}"));
    for (selector, fill) in [
        ("text", ink),
        (".paper", paper),
        (".muted", muted),
        (".tick", rule),
        (".now", now),
        (".bracket", ink),
        (".bad", bad),
    ] {
        add(selector, format!("fill:{fill}"));
    }
    add(".rule", format!("stroke:{rule}"));
    add(".mark", format!("fill:{muted};stroke:{paper}"));
    add(".border", format!("stroke:{muted}"));
    for inks in Inks::all() {
        let (class, fill, edge) = (inks.class(), inks.fill(dark).text(), inks.edge(dark).text());
        add(&format!(".{class}"), format!("fill:{fill}"));
        add(&format!(".name.{class}"), format!("fill:{}", inks.text(dark).text()));
        for (kind, stroke) in [("edge", &edge), ("rim", &fill), ("curve", &fill)] {
            add(&format!(".{kind}.{class}"), format!("fill:none;stroke:{stroke}"));
        }
        add(&format!(".sample.{class}"), format!("stroke:{edge}"));
    }
    css + SHAPES
}

/// Returns the rules for the classes that a markup has. Complexity: the length of both.
pub fn used_rules(rules: &str, markup: &str) -> String {
    let lists = markup.split("class=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let classes: BTreeSet<&str> = lists.flat_map(str::split_whitespace).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_the_rules_for_its_own_classes() {
        let css = used_rules(
            &rules(false, ""),
            r#"<svg class="scene"><path class="part v0"/><text class="name v0"/></svg>"#,
        );
        let ink = |rule: &str| css.contains(rule);
        assert!(
            ink(".scene .v0{fill:#0082e2}") && ink(".scene .name.v0{fill:#000000}") && ink(".scene .name{"),
            "{css}"
        );
        assert!(!ink(".edge") && !ink(".v1") && !ink("now"), "{css}");
    }
}
