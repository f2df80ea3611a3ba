//! Rendering of a page as Markdown that is also readable on a terminal.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

use super::claims::tables;
use super::data::{Block, Page, Section, TableCell, TableData};

/// Renders the page as text: headings, aligned tables, claims as tables, and charts by file name.
pub fn markdown(page: &Page) -> String {
    let mut text = format!("# {}\n", page.title);
    if let Some(lead) = &page.lead {
        text.push_str(&format!("\n{lead}\n"));
    }
    for part in &page.sections {
        text.push_str(&section(part));
    }
    if !page.provenance.is_empty() {
        text.push_str("\n## Provenance\n\n");
        for (name, value) in &page.provenance {
            text.push_str(&format!("- {name}: {value}\n"));
        }
    }
    text
}

/// Renders a section below its heading, if it has one.
pub(super) fn section(section: &Section) -> String {
    let mut text =
        if section.heading.is_empty() { String::new() } else { format!("\n## {}\n", section.heading) };
    for block in &section.blocks {
        text.push('\n');
        match block {
            Block::Heading(words) => text.push_str(&format!("### {words}\n")),
            Block::Text(words) => text.push_str(&format!("{words}\n")),
            Block::Details(summary, rest) => text.push_str(&format!("{summary} {rest}\n")),
            Block::Table(data) => text.push_str(&table(data)),
            Block::Chart(chart) => {
                text.push_str(&format!("![{}](charts/{}.svg)\n", chart.title, chart.id));
                if let Some(caption) = &chart.caption {
                    text.push_str(&format!("\n{caption}\n"));
                }
            }
            Block::Claims(claims) => {
                text.push_str(&tables(claims).map(|data| unaligned(&data)).collect::<Vec<_>>().join("\n"));
            }
        }
    }
    text
}

fn table(data: &TableData) -> String {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(header(&data.header));
    for row in &data.rows {
        table.add_row(row.iter().map(|cell| cell.text.replace('|', "\\|")));
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        if data.rows.first().and_then(|row| row.get(at)).is_some_and(|cell| cell.numeric) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let caption = data.caption.as_ref().map_or_else(String::new, |caption| format!("{caption}\n\n"));
    let lines: Vec<String> = table.to_string().lines().map(|line| line.trim_end().to_owned()).collect();
    format!("{caption}{}\n", lines.join("\n"))
}

/// Merges the header rows into one, as Markdown requires. A spanning heading appears in its first
/// column.
pub(super) fn merged_header(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let heading = |column: usize| {
        let parts = rows.iter().filter_map(|row| row.get(column)).filter(|text| !text.is_empty());
        parts.cloned().collect::<Vec<_>>().join(" ")
    };
    (0..columns).map(heading).collect()
}

fn header(rows: &[Vec<String>]) -> Vec<String> {
    merged_header(rows).into_iter().map(|heading| heading.replace('|', "\\|")).collect()
}

/// Renders a table with long texts: no column is padded.
fn unaligned(data: &TableData) -> String {
    let cell = |cell: String| if cell.is_empty() { " |".to_owned() } else { format!(" {cell} |") };
    let line = |cells: Vec<String>| format!("|{}\n", cells.into_iter().map(cell).collect::<String>());
    let header = header(&data.header);
    let rule = format!("|{}\n", "---|".repeat(header.len()));
    let row = |row: &Vec<TableCell>| line(row.iter().map(|cell| cell.text.replace('|', "\\|")).collect());
    let caption = data.caption.as_ref().map_or_else(String::new, |caption| format!("{caption}\n\n"));
    caption + &line(header) + &rule + &data.rows.iter().map(row).collect::<String>()
}
