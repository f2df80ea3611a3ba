//! The columns of the list.

use jiff::Timestamp;
use miserly_api::model::{JobView, Phase, Window};
use miserly_units::{duration, memory, span_of_seconds};
use miserly_view::word;

use super::super::show::is_time_sliced;
use super::super::text::{Instants, outcome, plain, table};
use super::rows::{Row, rows};
use crate::args::Column;

/// The columns if none are given. That of likely starts is left out if there are none.
const USUAL: [Column; 11] = [
    Column::Job,
    Column::Name,
    Column::User,
    Column::Queue,
    Column::Cpus,
    Column::Memory,
    Column::Time,
    Column::State,
    Column::Start,
    Column::Likely,
    Column::End,
];

/// Returns the jobs as a table.
pub(super) fn shown(jobs: &[JobView], columns: &[Column], each: bool, instants: Instants) -> String {
    if jobs.is_empty() {
        return "no jobs\n".to_owned();
    }
    let forecast = jobs.iter().any(|job| job.forecast.is_some());
    let usual = || USUAL.into_iter().filter(|column| *column != Column::Likely || forecast).collect();
    let columns: Vec<Column> = if columns.is_empty() { usual() } else { columns.to_vec() };
    let header: Vec<&str> = columns.iter().map(|column| title(*column)).collect();
    let numbers: Vec<&str> =
        columns.iter().filter(|column| is_number(**column)).map(|column| title(*column)).collect();
    let rows = rows(jobs, each);
    let cells = |row: &Row<'_>| columns.iter().map(|column| cell(*column, row, instants)).collect();
    let table = table(&header, &numbers, rows.iter().map(cells));
    let sentences = rows.iter().filter_map(|row| row.sentence(instants));
    sentences.fold(table, |text, sentence| text + &sentence + "\n")
}

const fn title(column: Column) -> &'static str {
    match column {
        Column::Job => "JOB",
        Column::Name => "NAME",
        Column::User => "USER",
        Column::Queue => "QUEUE",
        Column::Cpus => "CPUS",
        Column::Memory => "MEMORY",
        Column::Gpus => "GPUS",
        Column::Time => "TIME",
        Column::State => "STATE",
        Column::Start => "START",
        Column::Likely => "LIKELY",
        Column::End => "END",
        Column::Submitted => "SUBMITTED",
        Column::Wait => "WAIT",
        Column::Ran => "RAN",
        Column::Array => "ARRAY",
        Column::Runs => "RUNS",
    }
}

const fn is_number(column: Column) -> bool {
    matches!(
        column,
        Column::Cpus
            | Column::Memory
            | Column::Gpus
            | Column::Time
            | Column::Wait
            | Column::Ran
            | Column::Runs
    )
}

/// Returns the latest of some instants, if all of them are known.
fn last(instants: impl Iterator<Item = Option<Timestamp>>) -> Option<Timestamp> {
    instants.collect::<Option<Vec<Timestamp>>>()?.into_iter().max()
}

/// Returns a cell of a row. That of several jobs has the earliest start, and the latest of all other instants and times.
///
/// A likely start or an end is that of all jobs of the row, so one that is unknown leaves the cell empty.
fn cell(column: Column, row: &Row<'_>, instants: Instants) -> String {
    let job = row.first();
    let none = || "-".to_owned();
    let longest = |time: fn(&JobView, Timestamp) -> Option<f64>| {
        row.jobs().filter_map(|job| time(job, instants.now)).max_by(f64::total_cmp)
    };
    let seconds = |secs: Option<f64>| secs.map_or_else(none, |secs| duration(span_of_seconds(secs.floor())));
    match column {
        Column::Job => row.label(),
        Column::Name => plain(&job.name),
        Column::User => plain(&job.user),
        Column::Queue => plain(&job.queue),
        Column::Cpus => job.cpus.to_string(),
        Column::Memory => memory(job.memory),
        Column::Gpus => job.gpus.to_string(),
        Column::Time => duration(span_of_seconds(job.time)),
        Column::State => state_in_queue(job),
        Column::Start => {
            let known = row.jobs().map(start).filter(|start| start.at.is_some());
            known.min_by_key(|start| start.at).unwrap_or_default().text(instants)
        }
        Column::Likely => {
            let likely = last(row.jobs().map(|job| Some(job.forecast?.median)));
            likely.map_or_else(none, |likely| instants.text(likely))
        }
        Column::End => {
            let known = last(row.jobs().map(|job| end(job).at)).is_some();
            let latest = row.jobs().map(end).max_by_key(|end| end.at).filter(|_| known);
            latest.unwrap_or_default().text(instants)
        }
        Column::Submitted => instants.text(job.submitted),
        Column::Wait => seconds(longest(wait)),
        Column::Ran => seconds(longest(ran)),
        Column::Array => job.array.map_or_else(none, |array| array.to_string()),
        Column::Runs => row.jobs().map(|job| job.runs).max().unwrap_or(0).to_string(),
    }
}

/// The value by which jobs are sorted. Jobs without one come last.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Number(i64),
    Text(String),
    None,
}

/// Returns the value of a column by which jobs are sorted.
pub(super) fn key(column: Column, now: Timestamp, job: &JobView) -> Key {
    let number = |number: u64| Key::Number(i64::try_from(number).unwrap_or(i64::MAX));
    let at = |at: Option<Timestamp>| at.map_or(Key::None, |at| Key::Number(at.as_microsecond()));
    let secs = |secs: Option<f64>| secs.map_or(Key::None, |secs| Key::Number(span_of_seconds(secs).ticks()));
    match column {
        Column::Job => Key::Number(job.number),
        Column::Name => Key::Text(job.name.clone()),
        Column::User => Key::Text(job.user.clone()),
        Column::Queue => Key::Text(job.queue.clone()),
        Column::State => Key::Text(word(job).to_owned()),
        Column::Cpus => number(job.cpus),
        Column::Memory => number(job.memory),
        Column::Gpus => number(job.gpus),
        Column::Time => secs(Some(job.time)),
        Column::Start => at(start(job).at),
        Column::Likely => at(job.forecast.map(|forecast| forecast.median)),
        Column::End => at(end(job).at),
        Column::Submitted => at(Some(job.submitted)),
        Column::Wait => secs(wait(job, now)),
        Column::Ran => secs(ran(job, now)),
        Column::Array => job.array.map_or(Key::None, Key::Number),
        Column::Runs => number(job.runs.into()),
    }
}

fn state_in_queue(job: &JobView) -> String {
    match job.overdue {
        None if is_time_sliced(job) => in_turns(job),
        _ => outcome(job),
    }
}

/// Returns the state of a job. For a time-sliced one, adds its number of slots and the number of
/// used slots.
fn in_turns(job: &JobView) -> String {
    let slots = job.slots.iter().map(|slots| format!(" {}/{}", slots.runs_in.len(), slots.used));
    [word(job).to_owned()].into_iter().chain(slots).collect()
}

/// Returns the window that is promised to a job now.
fn promised_window(job: &JobView) -> Option<&Window> {
    job.promise.as_ref()?.now.as_ref()
}

/// Returns whether the plan of a job is behind its promise.
fn is_at_risk(job: &JobView) -> bool {
    job.promise.as_ref().is_some_and(|promise| promise.at_risk.is_some())
}

/// An instant, and the word before it: none for an actual one.
#[derive(Clone, Copy, Default)]
struct Marked {
    word: &'static str,
    at: Option<Timestamp>,
}

impl Marked {
    const fn new(word: &'static str, at: Timestamp) -> Marked {
        Marked { word, at: Some(at) }
    }

    fn text(self, instants: Instants) -> String {
        self.at.map_or_else(|| "-".to_owned(), |at| format!("{}{}", self.word, instants.text(at)))
    }
}

/// Returns the start of a job: the actual one if known, else the latest one by the plan (`by`, or `risk` if that is behind the promise),
/// else the planned one.
fn start(job: &JobView) -> Marked {
    match &job.phase {
        Phase::Held | Phase::Queued | Phase::Opportunistic { .. } => {
            match (promised_window(job), job.planned) {
                (Some(window), _) if is_at_risk(job) => Marked::new("risk ", window.start),
                (Some(window), _) => Marked::new("by ", window.start),
                (None, Some(planned)) => Marked::new("plan ", planned),
                (None, None) => Marked::default(),
            }
        }
        phase => phase.started().map_or_else(Marked::default, |start| Marked::new("", start)),
    }
}

/// Returns the end of a job: the actual one if known, else the latest one (`by`). That of a time-sliced job is an estimate
/// (`about`).
fn end(job: &JobView) -> Marked {
    match &job.phase {
        // It may come to share its processors with other slots.
        Phase::Running(holding) if job.slots.is_some() => Marked::new("about ", holding.end),
        Phase::Running(holding) if job.overdue.is_some() => Marked::new("was ", holding.end),
        Phase::Running(holding) | Phase::Suspended(holding) => Marked::new("by ", holding.end),
        Phase::Adopted { end, .. } => end.map_or_else(Marked::default, |end| Marked::new("by ", end)),
        Phase::Held | Phase::Queued | Phase::Opportunistic { .. } => {
            promised_window(job).map_or_else(Marked::default, |window| Marked::new("by ", window.end))
        }
        phase => phase.ended().map_or_else(Marked::default, |end| Marked::new("", end)),
    }
}

/// Returns the wait of a job until its start, or until now, in seconds.
fn wait(job: &JobView, now: Timestamp) -> Option<f64> {
    let until = match &job.phase {
        Phase::Held | Phase::Queued | Phase::Opportunistic { .. } => now,
        phase => phase.started()?,
    };
    Some(until.duration_since(job.submitted).as_secs_f64().max(0.0))
}

/// Returns the time since the start of a job, until its end if it has ended, in seconds.
fn ran(job: &JobView, now: Timestamp) -> Option<f64> {
    let start = job.phase.started()?;
    Some(job.phase.ended().unwrap_or(now).duration_since(start).as_secs_f64().max(0.0))
}
