//! Layout of tables on a terminal.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use miserly_units::{duration_rounded, span_of_seconds};

use crate::numbers::{figure, percent};

/// The characters of a name before its value.
const NAME_WIDTH: usize = 24;

/// How text tables print.
#[derive(Clone, Copy, Debug, Default)]
pub struct TableStyle {
    /// The largest width in characters; wider tables are folded. `None` is unlimited.
    pub width: Option<usize>,
    /// Whether times are in seconds, instead of in units for people.
    pub seconds: bool,
}

/// The kind of a figure, which decides how a table prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Seconds.
    Time,
    /// A ratio, or a mean number of things.
    Number,
    /// A whole number.
    Count,
    /// A share, 0 to 1.
    Share,
}

impl TableStyle {
    /// Returns the text broken into lines: those of the terminal, or of 80 characters.
    pub fn paragraph(self, text: &str) -> String {
        wrapped(text, self.text_width()).join("\n")
    }

    /// Returns text beside a head, and a line end. A long text has several lines.
    pub fn beside(self, head: &str, text: &str) -> String {
        let indent = head.chars().count();
        let lines = wrapped(text, self.text_width().saturating_sub(indent).max(NAME_WIDTH));
        format!("{head}{}\n", lines.join(&format!("\n{:indent$}", "")))
    }

    /// Returns a name with its value beside it, and a line end.
    pub(super) fn entry(self, name: &str, value: &str) -> String {
        self.beside(&format!("{name:<NAME_WIDTH$}"), value)
    }

    fn text_width(self) -> usize {
        self.width.unwrap_or(80)
    }

    /// Returns the figure as text.
    pub(super) fn figure(self, quantity: Quantity, value: Option<f64>) -> String {
        match (quantity, value) {
            (Quantity::Time, Some(seconds)) if !self.seconds => duration_rounded(span_of_seconds(seconds)),
            (Quantity::Share, _) => percent(value),
            (Quantity::Count, _) => figure(value).trim_end_matches(".00").to_owned(),
            (Quantity::Time | Quantity::Number, _) => figure(value),
        }
    }

    /// Returns the name of a row or column, with the unit where the figures have none.
    pub(super) fn label(self, quantity: Quantity, name: &str) -> String {
        if self.seconds && quantity == Quantity::Time { format!("{name} (s)") } else { name.to_owned() }
    }
}

/// A text table: a header, whose cells may have several lines, and rows of the same length.
pub(super) struct TextTable {
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Formats the table without rules, the first column left-aligned and the others right-aligned.
    ///
    /// A table wider than `width` characters is folded: further columns follow below, beside the
    /// first column.
    pub(super) fn table(&self, width: Option<usize>) -> String {
        let parts = self.fold(width.unwrap_or(usize::MAX));
        let tables: Vec<String> = parts.into_iter().map(|part| self.part(part)).collect();
        tables.join("\n\n")
    }

    /// Returns the column ranges of the folded parts, each with at least one column.
    fn fold(&self, width: usize) -> Vec<std::ops::Range<usize>> {
        let widths: Vec<usize> = (0..self.header.len()).map(|at| self.width(at)).collect();
        let first = widths.first().copied().unwrap_or_default();
        let (mut parts, mut from, mut used) = (Vec::new(), 1, first);
        for (at, column) in widths.iter().enumerate().skip(1) {
            if at > from && used + column > width {
                parts.push(from..at);
                (from, used) = (at, first);
            }
            used += column;
        }
        parts.push(from..widths.len());
        parts
    }

    /// Returns the width of a column including padding.
    fn width(&self, column: usize) -> usize {
        let lines = self.header[column].lines().chain(self.rows.iter().map(|row| row[column].as_str()));
        lines.map(|line| line.chars().count()).max().unwrap_or_default() + if column == 0 { 1 } else { 2 }
    }

    fn part(&self, columns: std::ops::Range<usize>) -> String {
        let cells = |row: &[String]| -> Vec<String> {
            row.iter().take(1).chain(&row[columns.clone()]).cloned().collect()
        };
        let mut table = Table::new();
        table.load_style(NOTHING);
        table.set_header(cells(&self.header));
        table.add_rows(self.rows.iter().map(|row| cells(row)));
        align(&mut table);
        trimmed(&table)
    }
}

/// Breaks text into lines of at most `width` characters, at blanks.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            // A percent sign stays beside its number.
            Some(line)
                if word.starts_with('%') || line.chars().count() + 1 + word.chars().count() <= width =>
            {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Aligns names to the left without padding and numbers to the right.
fn align(table: &mut Table) {
    for (index, column) in table.column_iter_mut().enumerate() {
        if index == 0 {
            column.set_padding((0, 1));
        } else {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// Returns the table's text without trailing blanks.
fn trimmed(table: &Table) -> String {
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> TextTable {
        let text = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        TextTable {
            header: text(["", "easy", "longer\nname", "c"]),
            rows: vec![text(["wait", "1", "22", "333"])],
        }
    }

    #[test]
    fn a_table_folds_where_it_is_too_wide() {
        let columns = columns();
        let lines = ["      easy  longer    c", "              name", "wait     1      22  333"];
        assert_eq!(columns.table(None).lines().collect::<Vec<_>>(), lines);
        for width in 0..40 {
            let table = columns.table(Some(width));
            let widest = table.lines().map(str::len).max().unwrap_or_default();
            // The widest pair of the first column and another one has 5 + 8 characters.
            assert!(widest <= width.max(13), "{width}:\n{table}");
            assert_eq!(
                table.matches("wait").count(),
                match width {
                    0..=17 => 3,
                    18..=23 => 2,
                    _ => 1,
                },
                "{width}"
            );
            assert!(["1", "22", "333"].iter().all(|cell| table.contains(cell)));
        }
    }
}
