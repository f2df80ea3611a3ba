//! Promises that moved earlier since the records of their jobs were stored.
//!
//! When a job ends early, the promises of all jobs behind it may move. Their records would be
//! rewritten for that alone. Instead these promises are stored in blocks of job numbers, a few bytes
//! each, and applied to the records at the next start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use miserly_core::{Span, Time};

use crate::promise::counts::PromiseBook;
use crate::{Journal, JournalError, Record};

/// The number of consecutive job numbers in a block.
const BLOCK: i64 = 256;

/// A promise that is earlier than the one in the stored record of its job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct EarlierPromise {
    /// The latest start, in ticks.
    start: i64,
    /// The rank of the decision on the start.
    decided: u64,
    /// The wall time of the promise, in microseconds since 1970.
    wall: i64,
    /// The number of changes of the promise that were no improvements. Others belong to an earlier record.
    changes: usize,
}

/// The promises that are newer than the stored records of their jobs, by job.
#[derive(Debug, Default)]
pub(crate) struct EarlierPromises {
    jobs: BTreeMap<i64, EarlierPromise>,
    /// Blocks that differ from the stored ones.
    changed: BTreeSet<i64>,
}

impl EarlierPromises {
    /// Applies the stored promises to the records of their jobs.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub(crate) fn load(
        journal: &impl Journal,
        records: &mut BTreeMap<i64, Record>,
    ) -> Result<EarlierPromises, JournalError> {
        records.values_mut().for_each(Record::settle_promise);
        let mut earlier = EarlierPromises::default();
        let blocks: BTreeSet<i64> = records.keys().map(|number| block_of(*number)).collect();
        for block in blocks {
            let Some(text) = journal.value(&key(block))? else { continue };
            for (number, promise) in parse(block, &text) {
                if records.get_mut(&number).is_some_and(|record| promise.apply(record)) {
                    earlier.jobs.insert(number, promise);
                }
            }
        }
        Ok(earlier)
    }

    /// Adds the promise of a job whose record is not stored.
    pub(crate) fn add(&mut self, record: &Record) {
        let Some(promise) = EarlierPromise::new(record) else { return };
        self.jobs.insert(record.number, promise);
        self.changed.insert(block_of(record.number));
    }

    /// Removes a job whose record is stored, or that has finished.
    pub(crate) fn remove(&mut self, number: i64) {
        if self.jobs.remove(&number).is_some() {
            self.changed.insert(block_of(number));
        }
    }

    /// Takes the changed blocks as named values. An empty value removes a block.
    pub(crate) fn take_changed(&mut self) -> Vec<(String, String)> {
        let blocks = std::mem::take(&mut self.changed).into_iter();
        blocks.map(|block| (key(block), self.text(block))).collect()
    }

    /// Returns a block as text. Each number is the difference from that of the job before.
    fn text(&self, block: i64) -> String {
        let mut last = (block * BLOCK, EarlierPromise::default());
        let mut words = vec![];
        for (number, promise) in self.jobs.range(block * BLOCK..(block + 1) * BLOCK) {
            let before = std::mem::replace(&mut last, (*number, *promise));
            words.push((number - before.0).to_string());
            words.push(promise.start.wrapping_sub(before.1.start).to_string());
            words.push(promise.decided.wrapping_sub(before.1.decided).cast_signed().to_string());
            words.push(promise.wall.wrapping_sub(before.1.wall).to_string());
            words.push(promise.changes.to_string());
        }
        words.join(" ")
    }
}

/// Parses a block. An invalid text ends it.
fn parse(block: i64, text: &str) -> Vec<(i64, EarlierPromise)> {
    let words: Vec<i64> = text.split(' ').map_while(|word| word.parse().ok()).collect();
    let mut last = (block * BLOCK, EarlierPromise::default());
    let mut promises = vec![];
    for part in words.chunks_exact(5) {
        let before = last.1;
        let promise = EarlierPromise {
            start: before.start.wrapping_add(part[1]),
            decided: before.decided.wrapping_add(part[2].cast_unsigned()),
            wall: before.wall.wrapping_add(part[3]),
            changes: usize::try_from(part[4]).unwrap_or_default(),
        };
        last = (last.0 + part[0], promise);
        promises.push(last);
    }
    promises
}

impl EarlierPromise {
    fn new(record: &Record) -> Option<EarlierPromise> {
        let (start, decided) = record.entry.as_ref()?.last_promise()?;
        let (wall, changes) = record.promise.last_improvement()?;
        Some(EarlierPromise { start, decided, wall: wall.as_microsecond(), changes })
    }

    /// Applies this to the stored record. Returns whether it is newer than the record.
    fn apply(self, record: &mut Record) -> bool {
        let Some(entry) = record.entry.as_mut().map(Arc::make_mut) else { return false };
        let is_newer = record.promise.changes() == self.changes
            && entry.last_promise().is_some_and(|(start, _)| self.start < start);
        if is_newer {
            entry.move_promise(self.start, self.decided);
            // It is a plan of an open promise, so nothing is counted.
            let book = &mut PromiseBook::default();
            let wall = Timestamp::from_microsecond(self.wall).unwrap_or(Timestamp::UNIX_EPOCH);
            record.promise.give(book, wall, Time::from_ticks(self.start), Span::ZERO);
        }
        is_newer
    }
}

/// Returns the first and the last job of a named value that holds earlier promises. Returns `None` for any other value.
pub fn jobs_of_promises(key: &str) -> Option<(i64, i64)> {
    let block: i64 = key.strip_prefix("promises/")?.parse().ok()?;
    let first = block.checked_mul(BLOCK)?;
    Some((first, first.saturating_add(BLOCK - 1)))
}

const fn block_of(number: i64) -> i64 {
    number.div_euclid(BLOCK)
}

fn key(block: i64) -> String {
    format!("promises/{block}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_as_it_was_written() {
        let promise =
            |start, decided| EarlierPromise { start, decided, wall: i64::wrapping_mul(start, 2), changes: 1 };
        let jobs = [(256, promise(50, 9)), (257, promise(i64::MAX, 7)), (511, promise(-3, u64::MAX))];
        let earlier = EarlierPromises { jobs: jobs.into(), ..EarlierPromises::default() };
        assert_eq!(parse(1, &earlier.text(1)), jobs);
        assert_eq!((earlier.text(0), parse(0, "")), (String::new(), vec![]));
    }

    #[test]
    fn the_jobs_of_a_block_are_known_by_its_name() {
        assert_eq!(jobs_of_promises(&key(block_of(300))), Some((256, 511)));
        assert_eq!((jobs_of_promises("promises/x"), jobs_of_promises("clock")), (None, None));
    }

    #[test]
    fn only_changed_blocks_are_stored() {
        let mut earlier = EarlierPromises::default();
        earlier.jobs.insert(300, EarlierPromise { start: 7, ..EarlierPromise::default() });
        earlier.remove(5);
        assert_eq!(earlier.take_changed(), []);
        earlier.remove(300);
        assert_eq!(earlier.take_changed(), [("promises/1".to_owned(), String::new())]);
        assert_eq!(earlier.take_changed(), []);
    }
}
