//! The tables of runs and comparisons on a page. The rows are those of the terminal.

use miserly_run::RunDoc;

use super::group_tables::tables_by;
use super::layout::{TableStyle, TextTable};
use super::tables::{
    BEST, MEANINGS, comparison_rows, facts, first_run, legend_of, log_entries, measure_table,
};
use crate::page::{Block, Emphasis, Section, TableCell, TableData};

/// Returns the summary of runs of one log: the key figures, their marks, the log, and its settings.
///
/// A single run has its measures with their intervals instead of a comparison.
pub fn summary_blocks(outcomes: &[&RunDoc], style: TableStyle) -> Vec<Block> {
    let Some(first) = first_run(outcomes) else { return Vec::new() };
    let mut blocks = match outcomes {
        [run] => vec![Block::Table(on_page(measure_table(run, style))), Block::Table(fact_table(run, style))],
        _ => comparison_blocks(outcomes, style),
    };
    let entries = log_entries(first, outcomes);
    let entries = entries.iter().map(|(name, value)| format!("{}: {value}.", capitalised(name)));
    blocks.push(Block::Text(entries.collect::<Vec<_>>().join(" ")));
    blocks
}

/// Returns the tables of a breakdown, such as `user`, for runs of one log.
pub fn group_blocks(by: &str, outcomes: &[&RunDoc], style: TableStyle) -> Vec<Block> {
    let tables = tables_by(by, outcomes, style).into_iter();
    tables.map(|table| Block::Table(on_page(table))).collect()
}

/// Returns the tables of runs of one log: the summary, the breakdowns, and the verdict, if there is one.
pub fn run_sections(outcomes: &[&RunDoc], verdict: Option<&str>, style: TableStyle) -> Vec<Section> {
    let groups = first_run(outcomes).into_iter().flat_map(|run| run.by.keys());
    let groups = groups.flat_map(|by| group_blocks(by, outcomes, style));
    let verdict = verdict.map(|verdict| Block::Text(format!("Verdict: {verdict}")));
    let blocks = summary_blocks(outcomes, style).into_iter().chain(groups).chain(verdict).collect();
    vec![Section { heading: String::new(), blocks }]
}

fn comparison_blocks(outcomes: &[&RunDoc], style: TableStyle) -> Vec<Block> {
    let policies = outcomes.iter().map(|outcome| outcome.policy.clone());
    let rows = comparison_rows(outcomes, style);
    let legend = legend_of(&rows, outcomes);
    let header = std::iter::once(String::new()).chain(policies).collect();
    let table = Block::Table(on_page(TextTable { header, rows }));
    let meanings = MEANINGS.iter().map(|(name, meaning)| format!("{}: {meaning}.", capitalised(name)));
    let meanings = Block::Text(meanings.collect::<Vec<_>>().join(" "));
    let legend = legend.map(|legend| Block::Text(format!("{legend}.")));
    std::iter::once(table).chain(legend).chain([meanings]).collect()
}

/// Returns the figures of a run that are no measures of jobs.
fn fact_table(run: &RunDoc, style: TableStyle) -> TableData {
    let row = |(name, value): (&str, String)| vec![TableCell::text(name), TableCell::text(value)];
    TableData { caption: None, header: Vec::new(), rows: facts(run, style).into_iter().map(row).collect() }
}

/// Returns the table as a page shows it: the best value of a row has an emphasis beside its mark.
pub(super) fn on_page(table: TextTable) -> TableData {
    let header = table.header.iter().map(|name| unfolded(name)).collect();
    let cell = |(column, text): (usize, String)| match column {
        0 => TableCell::text(text),
        _ if text.ends_with(BEST) => TableCell::number(text).with(Emphasis::Good),
        _ => TableCell::number(text.trim_end()),
    };
    let row = |row: Vec<String>| row.into_iter().enumerate().map(cell).collect();
    TableData { caption: None, header: vec![header], rows: table.rows.into_iter().map(row).collect() }
}

/// Returns a heading of a terminal on one line.
fn unfolded(heading: &str) -> String {
    heading.replace(",\n", ", ").replace("\n(", "(").replace("=\n", "=").replace('\n', " ")
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
