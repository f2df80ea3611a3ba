//! The check of a whole database against its checksums.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;

use super::error::{Damage, DamageSite, StoreError};
use super::mark::{CommitMark, MarkFile, RepeatedMark, TableSum};
use super::rows::{self, JOB, LINE, META, Named, Stored};
use super::schema;

/// The result of a check.
pub(super) struct Checked {
    /// The mark, if it is readable.
    pub(super) mark: Option<CommitMark>,
    /// The named values that are readable.
    pub(super) meta: BTreeMap<String, Stored<Named>>,
    /// Everything that differs from the last commit.
    pub(super) damages: Vec<Damage>,
}

impl Checked {
    /// Returns whether a table has all its rows, as far as the mark shows it.
    pub(super) fn is_whole(&self, table: &str) -> bool {
        let of_table = |damage: &Damage| matches!(damage.site, DamageSite::Table(name) if name == table);
        self.mark.is_some() && !self.damages.iter().any(of_table)
    }

    /// Returns the mark and the named values of an undamaged database.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with all damages.
    pub(super) fn undamaged(self) -> Result<(CommitMark, BTreeMap<String, Stored<Named>>), StoreError> {
        match self.mark {
            Some(mark) if self.damages.is_empty() => Ok((mark, self.meta)),
            _ => Err(StoreError::Damaged(self.damages)),
        }
    }
}

/// Reads the whole database and lists everything that is damaged.
pub(super) fn database(connection: &Connection) -> Checked {
    let mut check = Checker { connection, damages: Vec::new() };
    check.structure();
    let live = check.table("live", JOB, |row| rows::job(row, false), |_| ());
    let ended = check.table("ended", JOB, |row| rows::job(row, true), |_| ());
    let journal = check.table("journal", LINE, rows::line, |_| ());
    let mut values = BTreeMap::new();
    let mut insert = |named: Stored<Named>| drop(values.insert(named.row.key.clone(), named));
    let meta = check.table("meta", META, rows::meta, &mut insert);
    let mark = schema::read_mark(connection);
    check.sums(mark, &[("live", live), ("ended", ended), ("journal", journal), ("meta", meta)]);
    Checked { mark, meta: values, damages: check.damages }
}

/// As [`database`], and compares its mark with the file that repeats it. A database without damage
/// that is older than the file has lost commits: `SQLite` drops all log frames after a damaged one.
pub(super) fn whole(connection: &Connection, marks: &MarkFile) -> Result<Checked, StoreError> {
    let mut checked = database(connection);
    let repeated = marks.read().map_err(StoreError::io(MarkFile::NAME))?;
    checked.damages.extend(checked.mark.and_then(|mark| lost_commits(&mark, repeated)));
    Ok(checked)
}

fn lost_commits(mark: &CommitMark, repeated: Option<RepeatedMark>) -> Option<Damage> {
    let Some(repeated) = repeated else {
        return Some(Damage::new(DamageSite::Mark, "the file beside the database cannot be read"));
    };
    if repeated.commit > mark.commit {
        let site = DamageSite::Commits(mark.commit + 1, repeated.commit);
        return Some(Damage::new(site, "they are missing in the database"));
    }
    let differs = repeated.commit == mark.commit && repeated.sum != mark.sum();
    differs.then(|| Damage::new(DamageSite::Mark, "the file beside the database belongs to another one"))
}

/// Rejects a state of a later format. This is the first check, because its tables may differ.
pub(super) fn format(connection: &Connection, folder: &Path) -> Result<(), StoreError> {
    let value = |key: &str| {
        let sql = format!("SELECT {META} FROM meta WHERE key = ?");
        let read = connection.query_row(&sql, [key], |row| Ok(rows::meta(row)));
        read.ok().and_then(Result::ok).map(|stored| stored.row.text)
    };
    match value(schema::FORMAT_KEY).and_then(|text| text.parse().ok()) {
        Some(found) if found > schema::FORMAT => {
            let folder = folder.display().to_string();
            let version = value(schema::version().0).unwrap_or_else(|| "unknown".to_owned());
            Err(StoreError::TooNew { folder, version, found, known: schema::FORMAT })
        }
        // An unreadable format is found with the other damage.
        _ => Ok(()),
    }
}

struct Checker<'c> {
    connection: &'c Connection,
    damages: Vec<Damage>,
}

impl Checker<'_> {
    fn add(&mut self, site: DamageSite, problem: impl Into<String>) {
        self.damages.push(Damage::new(site, problem));
    }

    /// Checks the structure with `SQLite`'s own means.
    fn structure(&mut self) {
        let messages = self.connection.prepare("PRAGMA quick_check").and_then(|mut statement| {
            statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()
        });
        match messages {
            Ok(messages) => {
                for message in messages.into_iter().filter(|message| message != "ok") {
                    self.add(DamageSite::Structure, message.replace('\n', " "));
                }
            }
            Err(error) => self.add(DamageSite::Structure, error.to_string()),
        }
    }

    /// Reads a table and returns the sum of its undamaged rows.
    fn table<T>(
        &mut self,
        table: &'static str,
        columns: &str,
        read: impl Fn(&rusqlite::Row<'_>) -> Result<Stored<T>, Damage>,
        mut visit: impl FnMut(Stored<T>),
    ) -> TableSum {
        let (mut sum, damages) = (TableSum::default(), &mut self.damages);
        let mut rows = || {
            let mut statement = self.connection.prepare(&format!("SELECT {columns} FROM {table}"))?;
            let mut found = statement.query([])?;
            while let Some(row) = found.next()? {
                match read(row) {
                    Ok(stored) => {
                        sum.add(stored.sum);
                        visit(stored);
                    }
                    Err(damage) => damages.push(damage),
                }
            }
            Ok::<(), rusqlite::Error>(())
        };
        if let Err(error) = rows() {
            self.add(DamageSite::Structure, error.to_string());
        }
        sum
    }

    /// Compares each table with the mark: a row that is missing or outdated changes the sum.
    fn sums(&mut self, mark: Option<CommitMark>, found: &[(&'static str, TableSum); 4]) {
        let Some(mark) = mark else {
            return self.add(DamageSite::Mark, "its checksum differs");
        };
        let expected = [mark.live, mark.ended, mark.journal, mark.meta];
        for ((table, found), expected) in found.iter().zip(expected) {
            if *found != expected {
                let problem = if found.count == expected.count {
                    "a row is outdated".to_owned()
                } else {
                    format!("{} of {} rows are readable", found.count, expected.count)
                };
                self.add(DamageSite::Table(table), problem);
            }
        }
    }
}
