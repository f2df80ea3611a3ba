//! What is stored: jobs, journal lines, named values; and how each is told from a damaged one.

use rusqlite::types::ValueRef;

use super::error::{Damage, Place};
use super::sums::Sum;

/// A job as it is stored: what it is found by, and the rest, which only its owner understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The job's number.
    pub number: i64,
    /// It has ended, and is history.
    pub ended: bool,
    /// Whose it is.
    pub uid: u32,
    /// Its queue.
    pub queue: String,
    /// The number of the first job of its array.
    pub array: Option<i64>,
    /// All else, as JSON.
    pub body: String,
}

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number; the first is 1.
    pub number: i64,
    /// What it says, as JSON.
    pub body: String,
}

/// What is written at once: all of it, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Lines for the end of the journal, in order.
    pub lines: Vec<String>,
    /// Jobs, in place of what was known of them.
    pub rows: Vec<Row>,
    /// Named values, in place of what was there.
    pub meta: Vec<(String, String)>,
}

impl Batch {
    /// Nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.rows.is_empty() && self.meta.is_empty()
    }
}

/// Which of the jobs that have ended are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndedFilter {
    /// Only this user's.
    pub uid: Option<u32>,
    /// Only this queue's.
    pub queue: Option<String>,
    /// Only jobs of this array, or the job of that number.
    pub array: Option<i64>,
    /// At most so many: those with the highest numbers.
    pub limit: Option<u32>,
}

/// The name of the table that a job is in: a job that has ended changes tables.
pub(super) const fn table(ended: bool) -> &'static str {
    if ended { "ended" } else { "live" }
}

/// A row as it stands in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored<T> {
    pub(super) what: T,
    /// The commit that wrote it.
    pub(super) made: i64,
    pub(super) sum: u32,
}

/// A journal line, with the sum of the line before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chained {
    pub(super) line: Line,
    pub(super) before: u32,
}

/// A named value, without its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    /// The number of its row.
    pub(super) number: i64,
    pub(super) text: String,
    pub(super) sum: u32,
}

pub(super) fn job_sum(row: &Row, made: i64) -> u32 {
    let sum = Sum::of(table(row.ended)).number(row.number).number(made).number(i64::from(row.uid));
    sum.text(&row.queue).optional(row.array).text(&row.body).finish()
}

pub(super) fn line_sum(number: i64, made: i64, before: u32, body: &str) -> u32 {
    Sum::of("journal").number(number).number(made).number(i64::from(before)).text(body).finish()
}

pub(super) fn meta_sum(number: i64, made: i64, key: &str, value: &str) -> u32 {
    Sum::of("meta").number(number).number(made).text(key).text(value).finish()
}

/// The columns of a row, by position; the first is its number.
pub(super) trait Columns {
    fn get(&self, at: usize) -> Option<ValueRef<'_>>;

    fn number(&self, at: usize) -> Option<i64> {
        self.get(at)?.as_i64().ok()
    }

    fn sum(&self, at: usize) -> Option<u32> {
        u32::try_from(self.number(at)?).ok()
    }

    fn text(&self, at: usize) -> Option<String> {
        self.get(at)?.as_str().ok().map(str::to_owned)
    }
}

impl Columns for rusqlite::Row<'_> {
    fn get(&self, at: usize) -> Option<ValueRef<'_>> {
        self.get_ref(at).ok()
    }
}

/// Columns of `live` and `ended`.
pub(super) const JOB: &str = "number, made, uid, queue, array, body, sum";

/// Columns of `journal`.
pub(super) const LINE: &str = "number, made, before, body, sum";

/// Columns of `meta`.
pub(super) const META: &str = "number, made, key, value, sum";

/// A job out of its columns.
pub(super) fn job(columns: &impl Columns, ended: bool) -> Result<Stored<Row>, Damage> {
    let number = columns.number(0).unwrap_or_default();
    let read = || {
        let array = columns.get(4)?.as_i64_or_null().ok()?;
        let (uid, queue, body) =
            (u32::try_from(columns.number(2)?).ok()?, columns.text(3)?, columns.text(5)?);
        let what = Row { number, ended, uid, queue, array, body };
        Some(Stored { what, made: columns.number(1)?, sum: columns.sum(6)? })
    };
    checked(read(), |stored| job_sum(&stored.what, stored.made), || Place::Job(number))
}

/// A journal line out of its columns.
pub(super) fn line(columns: &impl Columns) -> Result<Stored<Chained>, Damage> {
    let number = columns.number(0).unwrap_or_default();
    let read = || {
        let line = Line { number, body: columns.text(3)? };
        let what = Chained { line, before: columns.sum(2)? };
        Some(Stored { what, made: columns.number(1)?, sum: columns.sum(4)? })
    };
    let sum =
        |stored: &Stored<Chained>| line_sum(number, stored.made, stored.what.before, &stored.what.line.body);
    checked(read(), sum, || Place::Line(number))
}

/// A named value out of its columns: its name, its text.
pub(super) fn meta(columns: &impl Columns) -> Result<Stored<(String, Value)>, Damage> {
    let number = columns.number(0).unwrap_or_default();
    let read = || {
        let sum = columns.sum(4)?;
        let value = Value { number, text: columns.text(3)?, sum };
        Some(Stored { what: (columns.text(2)?, value), made: columns.number(1)?, sum })
    };
    let sum =
        |stored: &Stored<(String, Value)>| meta_sum(number, stored.made, &stored.what.0, &stored.what.1.text);
    let place = || Place::Meta(columns.text(2).unwrap_or_else(|| format!("number {number}")));
    checked(read(), sum, place)
}

fn checked<T>(
    read: Option<Stored<T>>,
    sum: impl Fn(&Stored<T>) -> u32,
    place: impl Fn() -> Place,
) -> Result<Stored<T>, Damage> {
    let stored =
        read.ok_or_else(|| Damage::new(place(), "its columns are not of the kinds that they were"))?;
    if sum(&stored) == stored.sum {
        Ok(stored)
    } else {
        Err(Damage::new(place(), "its checksum does not fit what it says"))
    }
}
