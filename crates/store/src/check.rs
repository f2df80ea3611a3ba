//! Checks of a database against its checksums: of what a start needs, and of all of it.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;

use super::error::{Damage, DamageSite, StoreError};
use super::mark::{CommitMark, MarkFile, RepeatedMark, TableSum};
use super::rows::{self, JOB, LINE, META, Named, Stored};
use super::schema;
use super::segments::{Segment, sealed};

/// The result of a check.
#[derive(Default)]
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
    let (live, ended) = (check.live(), check.ended());
    let (meta, values) = check.meta();
    let journal = check.journal(&values);
    let mark = schema::read_mark(connection);
    check.sums(mark, &[("live", live), ("ended", ended), ("journal", journal), ("meta", meta)]);
    Checked { mark, meta: values, damages: check.damages }
}

/// As [`database`], and compares its mark with the file that repeats it. A database without damage
/// that is older than the file has lost commits: `SQLite` drops all log frames after a damaged one.
pub(super) fn whole(connection: &Connection, marks: &MarkFile) -> Result<Checked, StoreError> {
    let repeated = marks.read().map_err(StoreError::io(MarkFile::NAME))?;
    let mut checked = database(connection);
    checked.damages.extend(checked.mark.and_then(|mark| lost_commits(&mark, repeated)));
    Ok(checked)
}

/// Checks what a daemon needs to start: the mark, the file that repeats it, the live jobs and the
/// named values. The time does not depend on the history.
///
/// A live job whose row alone is damaged is no damage here: it is read with its problem.
pub(super) fn opening(connection: &Connection, marks: &MarkFile) -> Result<Checked, StoreError> {
    let repeated = marks.read().map_err(StoreError::io(MarkFile::NAME))?;
    let mut check = Checker { connection, damages: Vec::new() };
    let mark = schema::read_mark(connection);
    let mut live = check.live();
    if let Some(mark) = mark
        && check.damages_are_rows_of(&mut live, mark.live)
    {
        check.damages.iter().for_each(|damage| tracing::error!("{damage}; the row is left as it is"));
        check.damages.clear();
    }
    let (meta, values) = check.meta();
    check.sums(mark, &[("live", live), ("meta", meta)]);
    check.last_line(mark.map_or(0, |mark| mark.line));
    check.damages.extend(mark.and_then(|mark| lost_commits(&mark, repeated)));
    Ok(Checked { mark, meta: values, damages: check.damages })
}

/// Checks the structure, the ended jobs and the journal of a database that a daemon may write to.
/// Each table is read in a transaction of its own, so that the log is held no longer than for one.
pub(super) fn history(connection: &Connection) -> Vec<Damage> {
    let mut check = Checker { connection, damages: Vec::new() };
    check.structure();
    for table in ["ended", "journal"] {
        // The transaction ends with this.
        let Ok(_one) = connection.unchecked_transaction() else { continue };
        let mark = schema::read_mark(connection);
        let found = if table == "ended" {
            check.ended()
        } else {
            let (_, values) = check.meta();
            check.journal(&values)
        };
        check.sums(mark, &[(table, found)]);
    }
    check.damages
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

    fn live(&mut self) -> TableSum {
        self.table("live", JOB, |row| rows::job(row, false), |_| ())
    }

    fn ended(&mut self) -> TableSum {
        self.table("ended", JOB, |row| rows::job(row, true), |_| ())
    }

    /// Returns the sum of the named values, and the values.
    fn meta(&mut self) -> (TableSum, BTreeMap<String, Stored<Named>>) {
        let mut values = BTreeMap::new();
        let mut insert = |named: Stored<Named>| drop(values.insert(named.row.key.clone(), named));
        (self.table("meta", META, rows::meta, &mut insert), values)
    }

    /// Reads a table and returns the sum of its undamaged rows.
    fn table<T>(
        &mut self,
        table: &'static str,
        columns: &str,
        read: impl Fn(&rusqlite::Row<'_>) -> Result<Stored<T>, Damage>,
        visit: impl FnMut(Stored<T>),
    ) -> TableSum {
        self.rows(&format!("SELECT {columns} FROM {table}"), read, visit)
    }

    /// Returns the sum of the journal's undamaged lines. Compares each sealed segment with its record.
    fn journal(&mut self, values: &BTreeMap<String, Stored<Named>>) -> TableSum {
        let (mut whole, mut next) = (TableSum::default(), i64::MIN);
        for segment in &sealed(values).collect::<Vec<_>>() {
            // Lines before it that belong to no segment differ from the mark.
            whole = whole.plus(self.lines(next, segment.first - 1)).plus(self.segment(segment));
            next = segment.last + 1;
        }
        whole.plus(self.lines(next, i64::MAX))
    }

    /// Returns the sum of the undamaged lines of a sealed segment.
    fn segment(&mut self, segment: &Segment) -> TableSum {
        let found = self.lines(segment.first, segment.last);
        if found != segment.sum {
            let problem = differing("line", found, segment.sum);
            self.add(DamageSite::Segment(segment.first, segment.last), problem);
        }
        found
    }

    /// Returns the sum of the undamaged lines with these numbers.
    fn lines(&mut self, first: i64, last: i64) -> TableSum {
        if last < first {
            return TableSum::default();
        }
        let sql = format!("SELECT {LINE} FROM journal WHERE number BETWEEN {first} AND {last}");
        self.rows(&sql, rows::line, |_| ())
    }

    /// Reads rows and returns the sum of the undamaged ones.
    fn rows<T>(
        &mut self,
        sql: &str,
        read: impl Fn(&rusqlite::Row<'_>) -> Result<Stored<T>, Damage>,
        mut visit: impl FnMut(Stored<T>),
    ) -> TableSum {
        let (mut sum, damages) = (TableSum::default(), &mut self.damages);
        let mut rows = || {
            let mut statement = self.connection.prepare(sql)?;
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

    /// Checks the end of the journal, where the next lines follow.
    fn last_line(&mut self, expected: i64) {
        let sql = "SELECT coalesce(max(number), 0) FROM journal";
        match self.connection.query_row(sql, [], |row| row.get::<_, i64>(0)) {
            Ok(last) if last > expected => {
                self.add(DamageSite::Lines(expected + 1, last), "they are newer than the last commit");
            }
            Ok(_) => {}
            Err(error) => self.add(DamageSite::Structure, error.to_string()),
        }
    }

    /// Returns whether nothing is damaged but single live jobs, and no other row is missing or
    /// outdated. Adds them to the sum then.
    fn damages_are_rows_of(&self, found: &mut TableSum, expected: TableSum) -> bool {
        let mut all = *found;
        for damage in &self.damages {
            let DamageSite::Job(number) = damage.site else { return false };
            // A checksum that cannot be read adds nothing.
            let sql = "SELECT sum FROM live WHERE number = ?";
            all.add(self.connection.query_row(sql, [number], |row| row.get(0)).unwrap_or_default());
        }
        // The damage of a single row may be in its checksum.
        let is_expected = all == expected
            || (self.damages.len() == 1 && all.count == expected.count && self.fits(found, expected));
        if is_expected {
            *found = expected;
        }
        is_expected
    }

    /// Returns whether the content of the only damaged row has the checksum that is missing.
    fn fits(&self, found: &TableSum, expected: TableSum) -> bool {
        let Some(DamageSite::Job(number)) = self.damages.first().map(|damage| &damage.site) else {
            return false;
        };
        let sql = format!("SELECT {JOB} FROM live WHERE number = ?");
        let own = self.connection.query_row(&sql, [number], |row| Ok(rows::own_job_sum(row, false)));
        let mut with = *found;
        own.ok().flatten().is_some_and(|own| {
            with.add(own);
            with == expected
        })
    }

    /// Compares tables with the mark: a row that is missing or outdated changes the sum.
    fn sums(&mut self, mark: Option<CommitMark>, found: &[(&'static str, TableSum)]) {
        let Some(mark) = mark else {
            return self.add(DamageSite::Mark, "its checksum differs");
        };
        for (table, found) in found {
            let expected = mark.table(table);
            if *found != expected {
                self.add(DamageSite::Table(table), differing("row", *found, expected));
            }
        }
    }
}

/// Returns the problem of a sum of rows that differs from the expected one.
fn differing(row: &str, found: TableSum, expected: TableSum) -> String {
    if found.count == expected.count {
        format!("a {row} is outdated")
    } else {
        format!("{} of {} {row}s are readable", found.count, expected.count)
    }
}
