//! The database of shadows: how far they are, and the starts on the machine and in the shadow.
//!
//! It is apart from the state: no promise depends on it, and it may be removed while no daemon runs.

use std::path::Path;

use jiff::Timestamp;
use miserly_core::Span;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Result, Row as SqlRow, params};

use super::follow::Progress;
use super::row::Row;

/// The number of jobs that are kept. The oldest ones go first.
const KEPT: i64 = 500_000;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS shadow (queue TEXT PRIMARY KEY, policy TEXT NOT NULL, since INTEGER NOT NULL, real_policy TEXT,
        until INTEGER, behind INTEGER NOT NULL DEFAULT 0, waits_for INTEGER, problem TEXT, state TEXT) STRICT;
    CREATE TABLE IF NOT EXISTS job (queue TEXT NOT NULL, number INTEGER NOT NULL, submitted INTEGER NOT NULL,
        uid INTEGER NOT NULL, procs INTEGER NOT NULL, start INTEGER, shadow_start INTEGER, runtime INTEGER,
        refused INTEGER NOT NULL, PRIMARY KEY (queue, number, submitted)) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS job_submitted ON job (submitted);
";

/// The shadows of one state folder.
pub(super) struct ShadowStore(Connection);

/// A shadow, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredShadow {
    pub(super) queue: String,
    pub(super) policy: String,
    pub(super) since: Timestamp,
    pub(super) progress: Progress,
}

impl ShadowStore {
    /// Opens the database, or creates it.
    pub(super) fn open(path: &Path) -> Result<ShadowStore> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.execute_batch(TABLES)?;
        Ok(ShadowStore(connection))
    }

    /// Opens the database to read it; `None` if there is none, or one without content.
    pub(super) fn open_to_read(path: &Path) -> Result<Option<ShadowStore>> {
        if !path.exists() {
            return Ok(None);
        }
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let sql = "SELECT count(*) FROM sqlite_schema WHERE name IN ('shadow', 'job')";
        let tables: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        Ok((tables == 2).then_some(ShadowStore(connection)))
    }

    /// Returns the stored state of the shadow of a queue under a policy. That of another policy is removed with its jobs.
    pub(super) fn begin(&mut self, queue: &str, policy: &str, now: Timestamp) -> Result<Option<String>> {
        let change = self.0.transaction()?;
        let found: Option<(String, Option<String>)> = change
            .query_row("SELECT policy, state FROM shadow WHERE queue = ?", [queue], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        let state = match found {
            Some((before, state)) if before == policy => state,
            _ => {
                change.execute("DELETE FROM job WHERE queue = ?", [queue])?;
                change.execute(
                    "INSERT OR REPLACE INTO shadow (queue, policy, since) VALUES (?, ?, ?)",
                    params![queue, policy, now.as_microsecond()],
                )?;
                None
            }
        };
        change.commit()?;
        Ok(state)
    }

    /// Removes the jobs of a queue that have not started on both sides.
    pub(super) fn remove_open(&mut self, queue: &str) -> Result<()> {
        let sql = "DELETE FROM job WHERE queue = ? AND (start IS NULL OR shadow_start IS NULL)";
        self.0.execute(sql, [queue]).map(drop)
    }

    /// Stores what changed. The state is stored if there is one.
    pub(super) fn put(
        &mut self,
        queue: &str,
        progress: &Progress,
        rows: &[Row],
        state: Option<&str>,
    ) -> Result<()> {
        let Progress { real_policy, until, behind, waits_for, problem } = progress;
        let until = until.map(Timestamp::as_microsecond);
        let change = self.0.transaction()?;
        change
            .prepare_cached(
                "UPDATE shadow SET real_policy = ifnull(?2, real_policy), until = ifnull(?3, until), behind = ?4,
                 waits_for = ?5, problem = ?6, state = ifnull(?7, state) WHERE queue = ?1",
            )?
            .execute(params![queue, real_policy, until, integer(*behind), waits_for, problem, state])?;
        for row in rows {
            let submitted = row.submitted.as_microsecond();
            let key = params![queue, row.number, submitted];
            if row.gone {
                let sql = "DELETE FROM job WHERE queue = ? AND number = ? AND submitted = ?";
                change.prepare_cached(sql)?.execute(key)?;
                continue;
            }
            change.prepare_cached("INSERT OR REPLACE INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")?.execute(
                params![
                    queue,
                    row.number,
                    submitted,
                    row.uid,
                    integer(row.procs),
                    row.start.map(Timestamp::as_microsecond),
                    row.shadow_start.map(Timestamp::as_microsecond),
                    row.runtime.map(Span::ticks),
                    row.refused
                ],
            )?;
        }
        if !rows.is_empty() {
            change
                .prepare_cached(
                    "DELETE FROM job WHERE submitted <= (SELECT submitted FROM job ORDER BY submitted DESC LIMIT 1 OFFSET ?)",
                )?
                .execute([KEPT])?;
        }
        change.commit()
    }

    /// Returns all shadows, by queue.
    pub(super) fn shadows(&self) -> Result<Vec<StoredShadow>> {
        let sql = "SELECT queue, policy, since, real_policy, until, behind, waits_for, problem FROM shadow ORDER BY queue";
        let stored = |row: &SqlRow<'_>| {
            Ok(StoredShadow {
                queue: row.get(0)?,
                policy: row.get(1)?,
                since: instant(row, 2)?.unwrap_or_default(),
                progress: Progress {
                    real_policy: row.get(3)?,
                    until: instant(row, 4)?,
                    behind: u64::try_from(row.get::<_, i64>(5)?).unwrap_or(0),
                    waits_for: row.get(6)?,
                    problem: row.get(7)?,
                },
            })
        };
        self.0.prepare(sql)?.query_map([], stored)?.collect()
    }

    /// Visits the jobs of a queue that were submitted from an instant on, in the order of their submissions.
    pub(super) fn jobs(&self, queue: &str, since: Timestamp, visit: &mut dyn FnMut(&Row)) -> Result<()> {
        let sql = "SELECT number, submitted, uid, procs, start, shadow_start, runtime, refused FROM job
            WHERE queue = ? AND submitted >= ? ORDER BY submitted, number";
        let mut statement = self.0.prepare_cached(sql)?;
        let mut rows = statement.query(params![queue, since.as_microsecond()])?;
        while let Some(row) = rows.next()? {
            visit(&Row::stored(
                (row.get(0)?, instant(row, 1)?.unwrap_or_default(), row.get(2)?),
                u64::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
                (instant(row, 4)?, instant(row, 5)?, row.get::<_, Option<i64>>(6)?.map(Span::from_ticks)),
                row.get(7)?,
            ));
        }
        Ok(())
    }
}

/// Returns the wall time in a column with microseconds since 1970.
fn instant(row: &SqlRow<'_>, column: usize) -> Result<Option<Timestamp>> {
    let micros: Option<i64> = row.get(column)?;
    Ok(micros.and_then(|micros| Timestamp::from_microsecond(micros).ok()))
}

fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
