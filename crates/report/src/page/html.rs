//! From a page to its HTML.

use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

use super::data::{Block, Page, Section};
use crate::chart;

/// The page as one file of HTML.
///
/// The same page gives the same bytes, and every text is escaped.
pub fn html(page: &Page) -> String {
    let whole = markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (page.title) }
                style { (PreEscaped(chart::page_style())) }
            }
            body {
                h1 { (page.title) }
                @for part in &page.sections { (section(part)) }
            }
        }
    };
    whole.into_string()
}

fn section(section: &Section) -> Markup {
    markup! {
        h2 { (section.heading) }
        @for block in &section.blocks {
            @match block {
                Block::Text(text) => p { (text) },
                Block::Chart(chart) => figure { (PreEscaped(chart::inline(chart, ""))) },
                Block::Table(_) | Block::Claims(_) => {},
            }
        }
    }
}
