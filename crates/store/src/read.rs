//! Queries. The checksum of each row is checked when it is read.

use std::ops::ControlFlow;
use std::path::Path;

use miserly_engine::{EndedFilter, JobRow};
use rusqlite::{Connection, OptionalExtension, params};

use super::error::{Damage, StoreError};
use super::rows::{self, JOB, LINE, Line};
use super::segments::{self, Segment};
use super::{Store, files, schema};

/// The maximum number of jobs in an array.
const ARRAY_MOST: u32 = 10_000;

/// A read-only view of a state, whether or not a daemon runs on it.
///
/// It shows one instant, from its first query on.
pub struct History(Connection);

impl History {
    /// Opens the state in `folder` without changing it.
    ///
    /// # Errors
    /// If the state is missing or unreadable, or its head is damaged. Other damage is found by the
    /// query that reads it.
    pub fn open(folder: &Path) -> Result<History, StoreError> {
        let home = files::home(folder);
        std::fs::metadata(&home).map_err(StoreError::io(&home))?;
        let connection = schema::connect_to_read(&home)?;
        connection.execute_batch("BEGIN")?;
        Ok(History(connection))
    }

    /// Visits every job by number, ended jobs first.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if a row is damaged; if the database cannot be read.
    pub fn jobs(&self, visit: &mut dyn FnMut(JobRow) -> ControlFlow<()>) -> Result<(), StoreError> {
        for ended in [true, false] {
            let sql = format!("SELECT {JOB} FROM {} ORDER BY number", rows::table(ended));
            let flow = each(&self.0, &sql, [], |row| rows::job(row, ended), |stored| visit(stored.row))?;
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the sealed segments of the journal, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if a record of a segment is damaged; if the database cannot be read.
    pub fn segments(&self) -> Result<Vec<Segment>, StoreError> {
        segments::stored(&self.0)
    }

    /// Visits the journal from line `from` on, in order, until `visit` breaks.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] at the first damaged line; if the database cannot be read.
    pub fn journal(
        &self,
        from: i64,
        visit: &mut dyn FnMut(Line) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        journal(&self.0, from, visit)
    }
}

impl Store {
    /// Returns the jobs that have not ended, by number. A damaged row has its
    /// [`problem`](JobRow::problem) in place of its content.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if a page is damaged; if the database cannot be read.
    pub fn live_jobs(&self) -> Result<Vec<JobRow>, StoreError> {
        let sql = format!("SELECT {JOB} FROM live ORDER BY number");
        collect(&self.connection, &sql, [], false)
    }

    /// Returns the ended jobs that pass the filter, by number.
    ///
    /// # Errors
    /// As [`Store::live_jobs`].
    pub fn ended_jobs(&self, filter: &EndedFilter) -> Result<Vec<JobRow>, StoreError> {
        ended_jobs(&self.connection, filter)
    }

    /// Returns the first `most` ended jobs from number `from` on, by number.
    ///
    /// # Errors
    /// As [`Store::live_jobs`].
    pub fn ended_from(&self, from: i64, most: u32) -> Result<Vec<JobRow>, StoreError> {
        ended_from(&self.connection, from, most)
    }

    /// Returns a job, live or ended.
    ///
    /// # Errors
    /// As [`Store::live_jobs`].
    pub fn job(&self, number: i64) -> Result<Option<JobRow>, StoreError> {
        job(&self.connection, number)
    }

    /// Visits the journal from line `from` on, in order, until `visit` breaks.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] at the first damaged line; if the database cannot be read.
    pub fn journal(
        &self,
        from: i64,
        visit: &mut dyn FnMut(Line) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        journal(&self.connection, from, visit)
    }
}

/// Returns the ended jobs that pass the filter, by number.
pub(super) fn ended_jobs(connection: &Connection, filter: &EndedFilter) -> Result<Vec<JobRow>, StoreError> {
    // The jobs of an array have consecutive numbers, and only the numbers have an index.
    let of_array = match filter.array {
        Some(_) => format!("number BETWEEN ?3 AND ?3 + {ARRAY_MOST} AND (number = ?3 OR array = ?3)"),
        None => "?3 IS NULL".to_owned(),
    };
    let sql = format!(
        "SELECT {JOB} FROM ended
         WHERE {of_array} AND (?1 IS NULL OR uid = ?1) AND (?2 IS NULL OR queue = ?2)
         ORDER BY number DESC LIMIT ?4"
    );
    // A negative limit is none.
    let limit = filter.limit.map_or(-1, i64::from);
    let values = params![filter.uid, filter.queue, filter.array, limit];
    let mut found = collect(connection, &sql, values, true)?;
    found.reverse();
    Ok(found)
}

/// Returns the first `most` ended jobs from number `from` on, by number.
pub(super) fn ended_from(connection: &Connection, from: i64, most: u32) -> Result<Vec<JobRow>, StoreError> {
    let sql = format!("SELECT {JOB} FROM ended WHERE number >= ? ORDER BY number LIMIT ?");
    collect(connection, &sql, params![from, most], true)
}

/// Returns a job, live or ended.
pub(super) fn job(connection: &Connection, number: i64) -> Result<Option<JobRow>, StoreError> {
    for ended in [false, true] {
        let sql = format!("SELECT {JOB} FROM {} WHERE number = ?", rows::table(ended));
        let mut statement = connection.prepare_cached(&sql)?;
        let found = statement.query_row([number], |row| Ok(rows::job_or_problem(row, ended))).optional()?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Visits the journal from line `from` on.
fn journal(
    connection: &Connection,
    from: i64,
    visit: &mut dyn FnMut(Line) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let sql = format!("SELECT {LINE} FROM journal WHERE number >= ? ORDER BY number");
    each(connection, &sql, [from], rows::line, |stored| visit(stored.row)).map(|_| ())
}

fn collect(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    ended: bool,
) -> Result<Vec<JobRow>, StoreError> {
    let mut found = Vec::new();
    let take = |row: JobRow| {
        found.push(row);
        ControlFlow::Continue(())
    };
    each(connection, sql, values, |row| Ok(rows::job_or_problem(row, ended)), take).map(|_| ())?;
    Ok(found)
}

/// Visits the rows of a query.
fn each<T>(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    read: impl Fn(&rusqlite::Row<'_>) -> Result<T, Damage>,
    mut visit: impl FnMut(T) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query(values)?;
    while let Some(row) = found.next()? {
        if visit(read(row)?).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
