//! The database of forecasts: what was said, and the waits that followed.
//!
//! It is apart from the state: no promise depends on it, and it may be removed while no daemon runs.

use std::path::Path;

use jiff::Timestamp;
use miserly_forecast::Given;
use rusqlite::types::Type;
use rusqlite::{Connection, Error, Result, Row, params};

/// The number of forecasts that are kept. The oldest ones go first.
const KEPT: i64 = 50_000;

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS forecast (job INTEGER PRIMARY KEY, made INTEGER NOT NULL, procs INTEGER NOT NULL,
        draws TEXT NOT NULL, requested INTEGER NOT NULL, bound_50 INTEGER NOT NULL, bound_80 INTEGER NOT NULL,
        bound_95 INTEGER NOT NULL, wait INTEGER) STRICT;
";

/// The forecasts of one state folder.
pub(crate) struct ForecastStore(Connection);

/// A forecast with the wait that followed, in seconds, if the job has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredForecast {
    pub(crate) made: Timestamp,
    pub(crate) given: Given,
    pub(crate) wait: Option<u64>,
}

impl ForecastStore {
    /// Opens the database, or creates it.
    pub(crate) fn open(path: &Path) -> Result<ForecastStore> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.execute_batch(TABLE)?;
        add_calibrated(&connection)?;
        Ok(ForecastStore(connection))
    }

    /// Returns all forecasts, in the order in which their outcomes became known; those without one are last.
    pub(crate) fn all(&mut self) -> Result<Vec<StoredForecast>> {
        let sql =
            "SELECT job, made, procs, draws, requested, bound_50, bound_80, bound_95, wait, calibrated FROM forecast
            ORDER BY wait IS NULL, made + 1000000 * wait, job";
        self.0.prepare(sql)?.query_map([], stored)?.collect()
    }

    /// Adds forecasts that were made at one instant.
    pub(crate) fn add(&mut self, made: Timestamp, forecasts: &[Given]) -> Result<()> {
        if forecasts.is_empty() {
            return Ok(());
        }
        let change = self.0.transaction()?;
        for given in forecasts {
            let draws: Vec<String> = given.draws.iter().map(u64::to_string).collect();
            let [bound_50, bound_80, bound_95] = given.bounds.map(integer);
            change
                .prepare_cached("INSERT OR IGNORE INTO forecast VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)")?
                .execute(params![
                    given.job,
                    made.as_microsecond(),
                    integer(given.procs),
                    draws.join(" "),
                    integer(given.requested),
                    bound_50,
                    bound_80,
                    bound_95,
                    given.calibrated
                ])?;
        }
        change.execute(
            "DELETE FROM forecast WHERE job <= (SELECT job FROM forecast ORDER BY job DESC LIMIT 1 OFFSET ?)",
            [KEPT],
        )?;
        change.commit()
    }

    /// Adds the wait that followed a forecast.
    pub(crate) fn settle(&mut self, job: i64, wait: u64) -> Result<()> {
        self.0
            .prepare_cached("UPDATE forecast SET wait = ? WHERE job = ?")?
            .execute(params![integer(wait), job])
            .map(drop)
    }

    /// Removes the forecast of a job that will not start.
    pub(crate) fn remove(&mut self, job: i64) -> Result<()> {
        self.0.prepare_cached("DELETE FROM forecast WHERE job = ?")?.execute([job]).map(drop)
    }
}

/// Adds the column of a later version. The bounds of earlier forecasts are not audited.
fn add_calibrated(connection: &Connection) -> Result<()> {
    let column = "SELECT 1 FROM pragma_table_info('forecast') WHERE name = 'calibrated'";
    if connection.prepare(column)?.exists([])? {
        return Ok(());
    }
    connection.execute_batch("ALTER TABLE forecast ADD COLUMN calibrated INTEGER NOT NULL DEFAULT 0")
}

fn stored(row: &Row<'_>) -> Result<StoredForecast> {
    let draws: String = row.get(3)?;
    let draws = draws.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>();
    let damaged = |error| Error::FromSqlConversionFailure(3, Type::Text, Box::new(error));
    let made = Timestamp::from_microsecond(row.get(1)?);
    Ok(StoredForecast {
        made: made.map_err(|error| Error::FromSqlConversionFailure(1, Type::Integer, Box::new(error)))?,
        given: Given {
            job: row.get(0)?,
            procs: natural(row, 2)?,
            draws: draws.map_err(damaged)?,
            requested: natural(row, 4)?,
            bounds: [natural(row, 5)?, natural(row, 6)?, natural(row, 7)?],
            calibrated: row.get(9)?,
        },
        wait: row.get::<_, Option<i64>>(8)?.and_then(|wait| u64::try_from(wait).ok()),
    })
}

fn natural(row: &Row<'_>, column: usize) -> Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| Error::IntegralValueOutOfRange(column, value))
}

fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(job: i64) -> Given {
        let calibrated = job % 2 == 0;
        Given { job, procs: 4, draws: vec![10, 60, 60], requested: 300, bounds: [60, 60, 290], calibrated }
    }

    #[test]
    fn what_was_said_is_there_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("forecasts.db");
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let mut store = ForecastStore::open(&path).unwrap();
        store.add(at(100), &[given(1), given(2), given(3)]).unwrap();
        store.add(at(50), &[given(4)]).unwrap();
        store.settle(1, 70).unwrap();
        store.settle(4, 5).unwrap();
        store.remove(2).unwrap();
        drop(store);
        let all = ForecastStore::open(&path).unwrap().all().unwrap();
        let stored = |job, made, wait| StoredForecast { made: at(made), given: given(job), wait };
        assert_eq!(all, [stored(4, 50, Some(5)), stored(1, 100, Some(70)), stored(3, 100, None)]);
    }

    #[test]
    fn what_an_earlier_version_said_is_not_calibrated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("forecasts.db");
        let earlier = Connection::open(&path).unwrap();
        earlier.execute_batch(TABLE).unwrap();
        let row = "INSERT INTO forecast VALUES (2, 100000000, 4, '10 60 60', 300, 60, 60, 290, 70)";
        earlier.execute_batch(row).unwrap();
        drop(earlier);
        for _ in 0..2 {
            let all = ForecastStore::open(&path).unwrap().all().unwrap();
            assert_eq!(all.len(), 1);
            assert_eq!(all[0].given, Given { calibrated: false, ..given(2) });
        }
    }

    #[test]
    fn a_file_that_is_no_database_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("forecasts.db");
        std::fs::write(&path, "no database, but some text that is longer than its head").unwrap();
        assert!(ForecastStore::open(&path).is_err());
    }
}
