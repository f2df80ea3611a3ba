//! Recovery: the readable rows of a damaged database, and the newest undamaged backup for the rest.
//!
//! The damaged files are renamed and never changed. The new database is complete on disk before it
//! replaces them. If this is interrupted, the next opening completes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use miserly_engine::{JobRow, jobs_of_promises};
use rusqlite::Connection;

use super::check::{self, Checked};
use super::commit::Writer;
use super::error::{Damage, DamageSite, StoreError};
use super::lock::StateLock;
use super::mark::{CommitMark, MarkFile, RepeatedMark, TableSum};
use super::rows::{self, JOB, LINE, META, Named, Stored};
use super::segments::Segment;
use super::{Store, backup, files, schema};

/// The result of a recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The folder of the damaged files; `None` if nothing was damaged and nothing was changed.
    pub aside: Option<PathBuf>,
    /// The number of jobs in the new state.
    pub jobs: u64,
    /// The number of journal lines in the new state.
    pub lines: u64,
    /// The backup that was used, if one was needed.
    pub backup: Option<UsedBackup>,
    /// Newer backups that are damaged.
    pub damaged_backups: Vec<PathBuf>,
    /// Live jobs with rows from the backup, though other rows are newer.
    pub outdated: Vec<i64>,
    /// Everything that is lost, or may be outdated.
    pub lost: Vec<Damage>,
}

/// A backup that a recovery used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedBackup {
    /// Its path.
    pub path: PathBuf,
    /// The time when it was taken.
    pub taken: Option<Timestamp>,
    /// Its last journal line.
    pub last_line: i64,
}

impl Store {
    /// Makes a damaged state usable again, and returns the losses. Leaves an undamaged state as it
    /// is.
    ///
    /// `settle` may correct the recovered rows before they become the state.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if a daemon has the state. [`StoreError::TooNew`] if a later version
    /// wrote it. Other errors if the old files cannot be read, or the new ones cannot be written.
    /// The old files are unchanged then.
    pub fn recover(
        folder: &Path,
        settle: impl FnOnce(&mut Store, &Recovery) -> Result<(), StoreError>,
    ) -> Result<Recovery, StoreError> {
        let lock = StateLock::take(folder)?;
        let home = files::find(folder)?;
        match home.as_deref().map(|home| undamaged(folder, home)) {
            Some(Ok(recovery)) => return Ok(recovery),
            Some(Err(StoreError::Damaged(_))) => {}
            Some(Err(error)) => return Err(error),
            None if backup::list(folder)?.is_empty() => return Ok(Recovery::default()),
            None => {}
        }
        let mut recovery = Recovery::default();
        let sources = Sources::find(folder, &mut recovery)?;
        replace(folder, sources, lock, &mut recovery, settle)?;
        Ok(recovery)
    }
}

impl Store {
    /// Replaces the state in `folder` by the backup in the file `backup`, and returns the losses. The
    /// present files are kept under another name.
    ///
    /// `settle` may correct the restored rows before they become the state.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the backup is damaged, [`StoreError::TooNew`] if a later version
    /// wrote it, [`StoreError::Locked`] if a daemon has the state. Other errors if the backup cannot be
    /// read or the new files cannot be written. The present files are unchanged then.
    pub fn restore(
        folder: &Path,
        backup: &Path,
        settle: impl FnOnce(&mut Store, &Recovery) -> Result<(), StoreError>,
    ) -> Result<Recovery, StoreError> {
        let lock = StateLock::take(folder)?;
        files::find(folder)?;
        fs::metadata(backup).map_err(StoreError::io(backup))?;
        let (connection, mark) = backup::open(backup)?;
        let mut recovery = Recovery { backup: Some(used(backup, &mark)), ..Recovery::default() };
        let home = files::home(folder);
        let present = schema::connect_to_read(&home).ok().and_then(|present| schema::read_mark(&present));
        let last = Last::find(&home, present);
        let sources = Sources { present: None, backup: Some((connection, mark)), last };
        replace(folder, sources, lock, &mut recovery, settle)?;
        Ok(recovery)
    }
}

/// Writes the content of the sources to a new database, and puts it in the place of the present one.
fn replace(
    folder: &Path,
    sources: Sources,
    lock: StateLock,
    recovery: &mut Recovery,
    settle: impl FnOnce(&mut Store, &Recovery) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let made = files::make(folder, |connection| sources.merge(connection, recovery))?;
    let mut store = Store::over(schema::connect(&made)?, &made, lock, check::whole)?;
    settle(&mut store, recovery)?;
    files::checkpoint(&store.connection)?;
    recovery.aside = Some(files::install_recovered(folder, &made)?);
    Ok(())
}

/// The last commit of the present files.
#[derive(Clone, Copy, Default)]
struct Last {
    commit: i64,
    /// The highest number that a job ever had.
    highest: i64,
}

impl Last {
    /// Returns the last commit that the database in `home`, which has this mark, or the file beside it names.
    ///
    /// The file is older than the database after a power failure, and the mark of a damaged database is lost.
    fn find(home: &Path, mark: Option<CommitMark>) -> Option<Last> {
        let repeated = MarkFile::open(home).ok().and_then(|marks| marks.read().ok().flatten());
        let repeated = repeated.map(|RepeatedMark { commit, highest, .. }| Last { commit, highest });
        repeated.into_iter().chain(mark.map(Last::from)).reduce(Last::max)
    }

    fn max(self, other: Last) -> Last {
        Last { commit: self.commit.max(other.commit), highest: self.highest.max(other.highest) }
    }
}

impl From<CommitMark> for Last {
    fn from(CommitMark { commit, highest, .. }: CommitMark) -> Last {
        Last { commit, highest }
    }
}

/// Describes a backup that is used.
fn used(path: &Path, mark: &CommitMark) -> UsedBackup {
    let modified = fs::metadata(path).and_then(|file| file.modified()).ok();
    let taken = modified.and_then(|time| Timestamp::try_from(time).ok());
    UsedBackup { path: path.to_owned(), taken, last_line: mark.line }
}

/// Returns the recovery of an undamaged state.
fn undamaged(folder: &Path, home: &Path) -> Result<Recovery, StoreError> {
    let connection = schema::connect(home)?;
    check::format(&connection, folder)?;
    let (mark, _) = check::whole(&connection, &MarkFile::open(home)?)?.undamaged()?;
    Ok(Recovery {
        jobs: mark.live.count + mark.ended.count,
        lines: mark.journal.count,
        ..Recovery::default()
    })
}

/// The databases from which a state is recovered.
struct Sources {
    /// The damaged database, if it can be opened and is not older than the backup.
    present: Option<(Connection, Checked)>,
    /// The newest undamaged backup.
    backup: Option<(Connection, CommitMark)>,
    /// The last commit of the present files, if they name one.
    last: Option<Last>,
}

impl Sources {
    /// Opens the databases.
    fn find(folder: &Path, recovery: &mut Recovery) -> Result<Sources, StoreError> {
        let home = files::home(folder);
        let present = schema::connect(&home).ok().map(|connection| {
            let checked = check::database(&connection);
            (connection, checked)
        });
        let last = Last::find(&home, present.as_ref().and_then(|(_, checked)| checked.mark));
        let backup = newest_undamaged(folder, recovery)?;
        let is_newer = |present: &(Connection, Checked)| {
            backup.as_ref().is_none_or(|(_, mark)| is_newer(&present.0, present.1.mark, mark))
        };
        Ok(Sources { present: present.filter(is_newer), backup, last })
    }

    /// Fills the new database and lists the losses.
    fn merge(self, connection: &mut Connection, recovery: &mut Recovery) -> Result<CommitMark, StoreError> {
        let marks =
            [self.present.as_ref().and_then(|present| present.1.mark), self.backup.as_ref().map(|b| b.1)];
        let known: Vec<CommitMark> = marks.into_iter().flatten().collect();
        let last = self.last.into_iter().chain(known.iter().copied().map(Last::from));
        let Last { commit, highest } = last.fold(Last::default(), Last::max);
        let writer = Writer::begin(connection, CommitMark { commit, highest, ..CommitMark::default() })?;
        let mut merge = Merge::new(writer);
        if let Some((connection, _)) = &self.present {
            merge.jobs(connection)?;
            merge.lines(connection)?;
            merge.meta(connection)?;
        }
        let lacks = |table: &str| self.present.as_ref().is_none_or(|(_, checked)| !checked.is_whole(table));
        if let Some((connection, _)) = &self.backup {
            let newer = merge.jobs.clone();
            if lacks("live") || lacks("ended") {
                let restored = merge.jobs(connection)?;
                recovery.outdated.extend(restored.into_iter().filter(|_| !newer.is_empty()));
            }
            if lacks("journal") {
                merge.lines(connection)?;
            }
            if lacks("meta") {
                merge.meta(connection)?;
            }
        }
        if !["live", "ended", "journal", "meta"].into_iter().any(lacks) {
            recovery.backup = None;
        }
        let line = known.iter().map(|mark| mark.line).max().unwrap_or(0);
        recovery.lost = self.lost(&merge, commit);
        recovery.lost.extend(merge.reseal()?);
        let mark = merge.finish(line)?;
        (recovery.jobs, recovery.lines) = (mark.live.count + mark.ended.count, mark.journal.count);
        Ok(mark)
    }

    /// Lists the losses: commits after the sources, and rows that no source has.
    fn lost(&self, merge: &Merge<'_>, newest: i64) -> Vec<Damage> {
        let mut lost = vec![];
        let base = match (&self.present, &self.backup) {
            (Some((_, checked)), _) => checked.mark.map_or(newest, |mark| mark.commit),
            (None, Some((_, mark))) => mark.commit,
            (None, None) => 0,
        };
        if base < newest {
            let problem = "lost, except for the records of attempts";
            lost.push(Damage::new(DamageSite::Commits(base + 1, newest), problem));
        }
        if self.present.is_none() && self.last.is_none() {
            let problem = "all commits after the backup are lost, except for the records of attempts";
            lost.push(Damage::new(DamageSite::Structure, problem));
        }
        if let Some((_, checked)) = &self.present {
            let damages = checked.damages.iter().filter(|damage| !merge.has(damage, checked.mark));
            lost.extend(damages.cloned().map(with_jobs));
        }
        lost
    }
}

/// Adds to a damaged value what its loss means.
fn with_jobs(damage: Damage) -> Damage {
    let DamageSite::Meta(key) = &damage.site else { return damage };
    let Some((first, last)) = jobs_of_promises(key) else { return damage };
    let problem = format!(
        "{}; if the starts promised to waiting jobs among {first} to {last} moved earlier, their promises may be the later \
         ones of before",
        damage.problem
    );
    Damage { problem, ..damage }
}

/// Returns whether a damaged database is at least as new as a backup.
fn is_newer(connection: &Connection, mark: Option<CommitMark>, backup: &CommitMark) -> bool {
    let last_line = || connection.query_row("SELECT max(number) FROM journal", [], |row| row.get(0));
    match mark {
        Some(mark) => mark.commit >= backup.commit,
        None => last_line().is_ok_and(|last: Option<i64>| last.unwrap_or(0) >= backup.line),
    }
}

/// Opens the newest undamaged backup.
fn newest_undamaged(
    folder: &Path,
    recovery: &mut Recovery,
) -> Result<Option<(Connection, CommitMark)>, StoreError> {
    for number in backup::list(folder)?.into_iter().rev() {
        let path = backup::path(folder, number);
        match backup::open(&path) {
            Ok((connection, mark)) => {
                recovery.backup = Some(used(&path, &mark));
                return Ok(Some((connection, mark)));
            }
            Err(error) => {
                tracing::warn!("backup {} cannot be used: {error}", path.display());
                recovery.damaged_backups.push(path);
            }
        }
    }
    Ok(None)
}

/// The new database while it is filled. The first source of a row wins.
struct Merge<'c> {
    writer: Writer<'c>,
    jobs: BTreeSet<i64>,
    lines: BTreeSet<i64>,
    keys: BTreeSet<String>,
    segments: BTreeMap<i64, Segment>,
}

impl<'c> Merge<'c> {
    fn new(writer: Writer<'c>) -> Merge<'c> {
        let (jobs, lines, keys) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Merge { writer, jobs, lines, keys, segments: BTreeMap::new() }
    }

    /// Copies jobs, and returns the live ones that were missing.
    fn jobs(&mut self, from: &Connection) -> Result<Vec<i64>, StoreError> {
        let mut live = vec![];
        for ended in [false, true] {
            let (writer, known) = (&mut self.writer, &mut self.jobs);
            let visit = |stored: Stored<JobRow>| {
                if !known.insert(stored.row.number) {
                    return Ok(());
                }
                live.extend((!ended).then_some(stored.row.number));
                writer.job(&stored.row)
            };
            readable_rows(from, rows::table(ended), JOB, |row| rows::job(row, ended), visit)?;
        }
        Ok(live)
    }

    /// Copies journal lines.
    fn lines(&mut self, from: &Connection) -> Result<(), StoreError> {
        let (writer, known) = (&mut self.writer, &mut self.lines);
        let visit = |stored: Stored<rows::Line>| {
            if known.insert(stored.row.number) { writer.line(&stored.row) } else { Ok(()) }
        };
        readable_rows(from, "journal", LINE, rows::line, visit)
    }

    /// Copies named values.
    fn meta(&mut self, from: &Connection) -> Result<(), StoreError> {
        let (writer, known, segments) = (&mut self.writer, &mut self.keys, &mut self.segments);
        let visit = |stored: Stored<Named>| {
            if !known.insert(stored.row.key.clone()) {
                return Ok(());
            }
            match Segment::read(&stored.row) {
                Some(segment) => drop(segments.insert(segment.first, segment)),
                None => drop(writer.meta(None, stored.row)?),
            }
            Ok(())
        };
        readable_rows(from, "meta", META, rows::meta, visit)
    }

    /// Seals the segments again as they are now. Returns those that lost lines.
    fn reseal(&mut self) -> Result<Vec<Damage>, StoreError> {
        let segments: Vec<Segment> = std::mem::take(&mut self.segments).into_values().collect();
        let lost = |(segment, left): (Segment, TableSum)| {
            let problem = format!("{} of {} lines are left", left.count, segment.lines());
            Damage::new(DamageSite::Segment(segment.first, segment.last), problem)
        };
        Ok(self.writer.reseal(&segments)?.into_iter().map(lost).collect())
    }

    /// Returns whether nothing is lost by this damage.
    fn has(&self, damage: &Damage, mark: Option<CommitMark>) -> bool {
        let new = self.writer.mark;
        let same = |table: &str| {
            mark.is_some_and(|mark| match table {
                "live" => new.live == mark.live,
                "ended" => new.ended == mark.ended,
                "journal" => new.journal == mark.journal,
                _ => new.meta == mark.meta,
            })
        };
        match &damage.site {
            DamageSite::Job(number) => self.jobs.contains(number),
            DamageSite::Lines(first, _) => self.lines.contains(first),
            // Older promises are no substitute: what they moved to since is lost.
            DamageSite::Meta(key) => self.keys.contains(key) && jobs_of_promises(key).is_none(),
            DamageSite::Table(table) => same(table),
            DamageSite::Structure => ["live", "ended", "journal", "meta"].into_iter().all(same),
            // A segment is reported when it is sealed again.
            DamageSite::Mark | DamageSite::Segment(..) => true,
            DamageSite::Commits(..) => false,
        }
    }

    /// Commits. The next journal line will follow `line`.
    fn finish(mut self, line: i64) -> Result<CommitMark, StoreError> {
        let own = [(schema::FORMAT_KEY, schema::FORMAT.to_string()), schema::version()];
        for (key, text) in own.into_iter().filter(|(key, _)| !self.keys.contains(*key)) {
            self.writer.meta(None, Named { key: key.to_owned(), text })?;
        }
        self.writer.mark.line = self.writer.mark.line.max(line);
        self.writer.finish()
    }
}

/// Visits the undamaged rows of a table: from its start up to the first unreadable page, and from
/// its end down to it.
fn readable_rows<T>(
    connection: &Connection,
    table: &str,
    columns: &str,
    read: impl Fn(&rusqlite::Row<'_>) -> Result<Stored<T>, Damage>,
    mut visit: impl FnMut(Stored<T>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    for order in ["ASC", "DESC"] {
        let sql = format!("SELECT {columns} FROM {table} ORDER BY 1 {order}");
        let Ok(mut statement) = connection.prepare(&sql) else { return Ok(()) };
        let Ok(mut found) = statement.query([]) else { continue };
        loop {
            match found.next() {
                Ok(Some(row)) => read(row).map_or(Ok(()), &mut visit)?,
                Ok(None) => return Ok(()),
                Err(_) => break,
            }
        }
    }
    Ok(())
}
