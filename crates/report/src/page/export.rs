//! Tables for other programs: Markdown, LaTeX and CSV.

use super::claims;
use super::data::{Block, Section, TableCell, TableData};
use super::markdown::{merged_header, section as as_markdown};
use crate::jobs::quoted;

/// A format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Tables and texts in Markdown.
    Markdown,
    /// `tabular` environments, and texts as comments.
    Latex,
    /// Comma-separated values without marks and grouped thousands; a blank line between tables.
    Csv,
}

/// Returns the tables of some sections in a format.
pub fn exported(sections: &[Section], format: TableFormat) -> String {
    let table = match format {
        TableFormat::Markdown => {
            return sections.iter().map(as_markdown).collect::<String>().trim_start().to_owned();
        }
        TableFormat::Latex => latex,
        TableFormat::Csv => csv,
    };
    let comment = |text: &str| {
        let lines = text.lines().map(|line| format!("% {line}\n"));
        Some(lines.collect()).filter(|_| format == TableFormat::Latex && !text.is_empty())
    };
    let block = |block: &Block| match block {
        Block::Heading(text) | Block::Text(text) => comment(text),
        Block::Details(summary, rest) => comment(&format!("{summary} {rest}")),
        Block::Table(data) => Some(table(data)),
        Block::Claims(claims) => {
            Some(claims::tables(claims).map(|data| table(&data)).collect::<Vec<_>>().join("\n"))
        }
        Block::Chart(_) => None,
    };
    let parts = sections.iter().flat_map(|section| {
        let heading = comment(&section.heading).into_iter();
        heading.chain(section.blocks.iter().filter_map(block)).collect::<Vec<String>>()
    });
    parts.collect::<Vec<_>>().join("\n")
}

fn latex(data: &TableData) -> String {
    let header = merged_header(&data.header);
    let numeric = |at: usize| data.rows.iter().any(|row| row.get(at).is_some_and(|cell| cell.numeric));
    let columns: String = (0..columns(data)).map(|at| if numeric(at) { 'r' } else { 'l' }).collect();
    let line = |cells: &[String]| {
        format!("{} \\\\\n", cells.iter().map(|cell| in_latex(cell)).collect::<Vec<_>>().join(" & "))
    };
    let rows = data.rows.iter().map(|row| line(&texts(row))).collect::<String>();
    let header = if header.is_empty() { String::new() } else { line(&header) + "\\hline\n" };
    let caption = data.caption.as_ref().map_or_else(String::new, |caption| format!("% {caption}\n"));
    format!("{caption}\\begin{{tabular}}{{{columns}}}\n\\hline\n{header}{rows}\\hline\n\\end{{tabular}}\n")
}

fn columns(data: &TableData) -> usize {
    let rows = data.rows.iter().map(Vec::len);
    rows.chain(data.header.iter().map(Vec::len)).max().unwrap_or_default()
}

fn texts(row: &[TableCell]) -> Vec<String> {
    row.iter().map(|cell| cell.text.clone()).collect()
}

/// Escapes the characters that LaTeX reads otherwise. Groups of thousands and signs of units have a thin blank.
fn in_latex(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let letters: Vec<char> = text.trim().chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        match letter {
            ' ' if is_in_figure(&letters, at) => shown.push_str("\\,"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => shown.extend(['\\', *letter]),
            '\\' => shown.push_str("\\textbackslash{}"),
            '~' => shown.push_str("\\textasciitilde{}"),
            '^' => shown.push_str("\\textasciicircum{}"),
            '<' => shown.push_str("$<$"),
            '>' => shown.push_str("$>$"),
            '±' => shown.push_str("$\\pm$"),
            letter => shown.push(*letter),
        }
    }
    shown
}

fn csv(data: &TableData) -> String {
    let line =
        |cells: Vec<String>| cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\n";
    let cell =
        |cell: &TableCell| if cell.numeric { without_marks(&cell.text) } else { cell.text.trim().to_owned() };
    let header = Some(merged_header(&data.header)).filter(|header| !header.is_empty()).map(line);
    let rows = data.rows.iter().map(|row| line(row.iter().map(cell).collect()));
    header.into_iter().chain(rows).collect()
}

/// Returns a figure without the marks of a comparison and without the blanks between thousands and before a percent sign. A
/// dash is empty.
fn without_marks(text: &str) -> String {
    let text = text.trim_end_matches(['*', '~', '?', ' ']);
    if text == "-" {
        return String::new();
    }
    let letters: Vec<char> = text.chars().collect();
    let kept =
        letters.iter().enumerate().filter(|(at, letter)| **letter != ' ' || !is_in_figure(&letters, *at));
    kept.map(|(_, letter)| *letter).collect()
}

/// Returns whether a blank is between two digits, or between a digit and a percent sign.
fn is_in_figure(letters: &[char], blank: usize) -> bool {
    let before = blank.checked_sub(1).is_some_and(|at| letters[at].is_ascii_digit());
    before && letters.get(blank + 1).is_some_and(|after| after.is_ascii_digit() || *after == '%')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections() -> Vec<Section> {
        let row = |name: &str, cells: [&str; 2]| {
            std::iter::once(TableCell::text(name)).chain(cells.map(TableCell::number)).collect()
        };
        let table = TableData {
            caption: None,
            header: vec![["", "easy", "easy(order='a_b', \"c\")"].map(str::to_owned).to_vec()],
            rows: vec![row("wait, mean", ["14 340*", "-"]), row("share", ["68.74 %", "12 ±3"])],
        };
        let blocks = vec![Block::Text("100 % & more".into()), Block::Table(table)];
        vec![Section { heading: String::new(), blocks }]
    }

    #[test]
    fn a_table_in_three_formats() {
        let latex = "% 100 % & more\n\n\\begin{tabular}{lrr}\n\\hline\n & easy & easy(order='a\\_b', \"c\") \\\\\n\\hline\n\
                     wait, mean & 14\\,340* & - \\\\\nshare & 68.74\\,\\% & 12 $\\pm$3 \\\\\n\\hline\n\\end{tabular}\n";
        assert_eq!(exported(&sections(), TableFormat::Latex), latex);
        let csv = ",easy,\"easy(order='a_b', \"\"c\"\")\"\n\"wait, mean\",14340,\nshare,68.74%,12 ±3\n";
        assert_eq!(exported(&sections(), TableFormat::Csv), csv);
        let markdown = exported(&sections(), TableFormat::Markdown);
        assert!(markdown.starts_with("100 % & more\n\n|"), "{markdown}");
    }
}
