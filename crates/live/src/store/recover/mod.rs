//! What is left of a damaged state, made a state again.
//!
//! Nothing is deleted: the damaged files get another name, as they are. The new ones are made beside them and are whole on disk before they take
//! their place; whatever interrupts this, the next opening goes on with it.

mod wal;

mod image;

mod cells;

mod search;

use std::cmp::Reverse;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use self::image::Image;
use self::search::{Found, Spot};
use self::wal::Frame;
use super::commit::Writer;
use super::error::{Damage, Place, StoreError};
use super::lock::Lock;
use super::mark::{Mark, MarkFile, Repeated};
use super::{Store, check, rows, schema};

/// What a recovery has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Where the damaged files are now; none if nothing was damaged, and nothing was done.
    pub aside: Option<PathBuf>,
    /// How many jobs were kept.
    pub jobs: usize,
    /// How many lines of the journal were kept.
    pub lines: usize,
    /// What was lost, or may not be the latest.
    pub lost: Vec<Damage>,
}

impl Store {
    /// Makes a damaged state one that opens: sets the damaged files aside, keeps every row that is whole, and names what is lost.
    /// A state that is not damaged is left as it is.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if a daemon has the state, [`StoreError::TooNew`] if a later version wrote it, and whatever keeps
    /// us from reading the old files and writing the new ones; the old ones are in their place then.
    pub fn recover(folder: &Path) -> Result<Recovery, StoreError> {
        let _lock = Lock::take(folder)?;
        let home = schema::find_or_make(folder)?;
        match whole(folder, &home) {
            Ok((jobs, lines)) => return Ok(Recovery { aside: None, jobs, lines, lost: Vec::new() }),
            Err(StoreError::Damaged(_)) => {}
            Err(error) => return Err(error),
        }
        let mut recovery = salvage(folder, &home)?;
        recovery.aside = schema::replace(folder)?;
        Ok(recovery)
    }
}

/// How many jobs and lines a state has, if it is not damaged.
fn whole(folder: &Path, home: &Path) -> Result<(usize, usize), StoreError> {
    let connection = schema::connect(home)?;
    check::format(&connection, folder)?;
    let mark = check::whole(&connection, &MarkFile::open(home)?)?.mark;
    let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    Ok((count(mark.live.count + mark.ended.count), count(mark.lines)))
}

/// Makes a new database of the rows that are whole.
fn salvage(folder: &Path, home: &Path) -> Result<Recovery, StoreError> {
    let path = home.join(schema::DATABASE);
    let io = |error| StoreError::io(&path)(error);
    let log = read_log(home)?;
    let file = open(&path)?;
    let pages = image::pages(&file).map_err(io)?.saturating_add(log_pages(&log));
    let repeated = MarkFile::open(home).ok().and_then(|marks| marks.read().ok().flatten());
    let as_numbered = Attempt::make(&file, &wal::frames(&log, None), repeated).map_err(io)?;
    let renumbered = Attempt::make(&file, &wal::frames(&log, Some(pages)), repeated).map_err(io)?;
    let better = renumbered.rank(repeated) > as_numbered.rank(repeated);
    let Attempt { image, mut found } = if better { renumbered } else { as_numbered };
    let doubtful = if found.is_whole(repeated) { Vec::new() } else { found.anywhere(&image) };
    let lost = lost(&found, doubtful, repeated);
    let top = repeated.map_or(0, |repeated| repeated.commit).max(found.last_commit());
    let made = schema::make(folder, |connection| write(connection, &image, &found, top))?;
    schema::rename(&made, &folder.join(schema::RECOVERED))?;
    Ok(Recovery { aside: None, jobs: found.jobs.len(), lines: found.lines.len(), lost })
}

/// The pages under one reading of the log, and what lies in them.
struct Attempt<'a> {
    image: Image<'a>,
    found: Found,
}

impl<'a> Attempt<'a> {
    fn make(file: &'a File, frames: &[Frame<'a>], repeated: Option<Repeated>) -> io::Result<Attempt<'a>> {
        let committed =
            frames.iter().rposition(|frame| frame.commit && frame.whole).map_or(0, |last| last + 1);
        let image = Image::new(file, &frames[..committed])?;
        let found = Found::by_pointers(&image);
        if repeated.is_none_or(|repeated| repeated.commit <= found.last_commit()) {
            return Ok(Attempt { image, found });
        }
        // The last commit was answered, so all its frames were written, and one of them is damaged.
        let image = Image::new(file, frames)?;
        Ok(Attempt { found: Found::by_pointers(&image), image })
    }

    /// The higher, the more is there: proved to be all, or by what was found.
    fn rank(&self, repeated: Option<Repeated>) -> (bool, usize, Reverse<usize>) {
        (self.found.is_whole(repeated), self.found.rows(), Reverse(self.found.damages.len()))
    }
}

/// What is lost, and what may not be the latest.
fn lost(found: &Found, doubtful: Vec<Place>, repeated: Option<Repeated>) -> Vec<Damage> {
    let mut lost = Vec::new();
    if let Some(last) = repeated.map(|repeated| repeated.commit).filter(|&last| last > found.last_commit()) {
        let what = "they are lost; jobs stand as the commit before left them";
        lost.push(Damage::new(Place::Commits(found.last_commit() + 1, last), what));
    }
    if found.is_whole(repeated) {
        return lost;
    }
    lost.extend(found.damages.iter().filter(|damage| damage.place != Place::Mark).cloned());
    for (line, last) in found.gaps() {
        let place = Place::Line(last + 1);
        if line > last + 1 && !lost.iter().any(|damage| damage.place == place) {
            lost.push(Damage::new(place, format!("it is lost, and all up to line {}", line - 1)));
        }
    }
    let unproved = "it was found outside the database's structures and may not be the latest";
    lost.extend(doubtful.into_iter().map(|place| Damage::new(place, unproved)));
    if lost.is_empty() {
        lost.push(Damage::new(Place::Structure, "rows are missing, or stand as they once were"));
    }
    lost
}

/// Writes what was found, as one commit after all that were.
fn write(
    connection: &mut Connection,
    image: &Image<'_>,
    found: &Found,
    top: i64,
) -> Result<Mark, StoreError> {
    let mut writer = Writer::begin(connection, Mark { commit: top, ..Mark::default() })?;
    for (&number, (_, spot)) in &found.lines {
        let line = rows::line(&again(image, *spot)?).map_err(moved)?;
        writer.line_at(number, &line.what.line.body)?;
    }
    for (ended, spot) in found.jobs.values() {
        writer.job(&rows::job(&again(image, *spot)?, *ended).map_err(moved)?.what)?;
    }
    for (key, spot) in &found.meta {
        let meta = rows::meta(&again(image, *spot)?).map_err(moved)?;
        writer.meta(None, key, &meta.what.1.text)?;
    }
    if !found.meta.contains_key(schema::FORMAT_KEY) {
        writer.meta(None, schema::FORMAT_KEY, &schema::FORMAT.to_string())?;
    }
    writer.finish()
}

/// Reads a row once more: what was found is not kept in memory, of which a history may need more than there is.
fn again(image: &Image<'_>, spot: Spot) -> Result<cells::Cell, StoreError> {
    let page = image.page(spot.page).map_err(StoreError::io(schema::DATABASE))?;
    let gone = || moved(Damage::new(Place::Structure, format!("page {}", spot.page)));
    cells::cell(image, &page, spot.at).ok_or_else(gone)
}

fn moved(damage: Damage) -> StoreError {
    let what = format!("{}: it has changed while it was read", damage.what);
    StoreError::Damaged(vec![Damage::new(damage.place, what)])
}

fn open(path: &Path) -> Result<File, StoreError> {
    match File::open(path) {
        // A database that has gone is one of no pages; its log may be there.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            File::open("/dev/null").map_err(StoreError::io("/dev/null"))
        }
        other => other.map_err(StoreError::io(path)),
    }
}

fn read_log(home: &Path) -> Result<Vec<u8>, StoreError> {
    let path = home.join(format!("{}-wal", schema::DATABASE));
    match std::fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(StoreError::io(path)),
    }
}

/// How many pages a log can add to a database.
fn log_pages(log: &[u8]) -> u32 {
    u32::try_from(log.len() / image::PAGE).unwrap_or(u32::MAX)
}
