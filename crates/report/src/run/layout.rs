//! Layout of tables on a terminal.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

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

/// Breaks text into lines of at most `width` characters, at blanks; `None` is unlimited.
pub fn paragraph(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, |line| line.chars().count());
        match lines.last_mut() {
            Some(last) if line == 0 => last.push_str(word),
            Some(last) if line + 1 + word.chars().count() <= width => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
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
