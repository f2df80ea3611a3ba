//! A table of one figure of many runs, beside the paper's.

use std::collections::BTreeSet;

use miserly_report::page::{Block, Cell, Emphasis, TableData};

use crate::experiment::file::{Line, Selector, TableFile};
use crate::present::lines::{Asked, joined, shown};
use crate::results::{Figure, Results};

/// How far from the paper a cell may be to count as reproduced.
const NEAR: f64 = 0.05;

/// The table, what to know of it, and how near it comes to the paper.
pub(super) fn blocks(table: &TableFile, results: &Results) -> Result<Vec<Block>, String> {
    let mut compared = Compared::default();
    let mut rows = Vec::new();
    for (at, row) in table.rows.iter().enumerate() {
        let mut cells = vec![Cell::text(&row.label)];
        for (column_at, column) in table.columns.iter().enumerate() {
            let (ours, keys) = figure(table, row, column, results)?;
            let paper = table.paper.get(at).and_then(|line| line.get(column_at)).copied();
            cells.extend(cells_of(table, ours, paper));
            if let (Some(ours), Some(paper)) = (ours, paper) {
                let cell = format!("{}, {}", row.label, column.label);
                compared.add(cell, keys, ours.mean / table.unit, paper);
            }
        }
        rows.push(cells);
    }
    let data = TableData { caption: None, header: header(table), rows };
    let texts = [table.note.clone(), compared.told()];
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

fn cells_of(table: &TableFile, ours: Option<Figure>, paper: Option<f64>) -> Vec<Cell> {
    let shown_ours = ours.map_or_else(
        || Cell::number("-").with(Emphasis::Muted),
        |ours| Cell::number(with_width(table, ours)),
    );
    let Some(paper) = paper else { return vec![shown_ours] };
    let shown_paper = if paper.is_nan() { "-".into() } else { shown(paper, table.digits) };
    let off = ours.map(|ours| off(ours.mean / table.unit, paper)).filter(|off| off.is_finite());
    let shown_off = off.map_or_else(|| "-".into(), |off| format!("{:+.1} %", 100.0 * off));
    vec![shown_ours, Cell::number(shown_paper), Cell::number(shown_off).with(Emphasis::Muted)]
}

fn with_width(table: &TableFile, ours: Figure) -> String {
    let mean = shown(ours.mean / table.unit, table.digits);
    let width = ours.half_width.map(|width| format!(" ±{}", shown(width / table.unit, table.digits)));
    mean + &width.unwrap_or_default()
}

/// The figure of a cell, and the keys of its runs.
fn figure(
    table: &TableFile,
    row: &Line,
    column: &Line,
    results: &Results,
) -> Result<(Option<Figure>, Vec<String>), String> {
    let select: Selector = joined(&[&table.common, &column.select, &row.select]);
    let of_cell = |problem: String| format!("row {:?}, column {:?}: {problem}", row.label, column.label);
    let found = results.find(&select).map_err(of_cell)?;
    let value = row.value.as_ref().or(column.value.as_ref()).unwrap_or(&table.value);
    let figure = Asked::of(&found, value).map_err(of_cell)?.figure();
    Ok((figure, found.keys()))
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

    fn told(&self) -> Option<String> {
        if self.cells == 0 {
            return None;
        }
        let near = self.cells - self.missed.len();
        let mut text = format!("{near} of {} cells within {:.0} % of the paper.", self.cells, 100.0 * NEAR);
        if !self.missed.is_empty() {
            let missed = self.missed.iter().map(|(cell, off)| format!("{cell} ({:+.1} %)", 100.0 * off));
            text.push_str(&format!(" Further off: {}.", missed.collect::<Vec<_>>().join("; ")));
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
        let told = compared.told().unwrap();
        assert_eq!(told, "1 of 2 cells within 5 % of the paper. Further off: far (-6.0 %).");
        assert_eq!(Compared::default().told(), None);
    }
}
