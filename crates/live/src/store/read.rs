//! What is there, each row checked as it is read.

use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use super::error::{Damage, StoreError};
use super::rows::{self, EndedFilter, JOB, LINE, Line, Row};
use super::schema;

/// A state that is only read, whether a daemon has it or not.
///
/// What it shows is one instant, from its first reading on.
pub struct History(Connection);

impl History {
    /// Opens the state in `folder`, and changes nothing.
    ///
    /// # Errors
    /// If there is none, it cannot be read, or its head is damaged. Other damage is found when what it touches is read.
    pub fn open(folder: &Path) -> Result<History, StoreError> {
        let home = folder.join("store");
        std::fs::metadata(&home).map_err(StoreError::io(&home))?;
        let connection = schema::connect_to_read(&home)?;
        connection.execute_batch("BEGIN")?;
        Ok(History(connection))
    }

    /// Every job, those that have ended first, by number.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if a row is not as it was written; if the database cannot be read.
    pub fn jobs(&self, visit: &mut dyn FnMut(Row) -> ControlFlow<()>) -> Result<(), StoreError> {
        for sql in ["ended", "live"].map(|table| format!("SELECT {JOB} FROM {table} ORDER BY number")) {
            let ended = sql.contains("ended");
            let flow = each(&self.0, &sql, [], |row| rows::job(row, ended), |stored| visit(stored.what))?;
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The journal's lines from number `from` on, in order, as long as `visit` goes on.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] at the first line that is not as it was written; if the database cannot be read.
    pub fn journal(
        &self,
        from: i64,
        visit: &mut dyn FnMut(Line) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        journal(&self.0, from, visit)
    }
}

pub(super) fn live_jobs(connection: &Connection) -> Result<Vec<Row>, StoreError> {
    let sql = format!("SELECT {JOB} FROM live ORDER BY number");
    collect(connection, &sql, [], false)
}

pub(super) fn ended_jobs(connection: &Connection, filter: &EndedFilter) -> Result<Vec<Row>, StoreError> {
    let sql = format!(
        "SELECT {JOB} FROM ended
         WHERE (?1 IS NULL OR uid = ?1) AND (?2 IS NULL OR queue = ?2) AND (?3 IS NULL OR number = ?3 OR array = ?3)
         ORDER BY number DESC LIMIT ?4"
    );
    // A limit below 0 is none.
    let limit = filter.limit.map_or(-1, i64::from);
    let values = params![filter.uid, filter.queue, filter.array, limit];
    let mut found = collect(connection, &sql, values, true)?;
    found.reverse();
    Ok(found)
}

pub(super) fn ended_from(connection: &Connection, from: i64, most: u32) -> Result<Vec<Row>, StoreError> {
    let sql = format!("SELECT {JOB} FROM ended WHERE number >= ? ORDER BY number LIMIT ?");
    collect(connection, &sql, params![from, most], true)
}

pub(super) fn highest_job(connection: &Connection) -> Result<i64, StoreError> {
    let sql =
        "SELECT coalesce(max(number), 0) FROM (SELECT number FROM live UNION ALL SELECT number FROM ended)";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

pub(super) fn job(connection: &Connection, number: i64) -> Result<Option<Row>, StoreError> {
    for ended in [false, true] {
        let sql = format!("SELECT {JOB} FROM {} WHERE number = ?", rows::table(ended));
        let mut statement = connection.prepare_cached(&sql)?;
        let found = statement.query_row([number], |row| Ok(rows::job(row, ended))).optional()?;
        if let Some(found) = found {
            return found.map(|stored| Some(stored.what)).map_err(damaged);
        }
    }
    Ok(None)
}

pub(super) fn journal(
    connection: &Connection,
    from: i64,
    visit: &mut dyn FnMut(Line) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let sql = format!("SELECT {LINE} FROM journal WHERE number >= ? ORDER BY number");
    each(connection, &sql, [from], |row| rows::line(row), |stored| visit(stored.what.line)).map(|_| ())
}

fn collect(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    ended: bool,
) -> Result<Vec<Row>, StoreError> {
    let mut found = Vec::new();
    let take = |stored: rows::Stored<Row>| {
        found.push(stored.what);
        ControlFlow::Continue(())
    };
    each(connection, sql, values, |row| rows::job(row, ended), take).map(|_| ())?;
    Ok(found)
}

/// Reads rows one by one.
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
        if visit(read(row).map_err(damaged)?).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn damaged(damage: Damage) -> StoreError {
    StoreError::Damaged(vec![damage])
}
