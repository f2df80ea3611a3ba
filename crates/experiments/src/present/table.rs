//! A table of one figure of many runs, beside the paper's.

use std::collections::BTreeSet;

use miserly_report::decimals;
use miserly_report::page::{Block, Emphasis, TableCell, TableData};
use serde_json::Value;

use crate::experiment::file::{Line, TableFile};
use crate::present::lines::{Lookup, part};
use crate::results::{Figure, Results};
use crate::selector::Selector;

/// How far from the paper a cell may be to count as reproduced.
const NEAR: f64 = 0.05;

/// Returns the table, its note, and its distance from the paper.
pub(super) fn blocks(table: &TableFile, results: &Results) -> Result<Vec<Block>, String> {
    let mut compared = Compared::default();
    let mut rows = Vec::new();
    for (at, row) in table.rows.iter().enumerate() {
        let mut cells = vec![TableCell::text(&row.label)];
        for (column_at, column) in table.columns.iter().enumerate() {
            let (ours, keys) = entry(table, row, column, results)?;
            let paper = table.paper.get(at).and_then(|line| line.get(column_at)).copied();
            cells.extend(cells_of(table, &ours, paper));
            if let (Entry::Figure(ours), Some(paper)) = (ours, paper) {
                let cell = format!("{}, {}", row.label, column.label);
                compared.add(cell, keys, ours.mean / table.unit, paper);
            }
        }
        rows.push(cells);
    }
    let data = TableData { caption: None, header: header(table), rows };
    let texts = [table.note.clone(), compared.summary()];
    Ok([Block::Table(data)].into_iter().chain(texts.into_iter().flatten().map(Block::Text)).collect())
}

fn header(table: &TableFile) -> Vec<Vec<String>> {
    let labels = |each: usize| {
        let of = move |line: &Line| std::iter::once(line.label.clone()).chain(vec![String::new(); each - 1]);
        std::iter::once(String::new()).chain(table.columns.iter().flat_map(of)).collect::<Vec<_>>()
    };
    if table.paper.is_empty() {
        return vec![labels(1)];
    }
    let each = ["ours", "paper", "diff."].map(str::to_owned);
    let second = std::iter::once(String::new()).chain(table.columns.iter().flat_map(|_| each.clone()));
    vec![labels(3), second.collect()]
}

/// The content of a cell.
enum Entry {
    Figure(Figure),
    /// A word of the description of a log.
    Word(String),
    Nothing,
}

fn cells_of(table: &TableFile, ours: &Entry, paper: Option<f64>) -> Vec<TableCell> {
    let shown_ours = match ours {
        Entry::Figure(ours) => TableCell::number(with_width(table, *ours)),
        Entry::Word(word) => TableCell::number(word),
        Entry::Nothing => TableCell::number("-").with(Emphasis::Muted),
    };
    let Some(paper) = paper else { return vec![shown_ours] };
    let shown_paper = if paper.is_nan() { "-".into() } else { decimals(paper, table.digits) };
    let off = match ours {
        Entry::Figure(ours) => Some(off(ours.mean / table.unit, paper)).filter(|off| off.is_finite()),
        Entry::Word(_) | Entry::Nothing => None,
    };
    let shown_off = off.map_or_else(|| "-".into(), |off| format!("{:+.1} %", 100.0 * off));
    vec![shown_ours, TableCell::number(shown_paper), TableCell::number(shown_off).with(Emphasis::Muted)]
}

fn with_width(table: &TableFile, ours: Figure) -> String {
    let mean = decimals(ours.mean / table.unit, table.digits);
    let width = ours.half_width.map(|width| format!(" ±{}", decimals(width / table.unit, table.digits)));
    mean + &width.unwrap_or_default()
}

/// Returns the content of a cell and its origin: the keys of its runs, or the log and the path.
fn entry(
    table: &TableFile,
    row: &Line,
    column: &Line,
    results: &Results,
) -> Result<(Entry, Vec<String>), String> {
    let select = table.common.and(&column.select).and(&row.select);
    let of_cell = |problem: String| format!("row {:?}, column {:?}: {problem}", row.label, column.label);
    let path = row.value.as_ref().or(column.value.as_ref()).unwrap_or(&table.value);
    if path.starts_with("log.") {
        let entry = of_log(&select, path, results).map_err(of_cell)?;
        return Ok((entry, select.values().map(str::to_owned).chain([path.clone()]).collect()));
    }
    let found = results.find(&select).map_err(of_cell)?;
    let figure = Lookup::new(&found, path).map_err(of_cell)?.figure();
    Ok((figure.map_or(Entry::Nothing, Entry::Figure), found.keys()))
}

/// Returns the content for a path into the description of a log.
fn of_log(select: &Selector, path: &str, results: &Results) -> Result<Entry, String> {
    match part(results, select, path)? {
        None | Some(Value::Null) => Ok(Entry::Nothing),
        Some(Value::String(word)) => Ok(Entry::Word(word.clone())),
        Some(value) => {
            let mean = value.as_f64().ok_or_else(|| format!("{path:?} is not a number or a string"))?;
            Ok(Entry::Figure(Figure { mean, half_width: None }))
        }
    }
}

/// How far `ours` is from the paper, relative to it.
fn off(ours: f64, paper: f64) -> f64 {
    ours / paper - 1.0
}

/// How near a table comes to the paper. A figure that stands in several cells, ours and the paper's, counts once.
#[derive(Default)]
struct Compared {
    seen: BTreeSet<(Vec<String>, u64)>,
    cells: usize,
    /// The cells that are further off, and by how much.
    missed: Vec<(String, f64)>,
}

impl Compared {
    fn add(&mut self, cell: String, keys: Vec<String>, ours: f64, paper: f64) {
        let off = off(ours, paper);
        if off.is_finite() && self.seen.insert((keys, paper.to_bits())) {
            self.cells += 1;
            if off.abs() > NEAR {
                self.missed.push((cell, off));
            }
        }
    }

    fn summary(&self) -> Option<String> {
        if self.cells == 0 {
            return None;
        }
        let near = self.cells - self.missed.len();
        let mut text = format!("{near} of {} cells within {:.0} % of the paper.", self.cells, 100.0 * NEAR);
        if !self.missed.is_empty() {
            let missed = self.missed.iter().map(|(cell, off)| format!("{cell} ({:+.1} %)", 100.0 * off));
            text.push_str(&format!(" Other cells: {}.", missed.collect::<Vec<_>>().join("; ")));
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_far_twice_and_not_at_all() {
        let mut compared = Compared::default();
        let keys = |key: &str| vec![key.to_owned()];
        compared.add("near".into(), keys("a"), 104.9, 100.0);
        compared.add("far".into(), keys("b"), 94.0, 100.0);
        // The same figures in another cell, and a paper without one.
        compared.add("far again".into(), keys("b"), 94.0, 100.0);
        compared.add("none".into(), keys("c"), 1.0, f64::NAN);
        let text = compared.summary().unwrap();
        assert_eq!(text, "1 of 2 cells within 5 % of the paper. Other cells: far (-6.0 %).");
        assert_eq!(Compared::default().summary(), None);
    }
}
