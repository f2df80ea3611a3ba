//! The jobs that have not finished.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::JobId;

use crate::handles::HandleTable;
use crate::{Record, Run};

/// The jobs that have not finished, their handles in the ledgers, and which of them run.
///
/// Invariant: each running job has a record.
#[derive(Debug, Default)]
pub(crate) struct JobTable {
    records: BTreeMap<i64, Record>,
    handles: HandleTable,
    /// Jobs that run in their windows.
    running: BTreeSet<i64>,
}

impl JobTable {
    /// Returns a table of loaded jobs. `running` selects the jobs that run in their windows.
    pub(crate) fn new(
        records: BTreeMap<i64, Record>,
        handles: HandleTable,
        running: impl Fn(&Record) -> bool,
    ) -> JobTable {
        let running = records.values().filter(|record| running(record)).map(|record| record.number).collect();
        JobTable { records, handles, running }
    }

    /// Returns the record of a job.
    pub(crate) fn get(&self, number: i64) -> Option<&Record> {
        self.records.get(&number)
    }

    /// Returns the record of a job, for changes.
    pub(crate) fn get_mut(&mut self, number: i64) -> Option<&mut Record> {
        self.records.get_mut(&number)
    }

    /// Returns the living attempt of a job.
    pub(crate) fn run(&self, number: i64) -> Option<&Run> {
        self.get(number)?.run.as_ref()
    }

    /// Returns the living attempt of a job, for changes.
    pub(crate) fn run_mut(&mut self, number: i64) -> Option<&mut Run> {
        self.get_mut(number)?.run.as_mut()
    }

    /// Returns whether a job has not finished.
    pub(crate) fn contains(&self, number: i64) -> bool {
        self.records.contains_key(&number)
    }

    /// Returns the records, by number.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.values()
    }

    /// Returns the records for changes, by number.
    pub(crate) fn records_mut(&mut self) -> impl Iterator<Item = &mut Record> {
        self.records.values_mut()
    }

    /// Adds a job, or replaces its record.
    pub(crate) fn insert(&mut self, record: Record) {
        self.records.insert(record.number, record);
    }

    /// Removes a job, which does not run any more.
    pub(crate) fn remove(&mut self, number: i64) -> Option<Record> {
        self.running.remove(&number);
        self.records.remove(&number)
    }

    /// Returns whether a job runs in its window.
    pub(crate) fn is_running(&self, number: i64) -> bool {
        self.running.contains(&number)
    }

    /// Returns the jobs that run in their windows, by number.
    pub(crate) fn running(&self) -> impl Iterator<Item = i64> {
        self.running.iter().copied()
    }

    /// Records that a job's window has begun or continues.
    pub(crate) fn set_running(&mut self, number: i64) {
        if self.contains(number) {
            self.running.insert(number);
        }
    }

    /// Records that a job does not run in its window any more.
    pub(crate) fn set_stopped(&mut self, number: i64) {
        self.running.remove(&number);
    }

    /// Returns a job's handle in the ledgers.
    pub(crate) fn handle(&self, number: i64) -> Option<JobId> {
        self.handles.handle(number)
    }

    /// Returns the number of the job with a handle.
    pub(crate) fn number(&self, handle: JobId) -> Option<i64> {
        self.handles.number(handle)
    }

    /// Returns the handles, for changes.
    pub(crate) fn handles_mut(&mut self) -> &mut HandleTable {
        &mut self.handles
    }

    /// Returns the lowest handle above all handles in use.
    pub(crate) fn unused_handle(&self) -> u32 {
        self.handles.unused()
    }
}
