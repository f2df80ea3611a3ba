//! Tables of breakdowns.

use miserly_run::{GroupDoc, MeasureDoc, RunDoc};

use super::layout::{Quantity, TableStyle, TextTable};
use super::tables::{first_run, folded_policy};
use crate::numbers::{count, percent};

/// Users and queues with a row of their own. The others share one row.
const SHOWN: usize = 20;

/// Returns a table for each breakdown of a run.
pub(super) fn run_tables(outcome: &RunDoc, style: TableStyle) -> String {
    let table = |(by, groups): (&String, &Vec<GroupDoc>)| {
        ["\n", &run_table(by, groups, style).table(style.width), "\n"].concat()
    };
    outcome.by.iter().map(table).collect()
}

/// Returns, for each breakdown of runs of one log, a table of the mean waits; a table per figure with all measures.
pub(super) fn comparison_tables(outcomes: &[&RunDoc], style: TableStyle) -> String {
    let Some(first) = outcomes.first() else { return String::new() };
    let tables = first.by.keys().flat_map(|by| comparison(by, outcomes, style));
    tables.map(|table| ["\n", &table.table(style.width), "\n"].concat()).collect()
}

/// Returns the tables of one breakdown: a table of the figures for a single run, else a table per figure.
pub(super) fn tables_by(by: &str, outcomes: &[&RunDoc], style: TableStyle) -> Vec<TextTable> {
    match outcomes {
        [run] => run.by.get(by).map(|groups| run_table(by, groups, style)).into_iter().collect(),
        _ => comparison(by, outcomes, style).collect(),
    }
}

/// Returns a table per figure for runs of one log.
fn comparison(by: &str, outcomes: &[&RunDoc], style: TableStyle) -> impl Iterator<Item = TextTable> {
    // The verdict is on the first figure.
    let shown = if style.all_measures { COMPARISON_FIGURES.len() } else { 1 };
    COMPARISON_FIGURES[..shown].iter().map(move |figure| comparison_table(by, figure, outcomes, style))
}

/// A figure of one or several groups.
struct GroupFigure {
    name: &'static str,
    quantity: Quantity,
    value: fn(&[&GroupDoc]) -> Option<f64>,
}

impl GroupFigure {
    fn label(&self, style: TableStyle) -> String {
        style.label(self.quantity, self.name)
    }

    fn cell(&self, groups: &[&GroupDoc], style: TableStyle) -> String {
        style.figure(self.quantity, (self.value)(groups))
    }
}

const fn time(name: &'static str, value: fn(&[&GroupDoc]) -> Option<f64>) -> GroupFigure {
    GroupFigure { name, quantity: Quantity::Time, value }
}

const fn number(name: &'static str, value: fn(&[&GroupDoc]) -> Option<f64>) -> GroupFigure {
    GroupFigure { name, quantity: Quantity::Number, value }
}

/// Figures of a comparison.
const COMPARISON_FIGURES: [GroupFigure; 6] = [
    time("wait, mean", |groups| mean(groups, wait)),
    time("wait, p95", |groups| percentile(groups, |group| wait(group).p95)),
    time("wait, max", |groups| max(groups, wait)),
    number("bounded slowdown, mean", |groups| mean(groups, slowdown)),
    number("bounded slowdown, p95", |groups| percentile(groups, |group| slowdown(group).p95)),
    number("bounded slowdown, max", |groups| max(groups, slowdown)),
];

/// The number of figures of the wait at the head of [`RUN_FIGURES`].
const WAIT_FIGURES: usize = 4;

/// Figures of a single run: those of the wait, which are shown by default, and further ones.
const RUN_FIGURES: [GroupFigure; 7] = [
    time("wait: mean", |groups| mean(groups, wait)),
    time("median", |groups| percentile(groups, |group| wait(group).median)),
    time("p95", |groups| percentile(groups, |group| wait(group).p95)),
    time("max", |groups| max(groups, wait)),
    number("bounded slowdown: mean", |groups| mean(groups, slowdown)),
    number("p95", |groups| percentile(groups, |group| slowdown(group).p95)),
    number("max", |groups| max(groups, slowdown)),
];

/// Returns the figures of a single run that are shown.
fn run_figures(style: TableStyle) -> &'static [GroupFigure] {
    if style.all_measures { &RUN_FIGURES } else { &RUN_FIGURES[..WAIT_FIGURES] }
}

fn wait(group: &GroupDoc) -> MeasureDoc {
    group.metrics.wait
}

fn slowdown(group: &GroupDoc) -> MeasureDoc {
    group.metrics.bounded_slowdown
}

fn run_table(by: &str, groups: &[GroupDoc], style: TableStyle) -> TextTable {
    let work: f64 = groups.iter().map(|group| group.work).sum();
    let header = [&property(by), "jobs", "work"].map(str::to_owned).into_iter();
    let header = header.chain(run_figures(style).iter().map(|figure| figure.label(style)));
    let (shown, others) = split(by, groups);
    let mut rows: Vec<Vec<String>> =
        shown.iter().map(|group| row(&group.label(by), &[group], work, style)).collect();
    if !others.is_empty() {
        rows.push(row(&others_name(&others), &others, work, style));
    }
    TextTable { header: header.collect(), rows }
}

fn row(name: &str, groups: &[&GroupDoc], all_work: f64, style: TableStyle) -> Vec<String> {
    let work: f64 = groups.iter().map(|group| group.work).sum();
    let share = percent((all_work > 0.0).then(|| work / all_work));
    let figures = run_figures(style).iter().map(|figure| figure.cell(groups, style));
    [name.to_owned(), jobs(groups), share].into_iter().chain(figures).collect()
}

fn jobs(groups: &[&GroupDoc]) -> String {
    count(groups.iter().map(|group| group.jobs).sum())
}

fn comparison_table(by: &str, figure: &GroupFigure, outcomes: &[&RunDoc], style: TableStyle) -> TextTable {
    let header = [format!("{}\nby {}", figure.label(style), property(by)), "jobs".to_owned()].into_iter();
    let groups: Vec<&[GroupDoc]> =
        outcomes.iter().map(|run| run.by.get(by).map_or(&[][..], Vec::as_slice)).collect();
    // All runs have the same jobs, and their work differs only by killed jobs. A record may have longer runtimes.
    let of_first = first_run(outcomes).and_then(|run| run.by.get(by)).map_or(&[][..], Vec::as_slice);
    let (shown, others) = split(by, of_first);
    let cells = |name: String, named: &[&GroupDoc]| -> Vec<String> {
        let cell = |groups: &&[GroupDoc]| {
            let is_named = |group: &&GroupDoc| named.iter().any(|named| named.group == group.group);
            figure.cell(&groups.iter().filter(is_named).collect::<Vec<_>>(), style)
        };
        [name, jobs(named)].into_iter().chain(groups.iter().map(cell)).collect()
    };
    let mut rows: Vec<Vec<String>> = shown.iter().map(|group| cells(group.label(by), &[group])).collect();
    if !others.is_empty() {
        rows.push(cells(others_name(&others), &others));
    }
    TextTable { header: header.chain(outcomes.iter().map(|run| folded_policy(&run.policy))).collect(), rows }
}

/// Returns the groups with a row of their own and those that share a row.
///
/// Users, queues and other values of the log are sorted by descending work. Other groups keep their natural order.
fn split<'a>(by: &str, groups: &'a [GroupDoc]) -> (Vec<&'a GroupDoc>, Vec<&'a GroupDoc>) {
    let mut shown: Vec<&GroupDoc> = groups.iter().filter(|group| group.jobs > 0).collect();
    if !by.parse().is_ok_and(miserly_sim::Grouping::is_by_value) {
        return (shown, Vec::new());
    }
    shown.sort_by(|a, b| b.work.total_cmp(&a.work));
    let others = shown.split_off(SHOWN.min(shown.len()));
    (shown, others)
}

/// Returns the properties of a grouping, without the bounds of ranges, which the groups have.
fn property(by: &str) -> String {
    let name = |part: &str| part.split_once(':').map_or(part, |(name, _)| name).to_owned();
    by.split('+').map(name).collect::<Vec<_>>().join(" + ")
}

fn others_name(others: &[&GroupDoc]) -> String {
    format!("others ({})", count(others.len() as u64))
}

/// Returns the mean over the jobs of all groups.
fn mean(groups: &[&GroupDoc], measure: fn(&GroupDoc) -> MeasureDoc) -> Option<f64> {
    if let [group] = groups {
        return measure(group).mean;
    }
    let jobs: u64 = groups.iter().map(|group| measure(group).count).sum();
    let sum: f64 = groups
        .iter()
        .map(|group| measure(group))
        .filter_map(|of_group| Some(of_group.mean? * of_group.count as f64))
        .sum();
    (jobs > 0).then(|| sum / jobs as f64)
}

/// Returns a percentile of one group. It cannot be derived for several groups.
fn percentile(groups: &[&GroupDoc], value: fn(&GroupDoc) -> Option<f64>) -> Option<f64> {
    match groups {
        [group] => value(group),
        _ => None,
    }
}

/// Returns the maximum over all groups.
fn max(groups: &[&GroupDoc], measure: fn(&GroupDoc) -> MeasureDoc) -> Option<f64> {
    groups.iter().filter_map(|group| measure(group).max).max_by(f64::total_cmp)
}
