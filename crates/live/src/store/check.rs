//! Whether everything is as it was written.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;

use super::error::{Damage, Place, StoreError};
use super::mark::{Mark, MarkFile, Repeated, Tally};
use super::rows::{self, JOB, LINE, META, Stored, Value};
use super::schema;

/// What is known of a state that is whole.
pub(super) struct Checked {
    pub(super) mark: Mark,
    pub(super) meta: BTreeMap<String, Value>,
}

/// Reads the whole database, and says all that is wrong with it.
pub(super) fn whole(connection: &Connection, marks: &MarkFile) -> Result<Checked, StoreError> {
    let mut check = Check { connection, damages: Vec::new() };
    check.structure();
    let live = check.jobs(false);
    let ended = check.jobs(true);
    let journal = check.journal();
    let (meta, names) = check.meta();
    let found = Mark { live, ended, meta, ..journal };
    let repeated = marks.read().map_err(StoreError::io(MarkFile::NAME))?;
    match check.mark(&found, repeated) {
        Some(mark) if check.damages.is_empty() => Ok(Checked { mark, meta: names }),
        _ => Err(StoreError::Damaged(check.damages)),
    }
}

/// Whether the state is of a format that we know. That is asked first: what the rows of a later one are like, nobody knows here.
pub(super) fn format(connection: &Connection, folder: &Path) -> Result<(), StoreError> {
    let sql = format!("SELECT {META} FROM meta WHERE key = ?");
    let read = connection.query_row(&sql, [schema::FORMAT_KEY], |row| Ok(rows::meta(row)));
    let found = read.ok().and_then(Result::ok).and_then(|stored| stored.what.1.text.parse().ok());
    match found {
        Some(found) if found > schema::FORMAT => {
            let folder = folder.display().to_string();
            Err(StoreError::TooNew { folder, found, known: schema::FORMAT })
        }
        // A format that cannot be read is damage, and found with the rest.
        _ => Ok(()),
    }
}

struct Check<'c> {
    connection: &'c Connection,
    damages: Vec<Damage>,
}

impl Check<'_> {
    fn found(&mut self, place: Place, what: impl Into<String>) {
        self.damages.push(Damage::new(place, what));
    }

    /// The database's own structures.
    fn structure(&mut self) {
        let messages = self.connection.prepare("PRAGMA quick_check").and_then(|mut statement| {
            statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()
        });
        match messages {
            Ok(messages) => {
                for message in messages.into_iter().filter(|message| message != "ok") {
                    self.found(Place::Structure, message.replace('\n', " "));
                }
            }
            Err(error) => self.found(Place::Structure, error.to_string()),
        }
    }

    fn jobs(&mut self, ended: bool) -> Tally {
        let mut tally = Tally::default();
        let table = rows::table(ended);
        self.each(
            table,
            JOB,
            |row| rows::job(row, ended),
            |stored| {
                tally.add(stored.sum);
                None
            },
        );
        tally
    }

    /// What a mark says of the journal.
    fn journal(&mut self) -> Mark {
        let mut end = Mark::default();
        self.each(
            "journal",
            LINE,
            |row| rows::line(row),
            |stored| {
                let last = end;
                (end.line, end.chain, end.lines) = (stored.what.line.number, stored.sum, last.lines + 1);
                (stored.what.before != last.chain).then(|| {
                    Damage::new(Place::Line(end.line), format!("it does not follow on line {}", last.line))
                })
            },
        );
        end
    }

    fn meta(&mut self) -> (Tally, BTreeMap<String, Value>) {
        let (mut tally, mut names) = (Tally::default(), BTreeMap::new());
        self.each(
            "meta",
            META,
            |row| rows::meta(row),
            |stored| {
                tally.add(stored.sum);
                let (key, value) = stored.what;
                names.insert(key, value);
                None
            },
        );
        (tally, names)
    }

    /// Reads a table by number, and says what is wrong with its rows.
    fn each<T>(
        &mut self,
        table: &'static str,
        columns: &str,
        read: impl Fn(&rusqlite::Row<'_>) -> Result<Stored<T>, Damage>,
        mut visit: impl FnMut(Stored<T>) -> Option<Damage>,
    ) {
        let sql = format!("SELECT {columns} FROM {table} ORDER BY number");
        let damages = &mut self.damages;
        let mut all = || {
            let mut statement = self.connection.prepare(&sql)?;
            let mut found = statement.query([])?;
            while let Some(row) = found.next()? {
                match read(row) {
                    Ok(stored) => damages.extend(visit(stored)),
                    Err(damage) => damages.push(damage),
                }
            }
            Ok::<(), rusqlite::Error>(())
        };
        if let Err(error) = all() {
            self.found(Place::Table(table), error.to_string());
        }
    }

    /// The mark, if it is whole; what is found is held to it, and it to what is repeated.
    fn mark(&mut self, found: &Mark, repeated: Option<Repeated>) -> Option<Mark> {
        let Some(mark) = schema::read_mark(self.connection) else {
            self.found(Place::Mark, "its checksum does not fit what it says");
            return None;
        };
        self.tables(&mark, found);
        match repeated {
            None => self.found(Place::Mark, "the file beside the database cannot be read"),
            Some(repeated) if repeated.commit > mark.commit => {
                let lines = format!("they are lost; the journal went up to line {}", repeated.line);
                self.found(Place::Commits(mark.commit + 1, repeated.commit), lines);
            }
            Some(repeated) if repeated.commit == mark.commit && repeated.sum != mark.sum() => {
                self.found(Place::Mark, "the file beside the database is of another one");
            }
            Some(_) => {}
        }
        Some(mark)
    }

    /// Whether each table has all its rows, as the mark says. Where a row is damaged that has been said.
    fn tables(&mut self, mark: &Mark, found: &Mark) {
        if !self.damages.is_empty() {
            return;
        }
        let lacking = "a row is missing, or stands as it once was";
        for (name, is, was) in [
            ("live", found.live, mark.live),
            ("ended", found.ended, mark.ended),
            ("meta", found.meta, mark.meta),
        ] {
            if is != was {
                self.found(Place::Table(name), lacking);
            }
        }
        if (found.line, found.chain, found.lines) != (mark.line, mark.chain, mark.lines) {
            self.found(Place::Line(found.line + 1), format!("it is lost, and all up to line {}", mark.line));
        }
    }
}
