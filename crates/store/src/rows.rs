//! The rows of the store: jobs, journal lines, named values; and their checksums.

use miserly_engine::JobRow;
use rusqlite::Row as Columns;

use super::checksum::Checksum;
use super::error::{Damage, DamageSite};

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 1.
    pub number: i64,
    /// Its content, as JSON.
    pub body: String,
}

/// Returns the table that holds such jobs. A job that ends moves to the other table.
pub(super) const fn table(ended: bool) -> &'static str {
    if ended { "ended" } else { "live" }
}

/// A row and its checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored<T> {
    pub(super) row: T,
    pub(super) sum: u32,
}

/// A named value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) key: String,
    pub(super) text: String,
}

/// Columns of `live` and `ended`.
pub(super) const JOB: &str = "number, uid, queue, array, body, sum";

/// Columns of `journal`.
pub(super) const LINE: &str = "number, body, sum";

/// Columns of `meta`.
pub(super) const META: &str = "key, value, sum";

/// Returns the checksum of a job.
pub(super) fn job_sum(row: &JobRow) -> u32 {
    let sum = Checksum::new(table(row.ended)).number(row.number).number(i64::from(row.uid));
    sum.text(&row.queue).optional(row.array).text(&row.body).finish()
}

/// Returns the checksum of a journal line.
pub(super) fn line_sum(line: &Line) -> u32 {
    Checksum::new("journal").number(line.number).text(&line.body).finish()
}

/// Returns the checksum of a named value.
pub(super) fn meta_sum(named: &Named) -> u32 {
    Checksum::new("meta").text(&named.key).text(&named.text).finish()
}

/// Reads a job of the live or the ended table.
///
/// # Errors
/// The damage, if a column has another type or the checksum differs.
pub(super) fn job(columns: &Columns<'_>, ended: bool) -> Result<Stored<JobRow>, Damage> {
    let read = || Ok(Stored { row: read_job(columns, ended)?, sum: columns.get(5)? });
    checked(read(), job_sum, || DamageSite::Job(columns.get(0).unwrap_or_default()))
}

fn read_job(columns: &Columns<'_>, ended: bool) -> rusqlite::Result<JobRow> {
    Ok(JobRow {
        number: columns.get(0)?,
        ended,
        uid: columns.get(1)?,
        queue: columns.get(2)?,
        array: columns.get(3)?,
        body: columns.get(4)?,
        problem: None,
    })
}

/// Reads a job, or what is known of one that cannot be read.
pub(super) fn job_or_problem(columns: &Columns<'_>, ended: bool) -> JobRow {
    job(columns, ended).map_or_else(
        |Damage { problem, .. }| JobRow {
            number: columns.get(0).unwrap_or_default(),
            ended,
            uid: columns.get(1).unwrap_or_default(),
            queue: columns.get(2).unwrap_or_default(),
            array: columns.get(3).unwrap_or_default(),
            body: String::new(),
            problem: Some(problem),
        },
        |stored| stored.row,
    )
}

/// Returns the checksum that the content of a job has, whatever is stored as its checksum.
pub(super) fn own_job_sum(columns: &Columns<'_>, ended: bool) -> Option<u32> {
    read_job(columns, ended).ok().map(|row| job_sum(&row))
}

/// Reads a journal line.
///
/// # Errors
/// As [`job`].
pub(super) fn line(columns: &Columns<'_>) -> Result<Stored<Line>, Damage> {
    let read = || {
        let row = Line { number: columns.get(0)?, body: columns.get(1)? };
        Ok(Stored { row, sum: columns.get(2)? })
    };
    let number = || columns.get(0).unwrap_or_default();
    checked(read(), line_sum, || DamageSite::Lines(number(), number()))
}

/// Reads a named value.
///
/// # Errors
/// As [`job`].
pub(super) fn meta(columns: &Columns<'_>) -> Result<Stored<Named>, Damage> {
    let read = || {
        let row = Named { key: columns.get(0)?, text: columns.get(1)? };
        Ok(Stored { row, sum: columns.get(2)? })
    };
    let key = || columns.get(0).unwrap_or_else(|_| "of an unreadable name".to_owned());
    checked(read(), meta_sum, || DamageSite::Meta(key()))
}

fn checked<T>(
    read: rusqlite::Result<Stored<T>>,
    sum: impl Fn(&T) -> u32,
    site: impl Fn() -> DamageSite,
) -> Result<Stored<T>, Damage> {
    match read {
        Ok(stored) if sum(&stored.row) == stored.sum => Ok(stored),
        Ok(_) => Err(Damage::new(site(), "its checksum differs")),
        Err(error) => Err(Damage::new(site(), format!("a column cannot be read: {error}"))),
    }
}
