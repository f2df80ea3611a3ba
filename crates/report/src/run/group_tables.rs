//! The tables of a breakdown that people read.

use super::document::{Measure, Outcome};
use super::groups::Group;
use super::layout::Columns;
use super::tables::headed;
use crate::numbers::{count, figure, percent};

/// Of users and queues, so many are shown; the others are one row.
const SHOWN: usize = 20;

/// One table for each breakdown of a run.
pub(super) fn of_run(outcome: &Outcome, width: Option<usize>) -> String {
    let table =
        |(by, groups): (&String, &Vec<Group>)| ["\n", &run_table(by, groups).table(width), "\n"].concat();
    outcome.by.iter().map(table).collect()
}

/// For each breakdown of runs of one log: a table of each figure.
pub(super) fn of_comparison(outcomes: &[&Outcome], width: Option<usize>) -> String {
    let Some(first) = outcomes.first() else { return String::new() };
    let tables = first.by.keys().flat_map(|by| COMPARED.iter().map(move |figure| (by, figure)));
    let table = |(by, of): (&String, &Figure)| {
        ["\n", &comparison_table(by, of, outcomes).table(width), "\n"].concat()
    };
    tables.map(table).collect()
}

/// A figure of some groups together.
struct Figure {
    name: &'static str,
    of: fn(&[&Group]) -> Option<f64>,
}

/// What is compared group by group.
const COMPARED: [Figure; 6] = [
    Figure { name: "bounded slowdown, mean", of: |groups| mean(groups, slowdown) },
    Figure { name: "bounded slowdown, p95", of: |groups| percentile(groups, |group| slowdown(group).p95) },
    Figure { name: "bounded slowdown, max", of: |groups| most(groups, slowdown) },
    Figure { name: "wait, mean (s)", of: |groups| mean(groups, wait) },
    Figure { name: "wait, p95 (s)", of: |groups| percentile(groups, |group| wait(group).p95) },
    Figure { name: "wait, max (s)", of: |groups| most(groups, wait) },
];

/// What is told of the groups of one run.
const TOLD: [Figure; 7] = [
    Figure { name: "wait: mean (s)", of: |groups| mean(groups, wait) },
    Figure { name: "median", of: |groups| percentile(groups, |group| wait(group).median) },
    Figure { name: "p95", of: |groups| percentile(groups, |group| wait(group).p95) },
    Figure { name: "max", of: |groups| most(groups, wait) },
    Figure { name: "bounded slowdown: mean", of: |groups| mean(groups, slowdown) },
    Figure { name: "p95", of: |groups| percentile(groups, |group| slowdown(group).p95) },
    Figure { name: "max", of: |groups| most(groups, slowdown) },
];

fn wait(group: &Group) -> Measure {
    group.metrics.wait
}

fn slowdown(group: &Group) -> Measure {
    group.metrics.bounded_slowdown
}

fn run_table(by: &str, groups: &[Group]) -> Columns {
    let work: f64 = groups.iter().map(|group| group.work).sum();
    let header = [by, "jobs", "work"].into_iter().chain(TOLD.iter().map(|figure| figure.name));
    let (shown, others) = split(by, groups);
    let mut rows: Vec<Vec<String>> = shown.iter().map(|group| row(&group.group, &[group], work)).collect();
    if !others.is_empty() {
        rows.push(row(&others_name(&others), &others, work));
    }
    Columns { header: header.map(str::to_owned).collect(), rows }
}

fn row(name: &str, groups: &[&Group], all_work: f64) -> Vec<String> {
    let work: f64 = groups.iter().map(|group| group.work).sum();
    let share = percent((all_work > 0.0).then(|| work / all_work));
    let figures = TOLD.iter().map(|told| figure((told.of)(groups)));
    [name.to_owned(), jobs(groups), share].into_iter().chain(figures).collect()
}

fn jobs(groups: &[&Group]) -> String {
    count(groups.iter().map(|group| group.jobs).sum())
}

fn comparison_table(by: &str, of: &Figure, outcomes: &[&Outcome]) -> Columns {
    let header = [format!("{}\nby {by}", of.name), "jobs".to_owned()].into_iter();
    let groups: Vec<&[Group]> =
        outcomes.iter().map(|run| run.by.get(by).map_or(&[][..], Vec::as_slice)).collect();
    // A run has the same jobs under every policy, and their work differs only where jobs are killed.
    let (shown, others) = split(by, groups[0]);
    let cells = |name: String, named: &[&Group]| -> Vec<String> {
        let of_run = |groups: &&[Group]| {
            let is_named = |group: &&Group| named.iter().any(|named| named.group == group.group);
            figure((of.of)(&groups.iter().filter(is_named).collect::<Vec<_>>()))
        };
        [name, jobs(named)].into_iter().chain(groups.iter().map(of_run)).collect()
    };
    let mut rows: Vec<Vec<String>> = shown.iter().map(|group| cells(group.group.clone(), &[group])).collect();
    if !others.is_empty() {
        rows.push(cells(others_name(&others), &others));
    }
    Columns { header: header.chain(outcomes.iter().map(|run| headed(&run.policy))).collect(), rows }
}

/// The groups that have a row of their own, and those that share one.
///
/// Users and queues come by their work, the most first; other groups stand in their natural order.
fn split<'a>(by: &str, groups: &'a [Group]) -> (Vec<&'a Group>, Vec<&'a Group>) {
    let mut shown: Vec<&Group> = groups.iter().filter(|group| group.jobs > 0).collect();
    if !by.parse().is_ok_and(miserly_sim::Grouping::is_by_number) {
        return (shown, Vec::new());
    }
    shown.sort_by(|a, b| b.work.total_cmp(&a.work));
    let others = shown.split_off(SHOWN.min(shown.len()));
    (shown, others)
}

fn others_name(others: &[&Group]) -> String {
    format!("others ({})", count(others.len() as u64))
}

/// The mean over the jobs of all of them.
fn mean(groups: &[&Group], of: fn(&Group) -> Measure) -> Option<f64> {
    if let [group] = groups {
        return of(group).mean;
    }
    let jobs: u64 = groups.iter().map(|group| of(group).count).sum();
    let sum: f64 =
        groups.iter().map(|group| of(group)).filter_map(|of| Some(of.mean? * of.count as f64)).sum();
    (jobs > 0).then(|| sum / jobs as f64)
}

/// A percentile: of several groups it does not follow from those of each.
fn percentile(groups: &[&Group], of: fn(&Group) -> Option<f64>) -> Option<f64> {
    match groups {
        [group] => of(group),
        _ => None,
    }
}

/// The largest of all of them.
fn most(groups: &[&Group], of: fn(&Group) -> Measure) -> Option<f64> {
    groups.iter().filter_map(|group| of(group).max).max_by(f64::total_cmp)
}
