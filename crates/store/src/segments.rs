//! Segments of the journal: the lines from one checkpoint to the next.
//!
//! When a checkpoint is appended, the segment before it is sealed: a named value holds its first
//! and last line, their number and the sum of their checksums. The mark has the sum of all lines, so
//! the difference is the sum of the open segment. A sealed segment never changes. It can be checked
//! on its own, and it is removed as a whole.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::fmt::serde::timestamp::microsecond;
use miserly_engine::{Checkpoint, JournalBatch};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::Store;
use super::commit::Writer;
use super::error::StoreError;
use super::mark::TableSum;
use super::rows::{self, META, Named, Stored};

/// The names of the values begin so.
const PREFIX: &str = "segment/";

/// A sealed segment of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Segment {
    /// The number of its first line.
    pub first: i64,
    /// The number of its last line.
    pub last: i64,
    /// The wall time at which it was sealed.
    #[serde(with = "microsecond::required")]
    pub sealed: Timestamp,
    #[serde(flatten)]
    pub(super) sum: TableSum,
}

impl Segment {
    /// Returns the number of its lines.
    pub(super) fn lines(&self) -> i64 {
        self.last - self.first + 1
    }

    /// Returns whether a named value is a segment.
    pub(super) fn is_key(key: &str) -> bool {
        key.starts_with(PREFIX)
    }

    fn key(&self) -> String {
        // So many digits that the order of the names is that of the segments.
        format!("{PREFIX}{:019}", self.first)
    }

    pub(super) fn named(&self) -> Named {
        // Plain numbers always have a JSON form.
        Named { key: self.key(), text: serde_json::to_string(self).unwrap_or_default() }
    }

    pub(super) fn read(named: &Named) -> Option<Segment> {
        serde_json::from_str(&named.text).ok().filter(|_| Segment::is_key(&named.key))
    }
}

/// Returns the sealed segments among the named values, oldest first.
pub(super) fn sealed(meta: &BTreeMap<String, Stored<Named>>) -> impl DoubleEndedIterator<Item = Segment> {
    let values = meta.range(PREFIX.to_owned()..).take_while(|(key, _)| Segment::is_key(key));
    let found: Vec<Segment> = values.filter_map(|(_, stored)| Segment::read(&stored.row)).collect();
    found.into_iter()
}

/// Returns the sealed segments of a database, oldest first.
pub(super) fn stored(connection: &Connection) -> Result<Vec<Segment>, StoreError> {
    let sql = format!("SELECT {META} FROM meta WHERE key >= ? ORDER BY key");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = statement.query([PREFIX])?;
    let mut segments = vec![];
    while let Some(row) = found.next()? {
        segments.extend(Segment::read(&rows::meta(row)?.row));
    }
    Ok(segments)
}

/// Returns the sum of the stored lines `first` to `last`.
pub(super) fn sum(connection: &Connection, first: i64, last: i64) -> Result<TableSum, StoreError> {
    let mut sum = TableSum::default();
    let sql = "SELECT sum FROM journal WHERE number BETWEEN ? AND ?";
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query([first, last])?;
    while let Some(row) = found.next()? {
        sum.add(row.get(0)?);
    }
    Ok(sum)
}

/// Returns the number of the first stored line from `from` on.
pub(super) fn first_line(connection: &Connection, from: i64) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT min(number) FROM journal WHERE number >= ?";
    Ok(connection.prepare_cached(sql)?.query_row([from], |row| row.get(0))?)
}

impl Store {
    /// Returns the sealed segments of the journal, oldest first.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = Segment> {
        sealed(&self.meta)
    }

    /// Removes the lines of the oldest sealed segment if it was sealed before this wall time, and
    /// returns when that is on disk. Returns whether the next one was sealed before it, too.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn forget_segment(&mut self, before: Timestamp) -> Result<bool, StoreError> {
        let due: Vec<Segment> =
            self.segments().take_while(|segment| segment.sealed < before).take(2).collect();
        let Some(oldest) = due.first() else { return Ok(false) };
        let key = oldest.key();
        let old = self.meta.get(&key).map(|stored| stored.sum);
        let mut writer = Writer::begin(&mut self.connection, self.mark)?;
        writer.remove_segment(oldest)?;
        writer.meta(old, Named { key: key.clone(), text: String::new() })?;
        let mark = writer.finish()?;
        self.meta.remove(&key);
        self.committed(mark);
        Ok(due.len() > 1)
    }

    /// Returns the last line and the sums of the sealed segments.
    pub(super) fn sealed_so_far(&self) -> Sealed {
        Sealed::of(self.segments())
    }
}

/// All sealed segments together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sealed {
    /// The number of the last sealed line.
    pub(super) last: i64,
    pub(super) sum: TableSum,
}

impl Sealed {
    pub(super) fn of(segments: impl Iterator<Item = Segment>) -> Sealed {
        segments.fold(Sealed::default(), |all, segment| Sealed {
            last: all.last.max(segment.last),
            sum: all.sum.plus(segment.sum),
        })
    }
}

impl Writer<'_> {
    /// Appends the lines of a batch, and its checkpoint. Returns the segment that the checkpoint
    /// seals.
    pub(super) fn lines(
        &mut self,
        batch: &JournalBatch,
        sealed: Sealed,
    ) -> Result<Option<Named>, StoreError> {
        for body in &batch.lines {
            self.append(body)?;
        }
        let Some(Checkpoint { line, wall }) = &batch.checkpoint else { return Ok(None) };
        let first = first_line(self.connection(), sealed.last + 1)?;
        let segment = first.map(|first| Segment {
            first,
            last: self.mark.line,
            sealed: *wall,
            sum: self.mark.journal.less(sealed.sum),
        });
        self.append(line)?;
        Ok(segment.map(|segment| segment.named()))
    }

    /// Removes the lines of a segment.
    fn remove_segment(&mut self, segment: &Segment) -> Result<(), StoreError> {
        let sql = "DELETE FROM journal WHERE number BETWEEN ? AND ?";
        self.connection().prepare_cached(sql)?.execute(params![segment.first, segment.last])?;
        self.mark.journal = self.mark.journal.less(segment.sum);
        Ok(())
    }

    /// Records the segments of a recovered journal as they are now. Returns those that lost lines, as
    /// they were.
    pub(super) fn reseal(&mut self, segments: &[Segment]) -> Result<Vec<(Segment, TableSum)>, StoreError> {
        let (mut damaged, mut next) = (vec![], i64::MIN);
        for segment in segments.iter().filter(|segment| segment.last >= segment.first) {
            // Lines whose own segment is not known any more.
            if let Some(first) = first_line(self.connection(), next)?.filter(|first| *first < segment.first) {
                let last = segment.first - 1;
                let sum = sum(self.connection(), first, last)?;
                self.meta(None, Segment { first, last, sealed: segment.sealed, sum }.named())?;
            }
            let present = sum(self.connection(), segment.first, segment.last)?;
            if present != segment.sum {
                damaged.push((*segment, present));
            }
            self.meta(None, Segment { sum: present, ..*segment }.named())?;
            next = segment.last + 1;
        }
        Ok(damaged)
    }
}
