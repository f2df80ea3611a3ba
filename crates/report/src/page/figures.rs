//! The charts of a page: each under its own name, with what the script needs to know of it.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use crate::chart::{self, Chart, Readout};

/// The charts drawn so far.
#[derive(Default, Serialize)]
pub(super) struct Figures(BTreeMap<String, Option<Readout>>);

impl Figures {
    pub(super) fn draw(&mut self, chart: &Chart) -> Markup {
        let name = self.unique(&chart.id);
        let (id, label) = (format!("chart-{name}"), format!("label-{name}"));
        let drawn = chart::inline(chart, &label);
        self.0.insert(name.clone(), drawn.readout);
        let said = drawn.said;
        html! {
            figure id=(id) data-chart=(name) {
                figcaption {
                    strong id=(label) { (chart.title) }
                    @if let Some(caption) = &chart.caption { " " (caption) }
                }
                div class="scroll" tabindex="0" role="region" aria-labelledby=(label) { (PreEscaped(drawn.svg)) }
                @if let Some(said) = &said { p class="said" { (said) } }
            }
        }
    }

    /// `id` as it may stand in a link and in the name of a file, with a number if there is such a chart already.
    fn unique(&self, id: &str) -> String {
        let fine = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
        let name: String = id.chars().map(fine).collect();
        let numbered = (2..).map(|n: usize| format!("{name}-{n}"));
        std::iter::once(name.clone())
            .chain(numbered)
            .find(|name| !self.0.contains_key(name))
            .unwrap_or(name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_fit_for_links_and_unique() {
        let mut figures = Figures::default();
        assert_eq!(figures.unique("a b/<c>"), "a-b--c-");
        figures.0.insert("x".into(), None);
        figures.0.insert("x-2".into(), None);
        assert_eq!(figures.unique("x"), "x-3");
    }
}
