//! How a table stands in a terminal.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// Columns of text: a header, which may have several lines, and rows as long as it is.
pub(super) struct Columns {
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Columns {
    /// A table without lines, the first column to the left and the others to the right.
    ///
    /// Beyond `width` characters it is folded: further columns stand in a table below, beside the first column again.
    pub(super) fn table(&self, width: Option<usize>) -> String {
        let parts = self.fold(width.unwrap_or(usize::MAX));
        let tables: Vec<String> = parts.into_iter().map(|part| self.part(part)).collect();
        tables.join("\n\n")
    }

    /// The ranges of columns that stand beside each other: as many as there is room for, and at least one.
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

    /// How wide a column is with the blanks beside it.
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

/// Names to the left, flush with the text above and below; numbers to the right.
fn align(table: &mut Table) {
    for (index, column) in table.column_iter_mut().enumerate() {
        if index == 0 {
            column.set_padding((0, 1));
        } else {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// The table's text without blanks at the ends of its lines.
fn trimmed(table: &Table) -> String {
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Columns {
        let text = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        Columns {
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
            // The widest pair of the first column and another is 5 + 8.
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
