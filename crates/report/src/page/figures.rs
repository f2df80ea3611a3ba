//! The charts of a page by name, with their data for the script.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use super::html::unbroken;
use crate::chart::{self, Chart, Readout};

/// The charts drawn so far.
#[derive(Default, Serialize)]
pub(super) struct Figures(BTreeMap<String, Option<Readout>>);

impl Figures {
    /// Draws a chart. Its title is the heading of the section if that heading is the same.
    pub(super) fn draw(&mut self, chart: &Chart, heading: &str) -> Markup {
        let name = self.unique(&chart.id);
        let (id, label) = (format!("chart-{name}"), format!("label-{name}"));
        let drawing = chart::inline(chart, &label);
        self.0.insert(name.clone(), drawing.readout);
        let description = drawing.description;
        html! {
            figure id=(id) data-chart=(name) {
                figcaption {
                    @if chart.title == heading {
                        h2 id=(label) { (chart.title) }
                    } @else {
                        strong id=(label) { (chart.title) }
                    }
                }
                div class="scroll" tabindex="0" role="region" aria-labelledby=(label) { (PreEscaped(drawing.svg)) }
                @if let Some(caption) = &chart.caption { p class="caption" { (unbroken(caption)) } }
                @if let Some(description) = &description { p class="description" { (unbroken(description)) } }
            }
        }
    }

    /// Returns `id` in a form fit for links and file names, with a number if it is already in use.
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
