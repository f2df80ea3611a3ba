//! Tables, each in a box that scrolls on narrow screens.

use maud::{Markup, html};

use super::data::{Emphasis, TableCell, TableData};
use super::html::unbroken;

pub(super) fn table(data: &TableData) -> Markup {
    let label = data.caption.as_deref().unwrap_or("Table");
    html! {
        // In the tab order, so that the keyboard can scroll it. No landmark: a page may have many tables without a name.
        div class="scroll" tabindex="0" role="group" aria-label=(label) {
            table {
                @if let Some(caption) = &data.caption { caption { (unbroken(caption)) } }
                thead {
                    @for (n, row) in data.header.iter().enumerate() { (head(data, row, n + 1 == data.header.len())) }
                }
                tbody { @for row in &data.rows { tr { @for (n, cell) in row.iter().enumerate() { (body_cell(n, cell)) } } } }
            }
        }
    }
}

/// Renders a header row. Except in the last one, a heading spans the empty cells after it.
fn head(data: &TableData, row: &[String], last: bool) -> Markup {
    let numeric =
        |column: usize| data.rows.first().and_then(|row| row.get(column)).is_some_and(|cell| cell.numeric);
    html! {
        tr {
            @if last {
                @for (column, text) in row.iter().enumerate() {
                    @if text.is_empty() { td {} }
                    @else { th scope="col" class=[numeric(column).then_some("number")] { (breakable(text)) } }
                }
            } @else {
                @for (text, span) in spans(row) {
                    @if text.is_empty() { td {} }
                    @else { th scope="colgroup" class=[(span > 1).then_some("span")] colspan=[(span > 1).then_some(span)] { (text) } }
                }
            }
        }
    }
}

/// Renders a heading. The name of a policy may be broken behind a bracket and between its parameters.
fn breakable(text: &str) -> Markup {
    html! {
        @for part in text.split_inclusive(['(', ',']) {
            (part)
            @if part.ends_with(['(', ',']) { wbr; }
        }
    }
}

/// Returns the headings of a row with the columns they span. An empty first cell spans one column.
fn spans(row: &[String]) -> Vec<(&str, usize)> {
    let mut spans: Vec<(&str, usize)> = Vec::new();
    for text in row {
        match spans.last_mut() {
            Some((heading, span)) if text.is_empty() && !heading.is_empty() => *span += 1,
            _ => spans.push((text, 1)),
        }
    }
    spans
}

fn body_cell(column: usize, cell: &TableCell) -> Markup {
    let emphasis = match cell.emphasis {
        Emphasis::None => "",
        Emphasis::Good => "good",
        Emphasis::Bad => "bad",
        Emphasis::Muted => "muted",
        Emphasis::Off(0 | 1) => "off1",
        Emphasis::Off(2) => "off2",
        Emphasis::Off(_) => "off3",
    };
    let classes = [if cell.numeric { "number" } else { "" }, emphasis].join(" ");
    let classes = Some(classes.trim()).filter(|classes| !classes.is_empty());
    html! {
        @if column == 0 && !cell.numeric {
            th scope="row" class=[classes] { (unbroken(&cell.text)) }
        } @else {
            td class=[classes] { (unbroken(&cell.text)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_span_the_empty_cells_after_them() {
        let row = ["", "waiting", "", "", "slowdown", ""].map(String::from);
        assert_eq!(spans(&row), [("", 1), ("waiting", 3), ("slowdown", 2)]);
    }

    #[test]
    fn an_empty_heading_is_none() {
        let rows = |rows: &[[&str; 2]]| rows.iter().map(|row| row.map(String::from).to_vec()).collect();
        let data = TableData { header: rows(&[["", "by"], ["", "mean"]]), ..TableData::default() };
        let text = table(&data).into_string();
        assert_eq!((text.matches("<td></td>").count(), text.matches("<th scope").count()), (2, 2), "{text}");
    }
}
