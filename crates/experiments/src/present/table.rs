//! A table of one figure of many runs, beside the paper's.

use std::collections::BTreeSet;

use miserly_report::chart::{Axis, BarSeries, Body, Chart, GroupBar};
use miserly_report::page::{Block, Emphasis, Section, TableCell, TableData};
use miserly_report::{decimals, with_half_width};
use serde_json::Value;

use crate::experiment::file::{Line, TableFile};
use crate::experiment::{Experiment, READING, Reading};
use crate::present::chart::{id, least};
use crate::present::lines::{Lookup, OF_LOG, part};
use crate::results::{Figure, Results};
use crate::selector::Selector;

/// How far from the paper a cell may be to count as reproduced.
const NEAR: f64 = 0.05;

/// Returns the table, its note, its distance from the paper, and that under each other reading. With `bars`, a chart of the
/// figures follows.
pub(super) fn blocks(
    experiment: &Experiment,
    table: &TableFile,
    results: &Results,
    bars: bool,
) -> Result<Vec<Block>, String> {
    let main = Cells::new(table, &Reading::default(), results)?;
    let line = |(row, entries): (&Line, &Vec<Cell>)| {
        let cells = entries.iter().flat_map(|cell| cells_of(table, &cell.ours, cell.paper));
        std::iter::once(TableCell::text(&row.label)).chain(cells).collect()
    };
    let rows = table.rows.iter().zip(&main.0).map(line).collect();
    let data = TableData { caption: None, header: header(table), rows };
    let mut texts: Vec<Block> =
        table.note.clone().map(Block::Text).into_iter().chain(main.compared(table).summary()).collect();
    let mut seen = vec![main.keys()];
    // A table that compares readings shows them itself.
    let lines = table.rows.iter().chain(&table.columns);
    let compares = lines.map(|line| &line.select).any(|select| select.get(READING).is_some());
    for reading in experiment.readings().iter().skip(1).filter(|_| !compares) {
        let cells = Cells::new(table, reading, results)?;
        if !seen.contains(&cells.keys()) && cells.has_figures_of(&main) {
            seen.push(cells.keys());
            texts.push(Block::Text(cells.against(&main, table, &reading.name())));
        }
    }
    let chart = main.chart(table).filter(|_| bars).map(Block::Chart);
    Ok([Block::Table(data)].into_iter().chain(texts).chain(chart).collect())
}

/// The cells of a table under a reading, row by row.
struct Cells(Vec<Vec<Cell>>);

struct Cell {
    /// Its row and its column.
    label: String,
    ours: Entry,
    paper: Option<f64>,
    /// The path of its figure.
    path: String,
    /// Its origin: the keys of its runs, or the log and the path.
    keys: Vec<String>,
}

impl Cells {
    fn new(table: &TableFile, reading: &Reading<'_>, results: &Results) -> Result<Cells, String> {
        let cell = |row_at: usize, row: &Line, column_at: usize, column: &Line| {
            let (ours, keys) = entry(table, (row, column), reading, results)?;
            let paper = table.paper.get(row_at).and_then(|line| line.get(column_at)).copied();
            let (label, path) =
                (format!("{}, {}", row.label, column.label), path(table, row, column).to_owned());
            Ok(Cell { label, ours, paper, path, keys })
        };
        let line = |(row_at, row): (usize, &Line)| {
            let columns = table.columns.iter().enumerate();
            columns.map(|(column_at, column)| cell(row_at, row, column_at, column)).collect()
        };
        table.rows.iter().enumerate().map(line).collect::<Result<_, String>>().map(Cells)
    }

    fn all(&self) -> impl Iterator<Item = &Cell> {
        self.0.iter().flatten()
    }

    fn keys(&self) -> Vec<Vec<String>> {
        self.all().map(|cell| cell.keys.clone()).collect()
    }

    /// Returns the figures as bars: a group for each row, and in it a bar for each column, with its interval. `None` if there
    /// is no figure.
    fn chart(&self, table: &TableFile) -> Option<Chart> {
        let bar = |cell: &Cell| {
            let Entry::Figure(Figure { mean, half_width }) = cell.ours else { return None };
            let interval = half_width.map(|width| [(mean - width).max(least(&cell.path)), mean + width]);
            Some(GroupBar {
                value: mean / table.unit,
                interval: interval.map(|ends| ends.map(|end| end / table.unit)),
            })
        };
        self.all().find_map(bar)?;
        let series = |(at, column): (usize, &Line)| BarSeries {
            name: column.label.clone(),
            bars: self.0.iter().map(|row| bar(&row[at])).collect(),
        };
        let rows = table.rows.iter().map(|row| row.label.clone()).collect();
        Some(Chart {
            id: id(&format!("{} bars", table.title)),
            title: table.title.clone(),
            caption: None,
            x: Axis::category("", rows),
            y: Axis::linear(&table.title),
            body: Body::Groups { series: table.columns.iter().enumerate().map(series).collect() },
        })
    }

    /// Returns whether no figure of `main` is missing here, as without the log of the reading.
    fn has_figures_of(&self, main: &Cells) -> bool {
        let is_figure = |cell: &Cell| matches!(cell.ours, Entry::Figure(_));
        self.all().zip(main.all()).all(|(cell, main)| is_figure(cell) || !is_figure(main))
    }

    fn compared(&self, table: &TableFile) -> Compared {
        let mut compared = Compared::default();
        for cell in self.all() {
            if let (Entry::Figure(ours), Some(paper)) = (&cell.ours, cell.paper) {
                compared.add(&cell.label, &cell.keys, ours.mean / table.unit, paper);
            }
        }
        compared
    }

    /// Returns how far the cells are from the paper, and from those of the main reading.
    fn against(&self, main: &Cells, table: &TableFile, name: &str) -> String {
        let mut moves: Vec<(f64, &str)> = Vec::new();
        for (cell, main) in self.all().zip(main.all()) {
            if let (Entry::Figure(here), Entry::Figure(there)) = (&cell.ours, &main.ours) {
                moves.push((off(here.mean, there.mean), &cell.label));
            }
        }
        let finite = moves.into_iter().filter(|(off, _)| off.is_finite());
        let farthest = finite.max_by(|(a, _), (b, _)| a.abs().total_cmp(&b.abs()));
        let moves = farthest
            .map(|(off, label)| format!("the cell that moves most is {label} ({:+.1} %)", 100.0 * off));
        let texts: Vec<String> = self.compared(table).count().into_iter().chain(moves).collect();
        format!("Reading \"{name}\": {}.", texts.join("; "))
    }
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
    let shown_paper = if paper.is_nan() { "-".into() } else { decimals(paper, digits(table)) };
    let off = match ours {
        Entry::Figure(ours) => Some(off(ours.mean / table.unit, paper)).filter(|off| off.is_finite()),
        Entry::Word(_) | Entry::Nothing => None,
    };
    let shown_off = off.map_or_else(|| "-".into(), |off| format!("{:+.1} %", 100.0 * off));
    let emphasis = off.map_or(Emphasis::Muted, nearness);
    vec![shown_ours, TableCell::number(shown_paper), TableCell::number(shown_off).with(emphasis)]
}

/// Returns the emphasis of a difference from the paper.
fn nearness(off: f64) -> Emphasis {
    match off.abs() {
        near if near <= NEAR => Emphasis::Good,
        some if some <= 0.25 => Emphasis::Off(1),
        much if much <= 1.0 => Emphasis::Off(2),
        _ => Emphasis::Off(3),
    }
}

/// Returns the figure with its half width. A table that sets no decimals, and has no figures of a paper, has those that the half
/// width is worth.
fn with_width(table: &TableFile, ours: Figure) -> String {
    let mean = ours.mean / table.unit;
    let text = |value| decimals(value, digits(table));
    let Some(width) = ours.half_width.map(|width| width / table.unit) else { return text(mean) };
    let worth = table.digits.is_none() && table.paper.is_empty();
    let [mean, width] = if worth { with_half_width(mean, width) } else { [mean, width].map(text) };
    format!("{mean} ±{width}")
}

/// Returns the decimals of figures.
fn digits(table: &TableFile) -> usize {
    table.digits.unwrap_or(2)
}

/// The explanation of a half width.
const HALF_WIDTH: &str = "± is half the width of the 95 % confidence interval of a mean: over the seeds, or, of a single run in \
                          batches, over these.";

/// The explanation of moved submissions.
const MOVED: &str = " The seeds move the submissions of the log. So the interval is that of logs like it, and the log as it is \
                     may lie outside.";

/// Explains half widths below the first table that has one.
pub(super) fn explain_half_widths(sections: &mut [Section], results: &Results) {
    let has_width = |block: &Block| match block {
        Block::Table(table) => table.rows.iter().flatten().any(|cell| cell.text.contains('±')),
        _ => false,
    };
    let first = sections.iter_mut().find(|section| section.blocks.iter().any(has_width));
    let Some((at, section)) =
        first.and_then(|section| Some((section.blocks.iter().position(has_width)?, section)))
    else {
        return;
    };
    let moved = if results.has("settings.shake") { MOVED } else { "" };
    section.blocks.insert(at + 1, Block::Text(format!("{HALF_WIDTH}{moved}")));
}

/// Returns the content of a cell and its origin: the keys of its runs, or the log and the path.
fn entry(
    table: &TableFile,
    (row, column): (&Line, &Line),
    reading: &Reading<'_>,
    results: &Results,
) -> Result<(Entry, Vec<String>), String> {
    let select = table.common.and(&column.select).and(&row.select);
    let of_cell = |problem: String| format!("row {:?}, column {:?}: {problem}", row.label, column.label);
    let path = path(table, row, column);
    if path.starts_with(OF_LOG) {
        let select = reading.of_log(&select);
        let entry = of_log(&select, path, results).map_err(of_cell)?;
        return Ok((entry, select.values().map(str::to_owned).chain([path.to_owned()]).collect()));
    }
    let found = results.find(&reading.of_runs(&select)).map_err(of_cell)?;
    let figure = Lookup::new(&found, path).map_err(of_cell)?.figure();
    Ok((figure.map_or(Entry::Nothing, Entry::Figure), found.keys()))
}

/// Returns the path of the figure of a cell.
fn path<'a>(table: &'a TableFile, row: &'a Line, column: &'a Line) -> &'a str {
    row.value.as_ref().or(column.value.as_ref()).unwrap_or(&table.value)
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
    fn add(&mut self, cell: &str, keys: &[String], ours: f64, paper: f64) {
        let off = off(ours, paper);
        if off.is_finite() && self.seen.insert((keys.to_vec(), paper.to_bits())) {
            self.cells += 1;
            if off.abs() > NEAR {
                self.missed.push((cell.to_owned(), off));
            }
        }
    }

    /// Returns how many cells are near, if there are any with figures of the paper.
    fn count(&self) -> Option<String> {
        let near = self.cells - self.missed.len();
        let text = || format!("{near} of {} cells within {:.0} % of the paper", self.cells, 100.0 * NEAR);
        (self.cells > 0).then(text)
    }

    fn summary(&self) -> Option<Block> {
        let count = self.count()? + ".";
        if self.missed.is_empty() {
            return Some(Block::Text(count));
        }
        let missed = self.missed.iter().map(|(cell, off)| format!("{cell} ({:+.1} %)", 100.0 * off));
        Some(Block::Details(count, format!("Other cells: {}.", missed.collect::<Vec<_>>().join("; "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_far_twice_and_not_at_all() {
        let mut compared = Compared::default();
        let keys = |key: &str| vec![key.to_owned()];
        compared.add("near", &keys("a"), 104.9, 100.0);
        compared.add("far", &keys("b"), 94.0, 100.0);
        // The same figures in another cell, and a paper without one.
        compared.add("far again", &keys("b"), 94.0, 100.0);
        compared.add("none", &keys("c"), 1.0, f64::NAN);
        let [count, rest] =
            ["1 of 2 cells within 5 % of the paper.", "Other cells: far (-6.0 %)."].map(str::to_owned);
        assert_eq!(compared.summary(), Some(Block::Details(count, rest)));
        assert_eq!(Compared::default().summary(), None);
    }
}
