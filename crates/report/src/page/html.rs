//! Rendering of a page as HTML.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

use super::assets::{Assets, embedded};
use super::claims::tables;
use super::data::{Block, Page, Section};
use super::figures::Figures;
use super::table::table;
use crate::chart::{Chart, allowed, svg};

/// Renders the page as one HTML file that loads nothing.
///
/// The same page gives the same bytes. Every text is escaped, and the page forbids the browser to
/// run or load anything else. Without scripts only conveniences are missing: tooltips, zoom, theme
/// selection, and saving of charts as files.
pub fn html(page: &Page) -> String {
    let mut figures = Figures::default();
    let parts: Vec<Markup> =
        page.sections.iter().enumerate().map(|(n, part)| section(n + 1, part, &mut figures)).collect();
    let drawn: String = parts.iter().map(|part| part.0.as_str()).collect();
    let assets = Assets::new(&drawn);
    let whole = markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(assets.policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (page.title) }
                style { (PreEscaped(&assets.style)) }
            }
            body {
                header {
                    h1 { (page.title) }
                    @if let Some(lead) = &page.lead { p class="lead" { (unbroken(lead)) } }
                }
                (contents(page))
                main { @for part in &parts { (part) } }
                (provenance(page))
                script type="application/json" id="charts" { (PreEscaped(embedded(&figures))) }
                script { (PreEscaped(&assets.script)) }
            }
        }
    };
    allowed(whole.into_string())
}

/// Renders sections as a part of another page, such as a notebook. It has no script and no style: charts are pictures.
pub fn fragment(sections: &[Section]) -> String {
    let mut figures = Figures::default();
    let blocks = sections.iter().flat_map(|section| &section.blocks);
    let mut draw = |part: &Block| match part {
        Block::Chart(chart) => picture(chart),
        part => block(part, "", &mut figures),
    };
    markup! { div { @for part in blocks { (draw(part)) } } }.into_string()
}

/// Renders a chart as a picture.
fn picture(chart: &Chart) -> Markup {
    let data = format!("data:image/svg+xml;base64,{}", BASE64_STANDARD.encode(svg(chart)));
    markup! {
        figure {
            img src=(data) alt=(chart.title) style="max-width: 100%";
            @if let Some(caption) = &chart.caption { figcaption { (unbroken(caption)) } }
        }
    }
}

/// Renders the table of contents if there are several sections.
fn contents(page: &Page) -> Markup {
    markup! {
        @if page.sections.len() > 1 {
            nav aria-label="Contents" {
                ol {
                    @for (n, part) in page.sections.iter().enumerate() {
                        li { a href={ "#part-" (n + 1) } { (part.heading) } }
                    }
                }
            }
        }
    }
}

/// Renders a section. Neighbouring charts stand side by side where there is room.
fn section(n: usize, section: &Section, figures: &mut Figures) -> Markup {
    let lone = is_lone_chart(section);
    let heading = if lone { section.heading.as_str() } else { "" };
    let mut draw = |part: &Block| block(part, heading, figures);
    markup! {
        section id={ "part-" (n) } class=[lone.then_some("lone")] {
            @if !lone { h2 { (section.heading) } }
            @for blocks in section.blocks.chunk_by(|one, next| is_chart(one) && is_chart(next)) {
                @if blocks.len() > 1 {
                    div class="charts" { @for block in blocks { (draw(block)) } }
                } @else {
                    @for block in blocks { (draw(block)) }
                }
            }
        }
    }
}

fn is_chart(block: &Block) -> bool {
    matches!(block, Block::Chart(_))
}

/// Returns whether the section is one chart under its own title.
fn is_lone_chart(section: &Section) -> bool {
    matches!(&section.blocks[..], [Block::Chart(chart)] if chart.title == section.heading)
}

fn block(block: &Block, heading: &str, figures: &mut Figures) -> Markup {
    match block {
        Block::Heading(text) => markup! { h3 { (text) } },
        Block::Text(text) => paragraphs(text),
        Block::Details(summary, rest) => {
            markup! { details { summary { (unbroken(summary)) } (paragraphs(rest)) } }
        }
        Block::Table(data) => table(data),
        Block::Chart(chart) => figures.draw(chart, heading),
        Block::Claims(claims) => {
            markup! { div class="claims" { @for data in tables(claims) { (table(&data)) } } }
        }
    }
}

fn paragraphs(text: &str) -> Markup {
    let text = text.replace("\r\n", "\n");
    markup! { @for part in text.split("\n\n").filter(|part| !part.trim().is_empty()) { p { (unbroken(part.trim())) } } }
}

/// Returns the text without a line break before a percent sign.
pub(super) fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

fn provenance(page: &Page) -> Markup {
    markup! {
        @if !page.provenance.is_empty() {
            footer {
                h2 id="provenance" { "Provenance" }
                dl {
                    @for (name, value) in &page.provenance {
                        dt { (name) }
                        dd { (value) }
                    }
                }
            }
        }
    }
}
