//! A row of a list: a job, or an array.

use std::collections::BTreeMap;

use miserly_api::model::number_ranges;
use serde::Serialize;

use crate::lists::{Entry, array_counts, entries};
use crate::moment::{Line, line};
use crate::words::Sentences;
use crate::{Facts, Job, State};

/// The most ranges of indexes that a label has.
const RANGES_MOST: usize = 3;

/// A row, ready to be shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// The number of the job, or of the array.
    pub number: i64,
    /// The array, if the row is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayCounts>,
    /// The array of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_array: Option<i64>,
    /// Whether it is below the row of its array.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub member: bool,
    /// The number, with the index in an array, or with all indexes.
    pub label: String,
    /// The name.
    pub name: String,
    /// The comment of its user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// The name of the user.
    pub user: String,
    /// Whether it is of the user for whom this is shown.
    pub own: bool,
    /// The name of its pool, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_name: Option<String>,
    /// The processors of a job.
    pub procs: u64,
    /// The memory of a job, bytes; 0 if it is not known.
    pub memory: u64,
    /// The time limit of a job, milliseconds.
    pub limit: i64,
    /// The state; of an array that of its first job here.
    pub state: State,
    /// A word for the state, or the jobs by state.
    pub word: String,
    /// The start as text.
    pub start_text: String,
    /// The submission as text.
    pub submitted_text: String,
    /// The likely start as text.
    pub likely_text: String,
    /// The end as text.
    pub end_text: String,
    /// The sentence on it.
    pub sentence: String,
}

/// The known jobs of an array, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ArrayCounts {
    /// Those that are held.
    pub held: usize,
    /// The others before their starts.
    pub waiting: usize,
    /// Those that run or are suspended.
    pub running: usize,
    /// Those that ended.
    pub ended: usize,
    /// Those of the ended ones that did not succeed.
    pub failed: usize,
}

impl ArrayCounts {
    /// Counts a job.
    pub(crate) fn add(&mut self, job: &Job) {
        let part = match job.state {
            State::Held => &mut self.held,
            State::Ended => &mut self.ended,
            state if state.holds() => &mut self.running,
            _ => &mut self.waiting,
        };
        *part += 1;
        self.failed += usize::from(job.has_failed());
    }

    /// Returns the number of all.
    pub fn all(self) -> usize {
        self.held + self.waiting + self.running + self.ended
    }

    /// Returns how far it is, in few words.
    fn progress(self) -> String {
        let of =
            |count: usize, word: &str| if count > 0 { format!(", {count} {word}") } else { String::new() };
        let (failed, running) = (of(self.failed, "failed"), of(self.running, "running"));
        format!("{}/{} ended{failed}{running}", self.ended, self.all())
    }

    fn in_words(self) -> String {
        let ArrayCounts { held, waiting, running, ended, failed } = self;
        let of = |count: usize, words: &str| (count > 0).then(|| format!("{count} {words}"));
        let failures = if failed > 0 { format!(", {failed} of them without success") } else { String::new() };
        let parts = [
            of(waiting, "waiting"),
            of(held, "held"),
            of(running, "running"),
            of(ended, "ended").map(|words| words + &failures),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("{} jobs: {}", self.all(), parts.join(", "))
    }
}

/// Returns the row of a job.
pub(crate) fn job_row(facts: &Facts, sentences: &Sentences<'_>, job: &Job, is_member: bool) -> Row {
    let line = line(facts, sentences, job);
    Row {
        number: job.number,
        array: None,
        of_array: job.array.map(|(array, _)| array),
        member: is_member,
        label: job.label.clone(),
        name: job.name.clone(),
        comment: job.comment.clone(),
        user: job.user.clone(),
        own: line.own,
        pool_name: line.pool_name,
        procs: job.procs,
        memory: job.memory,
        limit: job.limit,
        state: job.state,
        word: job.word.clone(),
        start_text: line.start_text,
        submitted_text: facts.clock.instant(job.submitted, facts.now),
        likely_text: line.likely_text.map_or_else(|| "-".to_owned(), |[from, to]| format!("{from} to {to}")),
        end_text: line.end_text,
        sentence: line.sentence,
    }
}

/// Returns the row of some jobs of an array, in the order of a list. `counts` has all its jobs.
pub(crate) fn array_row(
    facts: &Facts,
    sentences: &Sentences<'_>,
    array: i64,
    members: &[&Job],
    counts: ArrayCounts,
) -> Row {
    let Some(first) = members.first() else { return Row::default() };
    let next = job_row(facts, sentences, first, false);
    let (start, end) = (|job: &&&Job| shown_start(job), |job: &&&Job| shown_end(job));
    let row = |job: Option<&&Job>| job.map(|job| line(facts, sentences, job));
    let started = || members.iter().filter(|job| start(job).is_some());
    let (begin, last) = (row(started().min_by_key(start)), row(started().max_by_key(start)));
    let final_end = row(members.iter().filter(|job| end(job).is_some()).max_by_key(end));
    let text = |at: i64| facts.clock.instant(at, facts.now);
    let likely = || members.iter().filter_map(|job| job.likely);
    let likely = likely().map(|[median, ..]| median).min().zip(likely().map(|[.., last]| last).max());
    let sentence = if first.state == State::Ended {
        counts.in_words()
    } else {
        format!("{}; {} {}", counts.in_words(), first.label, next.sentence)
    };
    Row {
        number: array,
        array: Some(counts),
        label: label(array, members),
        word: words(members),
        start_text: begin
            .zip(last)
            .map_or_else(|| "-".to_owned(), |(begin, last)| range(&begin.start_text, &last.start_text)),
        likely_text: likely.map_or_else(
            || "-".to_owned(),
            |(from, to)| range(&text(from), &facts.clock.latest(to, facts.now)),
        ),
        end_text: final_end.map_or_else(|| "-".to_owned(), |line| line.end_text),
        sentence,
        ..next
    }
}

/// Unites the lines of each array, which are in the order of a list, at the place of the first one. A single one stays a job.
///
/// The job of such a line is the first one, with the label and the states of all. O(n log n) for n jobs.
pub fn with_arrays(facts: &Facts, lines: &[Line]) -> Vec<Line> {
    let (counts, sentences) = (array_counts(facts), Sentences::new(facts));
    let jobs: Vec<&Job> = lines.iter().map(|line| &line.job).collect();
    let mut places = lines.iter();
    let mut united = vec![];
    for entry in entries(&jobs) {
        let (first, array) = match entry {
            Entry::Job(job) => (job, None),
            Entry::Array(array, members) => (members[0], Some((array, members))),
        };
        let Some(line) = places.find(|line| line.job.number == first.number) else { continue };
        let Some((array, members)) = array else {
            united.push(line.clone());
            continue;
        };
        let counts = counts.get(&array).copied().unwrap_or_default();
        let row = array_row(facts, &sentences, array, &members, counts);
        united.push(Line {
            job: Job { label: row.label, word: counts.progress(), ..line.job.clone() },
            start_text: row.start_text,
            end_text: row.end_text,
            sentence: row.sentence,
            array: Some(counts),
            ..line.clone()
        });
    }
    united
}

/// Returns the start of a job: the actual one, or that of its window.
pub(crate) fn shown_start(job: &Job) -> Option<i64> {
    job.start.filter(|_| !job.state.is_before_start()).or(job.window())
}

/// Returns the end of a job: the actual or the latest one, or that of its window.
pub(crate) fn shown_end(job: &Job) -> Option<i64> {
    if job.state.is_before_start() {
        job.window().map(|start| start.saturating_add(job.limit))
    } else {
        job.end
    }
}

/// Returns the number of an array with the indexes of these jobs.
fn label(array: i64, members: &[&Job]) -> String {
    let indexes: Vec<u32> = members.iter().filter_map(|job| job.array.map(|(_, index)| index)).collect();
    let ranges = number_ranges(&indexes);
    let text = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let mut shown: Vec<String> = ranges.iter().take(RANGES_MOST).map(text).collect();
    if ranges.len() > RANGES_MOST {
        shown.push("…".to_owned());
    }
    format!("{array}[{}]", shown.join(","))
}

/// Returns the states of jobs, each with its number of jobs, the largest first.
fn words(members: &[&Job]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for job in members {
        *counts.entry(&job.word).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let parts: Vec<String> = counts.into_iter().map(|(word, count)| format!("{count} {word}")).collect();
    parts.join("; ")
}

/// Returns the texts of a first and a last instant as one.
fn range(first: &str, last: &str) -> String {
    if first == last {
        return first.to_owned();
    }
    let last = last.strip_prefix("by ").filter(|_| first.starts_with("by ")).unwrap_or(last);
    format!("{first} to {last}")
}
