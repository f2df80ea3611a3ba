//! A journal in memory, for tests and simulations.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use jiff::Timestamp;

use crate::{Checkpoint, EndedFilter, JobRow, Journal, JournalBatch, JournalError};

/// A journal in memory, with the faults of a disk. Clones share its contents: a later engine loads what an earlier one stored.
#[derive(Clone, Debug, Default)]
pub struct MemoryJournal(Rc<RefCell<JournalContents>>);

/// The contents of a journal in memory, and the faults of its next commits.
#[derive(Clone, Debug, Default)]
pub struct JournalContents {
    /// The jobs, by number.
    pub rows: BTreeMap<i64, JobRow>,
    /// The lines, oldest first.
    pub lines: Vec<String>,
    /// The sealed segments: the number of lines, and the wall time.
    pub segments: Vec<(usize, Timestamp)>,
    /// The named values.
    pub values: BTreeMap<String, String>,
    /// The number of stored commits.
    pub commits: i64,
    /// The highest number that a job ever had; 0 before the first.
    pub highest: i64,
    /// Whether commits fail for lack of space.
    pub full: bool,
    /// The failure of the next commit: whether it is stored nevertheless. `None` is no failure.
    pub fails: Option<bool>,
}

impl MemoryJournal {
    /// Returns a journal with these contents.
    pub fn new(contents: JournalContents) -> MemoryJournal {
        MemoryJournal(Rc::new(RefCell::new(contents)))
    }

    /// Returns a copy of the contents.
    pub fn contents(&self) -> JournalContents {
        self.0.borrow().clone()
    }

    /// Changes the contents.
    pub fn change(&self, change: impl FnOnce(&mut JournalContents)) {
        change(&mut self.0.borrow_mut());
    }

    /// Lets commits fail for lack of space, or succeed again.
    pub fn set_full(&self, full: bool) {
        self.change(|contents| contents.full = full);
    }

    fn ended(&self, admits: impl Fn(&JobRow) -> bool) -> Vec<JobRow> {
        let contents = self.0.borrow();
        contents.rows.values().filter(|row| row.ended && admits(row)).cloned().collect()
    }
}

impl JournalContents {
    fn commit(&mut self, batch: JournalBatch) -> Result<(), JournalError> {
        if self.full {
            return Err(JournalError::Full("no space".into()));
        }
        let fails = self.fails.take();
        if fails != Some(false) {
            self.store(batch);
        }
        fails.map_or(Ok(()), |_| Err(JournalError::Failed("the flush failed".into())))
    }

    fn store(&mut self, batch: JournalBatch) {
        self.lines.extend(batch.lines);
        if let Some(Checkpoint { line, wall }) = batch.checkpoint {
            let sealed: usize = self.segments.iter().map(|(lines, _)| lines).sum();
            self.segments.push((self.lines.len() - sealed, wall));
            self.lines.push(line);
        }
        self.highest = batch.rows.iter().map(|row| row.number).fold(self.highest, i64::max);
        self.rows.extend(batch.rows.into_iter().map(|row| (row.number, row)));
        self.values.extend(batch.values);
        self.values.retain(|_, text| !text.is_empty());
        self.commits += 1;
    }
}

impl Journal for MemoryJournal {
    fn live_jobs(&self) -> Result<Vec<JobRow>, JournalError> {
        Ok(self.0.borrow().rows.values().filter(|row| !row.ended).cloned().collect())
    }

    fn job(&self, number: i64) -> Result<Option<JobRow>, JournalError> {
        Ok(self.0.borrow().rows.get(&number).cloned())
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
        let contents = self.0.borrow();
        Ok(contents.rows.keys().next_back().copied().unwrap_or(0).max(contents.highest))
    }

    fn last_commit(&self) -> i64 {
        self.0.borrow().commits
    }

    fn value(&self, key: &str) -> Result<Option<String>, JournalError> {
        Ok(self.0.borrow().values.get(key).cloned())
    }

    fn visit_lines(&self, visit: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Result<(), JournalError> {
        let _ = self.0.borrow().lines.iter().try_for_each(|line| visit(line));
        Ok(())
    }

    fn commit(&mut self, batch: JournalBatch) -> Result<(), JournalError> {
        // An empty batch writes nothing, so it needs no space.
        if !batch.is_empty() {
            self.0.borrow_mut().commit(batch)?;
        }
        Ok(())
    }

    fn forget(&mut self, numbers: &[i64]) -> Result<(), JournalError> {
        self.0.borrow_mut().rows.retain(|number, row| !row.ended || !numbers.contains(number));
        Ok(())
    }

    fn forget_segment(&mut self, before: Timestamp) -> Result<bool, JournalError> {
        let mut contents = self.0.borrow_mut();
        let Some((lines, _)) = contents.segments.first().copied().filter(|(_, wall)| *wall < before) else {
            return Ok(false);
        };
        contents.segments.remove(0);
        contents.lines.drain(..lines);
        Ok(contents.segments.first().is_some_and(|(_, wall)| *wall < before))
    }
}
