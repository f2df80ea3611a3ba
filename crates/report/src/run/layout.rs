//! Layout of tables on a terminal.

use std::ops::Range;

use anstyle::{AnsiColor, Style};
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
    /// Whether the best and the worst values have colours.
    pub colour: bool,
    /// Whether tables of runs have all measures, instead of six.
    pub all_measures: bool,
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

    /// Returns whether the figure is a decimal number, without units.
    pub(super) fn is_decimal(self, quantity: Quantity) -> bool {
        match quantity {
            Quantity::Time => self.seconds,
            Quantity::Number => true,
            Quantity::Count | Quantity::Share => false,
        }
    }

    /// Returns the name of a row or column, with the unit where the figures have none.
    pub(super) fn label(self, quantity: Quantity, name: &str) -> String {
        if self.seconds && quantity == Quantity::Time { format!("{name} (s)") } else { name.to_owned() }
    }
}

/// The emphasis of a cell on a terminal with colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tone {
    /// The best value of a row: bold green.
    Best,
    /// The worst value of a row: red.
    Worst,
    /// Any other text.
    #[default]
    Plain,
}

impl Tone {
    /// Returns the text with the escape sequences of its colour.
    fn paint(self, text: &str) -> String {
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        let style = match self {
            Tone::Best => colour(AnsiColor::Green).bold(),
            Tone::Worst => colour(AnsiColor::Red),
            Tone::Plain => Style::new(),
        };
        format!("{style}{text}{style:#}")
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
        self.coloured(width, |_, _| Tone::Plain)
    }

    /// Formats the table like [`table`](TextTable::table), with a tone for each row and column.
    pub(super) fn coloured(&self, width: Option<usize>, tone: impl Fn(usize, usize) -> Tone) -> String {
        let parts = self.fold(width.unwrap_or(usize::MAX));
        let tables: Vec<String> = parts.into_iter().map(|part| self.part(&part, &tone)).collect();
        tables.join("\n\n")
    }

    /// Returns the column ranges of the folded parts, each with at least one column.
    fn fold(&self, width: usize) -> Vec<Range<usize>> {
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

    fn part(&self, columns: &Range<usize>, tone: &impl Fn(usize, usize) -> Tone) -> String {
        let heights = columns.clone().chain([0]).map(|at| self.header[at].lines().count());
        let header = (0..heights.max().unwrap_or_default()).map(|line| {
            self.line(columns, |at| self.header[at].lines().nth(line).unwrap_or_default(), |_| Tone::Plain)
        });
        let rows = self.rows.iter().enumerate();
        let rows = rows.map(|(row, cells)| self.line(columns, |at| &cells[at], |at| tone(row, at)));
        header.chain(rows).collect::<Vec<_>>().join("\n")
    }

    /// Returns a line without trailing blanks: the first column and those of a range.
    fn line<'a>(
        &self,
        columns: &Range<usize>,
        cell: impl Fn(usize) -> &'a str,
        tone: impl Fn(usize) -> Tone,
    ) -> String {
        let mut line = cell(0).to_owned();
        let mut shown = line.chars().count();
        let mut place = self.width(0);
        for at in columns.clone() {
            let text = cell(at).trim_end();
            // Marks are right-aligned, so a cell without a mark ends with a blank.
            let end = place + self.width(at) - 1 - (cell(at).chars().count() - text.chars().count());
            place += self.width(at);
            if !text.is_empty() {
                let blanks = end - text.chars().count() - shown;
                line.push_str(&format!("{:blanks$}{}", "", tone(at).paint(text)));
                shown = end;
            }
        }
        line
    }
}

/// Breaks text into lines of at most `width` characters, at blanks. A percent sign stays beside its number.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let text = text.replace(" %", "\u{a0}%");
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| line.replace('\u{a0}', " ")).collect()
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
    #[test]
    fn a_tone_changes_no_width() {
        let columns = columns();
        let tone = |_, column| [Tone::Plain, Tone::Best, Tone::Worst, Tone::Plain][column];
        let table = columns.coloured(None, tone);
        let expect = "wait     \x1b[1m\x1b[32m1\x1b[0m      \x1b[31m22\x1b[0m  333";
        assert_eq!(table.lines().last(), Some(expect));
    }
}
