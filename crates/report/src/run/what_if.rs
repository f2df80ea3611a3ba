//! The answer to a what-if question about a log.

use miserly_run::group_label;
use serde::Serialize;

use super::layout::{Quantity, TableStyle, TextTable};
use super::on_page::on_page;
use super::verdict::significance;
use crate::numbers::count;
use crate::page::{Block, Section};

/// The difference that a change makes to a log. Times are in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIfDoc {
    /// Version of the program.
    pub version: &'static str,
    /// File name of the log.
    pub trace: String,
    /// The run without the change.
    pub before: WhatIfRunDoc,
    /// The run with the change.
    pub after: WhatIfRunDoc,
    /// What is changed, in words.
    pub changes: Vec<String>,
    /// Copies of the log with moved submissions.
    pub copies: u64,
    /// The most by which a copy moves a submission.
    pub moved: u64,
    /// Jobs that ended only in the run without the change.
    pub only_before: u64,
    /// Jobs of the log that ended only in the run with the change.
    pub only_after: u64,
    /// Share of further copies whose differences are within the ranges, 0 to 1; `None` without copies.
    pub coverage: Option<f64>,
    /// Whether the mean waits differ significantly (95 %), by paired batches of jobs as in `compare`; `None`: unknown.
    pub significant: Option<bool>,
    /// The added job.
    pub job: Option<WhatIfJobDoc>,
    /// All jobs that ended in both runs.
    pub all: WhatIfGroupDoc,
    /// Mean bounded slowdown of these jobs, with a bound of 10 s.
    pub bounded_slowdown: WhatIfSlowdownDoc,
    /// The grouping of these jobs, as in `--by`.
    pub groups: String,
    /// The same jobs by group. Groups without jobs are left out.
    pub by_group: Vec<WhatIfGroupDoc>,
    /// The same jobs by user, the largest total difference first.
    pub by_user: Vec<WhatIfGroupDoc>,
}

/// One of the two runs.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIfRunDoc {
    /// Policy in its written form.
    pub policy: String,
    /// Name of the machine.
    pub machine: String,
    /// Processors of the machine.
    pub procs: u64,
}

/// The job that is added to the log.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIfJobDoc {
    /// Submission, in log time.
    pub submit: f64,
    /// Processors.
    pub procs: u64,
    /// Time limit.
    pub time: f64,
    /// Wait; `None` if the policy refuses the job.
    pub wait: Option<f64>,
    /// Latest wait by its promise, if the policy makes one.
    pub promise: Option<f64>,
    /// The range of its wait in the log and its copies.
    pub range: Option<[f64; 2]>,
}

/// The waits of a group of jobs in both runs.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIfGroupDoc {
    /// The group: of the grouping, a user, or `all`.
    pub group: String,
    /// Its name in the header of the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Jobs.
    pub jobs: u64,
    /// Jobs that wait longer with the change.
    pub longer: u64,
    /// Jobs that wait shorter with the change.
    pub shorter: u64,
    /// Mean wait without the change.
    pub before: f64,
    /// Mean wait with the change.
    pub after: f64,
    /// Difference of the mean waits.
    pub difference: f64,
    /// Median difference of the copies.
    pub median: Option<f64>,
    /// The range of the difference in the log and its copies. It contains the difference.
    pub range: Option<[f64; 2]>,
    /// Shares of copies in which the mean wait is longer, and shorter, with the change; 0 to 1.
    pub signs: Option<[f64; 2]>,
}

/// Mean bounded slowdowns of both runs.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIfSlowdownDoc {
    /// Without the change.
    pub before: f64,
    /// With the change.
    pub after: f64,
    /// The difference.
    pub difference: f64,
    /// Median difference of the copies.
    pub median: Option<f64>,
    /// The range of the difference in the log and its copies. It contains the difference.
    pub range: Option<[f64; 2]>,
}

/// The most users in the table.
const USERS: usize = 8;

/// Formats the answer as tables.
pub fn what_if_table(document: &WhatIfDoc, style: TableStyle) -> String {
    let mut text = style.entry("log", &document.trace);
    let WhatIfDoc { before, after, .. } = document;
    let run = |run: &WhatIfRunDoc| format!("{}, {} processors", run.policy, count(run.procs));
    text.push_str(&style.entry("without the change", &run(before)));
    text.push_str(&style.entry("with the change", &run(after)));
    text.push_str(&style.entry("change", &document.changes.join("; ")));
    if document.copies > 0 {
        let moved =
            format!("{} of the log, submissions moved by up to {} s", document.copies, document.moved);
        text.push_str(&style.entry("copies", &moved));
    }
    for (name, jobs) in
        [("ended only without", document.only_before), ("ended only with", document.only_after)]
    {
        if jobs > 0 {
            text.push_str(&style.entry(name, &format!("{} jobs", count(jobs))));
        }
    }
    if let Some(job) = &document.job {
        text.push_str(&style.entry("the added job", &sentence(job, style)));
    }
    text.push_str(&style.entry("in sum", &sum(document, style)));
    text.push_str(&format!("\n{}\n", waits(document, style).table(style.width)));
    if let Some(users) = users(document, style) {
        text.push_str(&format!("\n{}\n", users.table(style.width)));
    }
    if let Some(legend) = legend(document) {
        text.push_str(&format!("\n{}\n", style.paragraph(&legend)));
    }
    text
}

/// Returns the tables of the answer, what they mean, and the answer in a sentence.
pub fn what_if_sections(document: &WhatIfDoc, style: TableStyle) -> Vec<Section> {
    let tables = std::iter::once(waits(document, style)).chain(users(document, style));
    let job = document.job.as_ref().map(|job| format!("The added job {}.", sentence(job, style)));
    let texts = [Some(format!("In sum {}", sum(document, style))), job, legend(document)];
    let tables = tables.map(|table| Block::Table(on_page(table)));
    let blocks = tables.chain(texts.into_iter().flatten().map(Block::Text)).collect();
    vec![Section { heading: String::new(), blocks }]
}

/// Returns what the figures are; `None` without copies.
fn legend(document: &WhatIfDoc) -> Option<String> {
    document.coverage.map(|coverage| {
        format!(
            "waits and differences: of the log as it is; range: of the log and its copies, and {:.0} % of further \
             copies are within it; significant: beyond the variation between batches of jobs, as in compare",
            100.0 * coverage
        )
    })
}

/// Returns what becomes of the added job, in words.
fn sentence(job: &WhatIfJobDoc, style: TableStyle) -> String {
    let time = |seconds| style.figure(Quantity::Time, Some(seconds));
    let Some(wait) = job.wait else { return "is refused".to_owned() };
    let mut text = if wait > 0.0 { format!("waits {}", time(wait)) } else { "starts at once".to_owned() };
    if let Some(promise) = job.promise {
        text.push_str(&format!("; its promise is {} at most", time(promise)));
    }
    if let Some([low, high]) = job.range {
        text.push_str(&format!("; in the log and its copies {} to {}", time(low), time(high)));
    }
    text
}

/// Returns the total difference, in words.
fn sum(document: &WhatIfDoc, style: TableStyle) -> String {
    let all = &document.all;
    let total = all.difference * all.jobs as f64;
    let word = if total < 0.0 { "less" } else { "more" };
    let (longer, shorter) = (count(all.longer), count(all.shorter));
    let total = style.figure(Quantity::Time, Some(total.abs()));
    let jobs = count(all.jobs);
    let mut text =
        format!("{longer} of {jobs} jobs wait longer, {shorter} shorter; together they wait {total} {word}");
    if let Some([longer, shorter]) = all.signs {
        let (share, word) = if longer >= shorter { (longer, "longer") } else { (shorter, "shorter") };
        text.push_str(&format!("; the mean wait is {word} in {:.0} % of the copies", 100.0 * share));
    }
    if document.job.is_none() && document.only_before + document.only_after == 0 {
        text.push_str(&format!(". {}", significance(document.significant.map(|significant| !significant))));
    }
    text
}

/// Returns the mean waits by group, and the bounded slowdown.
fn waits(document: &WhatIfDoc, style: TableStyle) -> TextTable {
    let groups = document.by_group.iter().chain([&document.all]);
    let mut rows: Vec<Vec<String>> = groups.map(|group| row(&document.groups, group, style)).collect();
    let WhatIfSlowdownDoc { before, after, difference, range, .. } = document.bounded_slowdown;
    let number = |value| style.figure(Quantity::Number, Some(value));
    let range = range.map_or_else(String::new, |[low, high]| format!("{} to {}", number(low), number(high)));
    let cells = ["bounded slowdown".to_owned(), count(document.all.jobs), number(before), number(after)];
    rows.push(cells.into_iter().chain([number(difference), range]).collect());
    without_ranges(document, TextTable { header: header("group", style), rows })
}

/// Returns the mean waits of the users with the largest total differences, if the log has several users.
fn users(document: &WhatIfDoc, style: TableStyle) -> Option<TextTable> {
    if document.by_user.len() < 2 {
        return None;
    }
    let changed = document.by_user.iter().filter(|group| group.longer + group.shorter > 0);
    let rows: Vec<Vec<String>> = changed.take(USERS).map(|group| row("user", group, style)).collect();
    let table = TextTable { header: header("user", style), rows };
    (!table.rows.is_empty()).then(|| without_ranges(document, table))
}

fn header(first: &str, style: TableStyle) -> Vec<String> {
    let label = |name| style.label(Quantity::Time, name);
    let names = [label("wait without"), label("with"), label("difference"), "range".to_owned()];
    [first.to_owned(), "jobs".to_owned()].into_iter().chain(names).collect()
}

fn row(by: &str, group: &WhatIfGroupDoc, style: TableStyle) -> Vec<String> {
    let time = |seconds| style.figure(Quantity::Time, Some(seconds));
    let range = group
        .range
        .map_or_else(String::new, |[low, high]| format!("{} to {}", signed(low, style), signed(high, style)));
    let difference = signed(group.difference, style);
    let name = group_label(by, &group.group, group.name.as_deref());
    vec![name, count(group.jobs), time(group.before), time(group.after), difference, range]
}

/// Returns a difference of times, with its sign.
fn signed(seconds: f64, style: TableStyle) -> String {
    let size = style.figure(Quantity::Time, Some(seconds.abs()));
    if size == style.figure(Quantity::Time, Some(0.0)) {
        return size;
    }
    format!("{}{size}", if seconds < 0.0 { '-' } else { '+' })
}

/// Leaves out the last column if there are no copies.
fn without_ranges(document: &WhatIfDoc, mut table: TextTable) -> TextTable {
    if document.copies == 0 {
        table.header.pop();
        table.rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    table
}
