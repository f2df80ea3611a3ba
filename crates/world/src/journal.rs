//! A journal in memory that outlives daemons, with the faults of a disk.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use jiff::Timestamp;
use miserly_engine::{Checkpoint, EndedFilter, JobRow, Journal, JournalBatch, JournalError};

use crate::effects::Effects;

/// A journal in memory. Clones share its contents: a later daemon loads what an earlier one stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryJournal {
    contents: Rc<RefCell<Contents>>,
    effects: Effects,
}

#[derive(Clone, Debug, Default)]
struct Contents {
    rows: BTreeMap<i64, JobRow>,
    lines: Vec<String>,
    /// The sealed segments: the number of lines, and the wall time.
    segments: Vec<(usize, Timestamp)>,
    values: BTreeMap<String, String>,
    commits: i64,
    full: bool,
    /// Whether the next commit fails, and whether it is on disk then.
    fails: Option<bool>,
}

impl MemoryJournal {
    /// Returns an empty journal whose commits are effects.
    pub(crate) fn new(effects: Effects) -> MemoryJournal {
        MemoryJournal { contents: Rc::default(), effects }
    }

    /// Returns a copy with contents of its own, without faults.
    pub(crate) fn copy(&self) -> MemoryJournal {
        let contents = Contents { full: false, fails: None, ..self.contents.borrow().clone() };
        MemoryJournal { contents: Rc::new(RefCell::new(contents)), effects: Effects::default() }
    }

    /// Lets commits fail for lack of space, or succeed again.
    pub(crate) fn set_full(&self, full: bool) {
        self.contents.borrow_mut().full = full;
    }

    /// Lets the next commit fail. `stored`: whether it is on disk then.
    pub(crate) fn fail_next(&self, stored: Option<bool>) {
        self.contents.borrow_mut().fails = stored;
    }

    fn ended(&self, admits: impl Fn(&JobRow) -> bool) -> Vec<JobRow> {
        let contents = self.contents.borrow();
        contents.rows.values().filter(|row| row.ended && admits(row)).cloned().collect()
    }
}

impl Contents {
    fn store(&mut self, batch: JournalBatch) {
        self.lines.extend(batch.lines);
        if let Some(Checkpoint { line, wall }) = batch.checkpoint {
            let sealed: usize = self.segments.iter().map(|(lines, _)| lines).sum();
            self.segments.push((self.lines.len() - sealed, wall));
            self.lines.push(line);
        }
        self.rows.extend(batch.rows.into_iter().map(|row| (row.number, row)));
        self.values.extend(batch.values);
        self.values.retain(|_, text| !text.is_empty());
        self.commits += 1;
    }
}

impl Journal for MemoryJournal {
    fn live_jobs(&self) -> Result<Vec<JobRow>, JournalError> {
        Ok(self.contents.borrow().rows.values().filter(|row| !row.ended).cloned().collect())
    }

    fn job(&self, number: i64) -> Result<Option<JobRow>, JournalError> {
        Ok(self.contents.borrow().rows.get(&number).cloned())
    }

    fn ended_jobs(&self, filter: &EndedFilter) -> Result<Vec<JobRow>, JournalError> {
        let mut rows = self.ended(|row| {
            filter.uid.is_none_or(|uid| uid == row.uid)
                && filter.queue.as_ref().is_none_or(|queue| *queue == row.queue)
                && filter.array.is_none_or(|array| row.number == array || row.array == Some(array))
        });
        let limit = filter.limit.map_or(rows.len(), |limit| limit as usize);
        Ok(rows.split_off(rows.len().saturating_sub(limit)))
    }

    fn ended_from(&self, from: i64, limit: u32) -> Result<Vec<JobRow>, JournalError> {
        let mut rows = self.ended(|row| row.number >= from);
        rows.truncate(limit as usize);
        Ok(rows)
    }

    fn highest_job(&self) -> Result<i64, JournalError> {
        Ok(self.contents.borrow().rows.keys().next_back().copied().unwrap_or(0))
    }

    fn last_commit(&self) -> i64 {
        self.contents.borrow().commits
    }

    fn value(&self, key: &str) -> Result<Option<String>, JournalError> {
        Ok(self.contents.borrow().values.get(key).cloned())
    }

    fn visit_lines(&self, visit: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Result<(), JournalError> {
        let contents = self.contents.borrow();
        let _ = contents.lines.iter().try_for_each(|line| visit(line));
        Ok(())
    }

    fn commit(&mut self, batch: JournalBatch) -> Result<(), JournalError> {
        self.effects.pass();
        let mut contents = self.contents.borrow_mut();
        if contents.full {
            return Err(JournalError::Full("no space".into()));
        }
        let fails = contents.fails.take();
        if fails != Some(false) {
            contents.store(batch);
        }
        drop(contents);
        if fails.is_some() {
            return Err(JournalError::Failed("the flush failed".into()));
        }
        self.effects.pass();
        Ok(())
    }

    fn forget(&mut self, numbers: &[i64]) -> Result<(), JournalError> {
        self.contents.borrow_mut().rows.retain(|number, row| !row.ended || !numbers.contains(number));
        Ok(())
    }

    fn forget_segment(&mut self, before: Timestamp) -> Result<bool, JournalError> {
        let mut contents = self.contents.borrow_mut();
        let Some((lines, _)) = contents.segments.first().copied().filter(|(_, wall)| *wall < before) else {
            return Ok(false);
        };
        contents.segments.remove(0);
        contents.lines.drain(..lines);
        Ok(contents.segments.first().is_some_and(|(_, wall)| *wall < before))
    }
}
