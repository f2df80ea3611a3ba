//! The jobs that have not finished.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use miserly_core::{JobId, Span, Time};

use crate::job::handles::HandleTable;
use crate::job::record_map::RecordMap;
use crate::limits::Scope;
use crate::submission::size;
use crate::{Record, Run, SavedEntry};

/// The jobs that have not finished, their handles in the ledgers, and which of them run.
///
/// Invariant: each running job has a record.
#[derive(Debug, Default)]
pub(crate) struct JobTable {
    records: RecordMap,
    handles: HandleTable,
    /// Jobs that run in their windows.
    running: BTreeSet<i64>,
    /// The expected ends of running jobs that are not overdue, earliest first.
    ends: BTreeSet<(Time, i64)>,
    /// The same, by job.
    end_of: BTreeMap<i64, Time>,
    /// Jobs with an attempt that began ahead of its window. Its window may have begun since.
    ahead: BTreeSet<i64>,
    /// The sums of the jobs that limits count together.
    usage: BTreeMap<Scope, Usage>,
    /// The number of jobs of each queue.
    in_queue: BTreeMap<Arc<str>, usize>,
}

impl JobTable {
    /// Returns a table of loaded jobs. `running` selects the jobs that run in their windows.
    pub(crate) fn new(
        records: BTreeMap<i64, Record>,
        handles: HandleTable,
        running: impl Fn(&Record) -> bool,
    ) -> JobTable {
        let mut table = JobTable { handles, ..JobTable::default() };
        for (number, record) in records {
            if running(&record) {
                table.running.insert(number);
            }
            if record.run.as_ref().is_some_and(|run| !run.in_window) {
                table.ahead.insert(number);
            }
            table.set_expected_end(number, record.entry.as_deref().and_then(SavedEntry::expected_end));
            table.insert(record);
        }
        table
    }

    /// Returns the record of a job.
    pub(crate) fn get(&self, number: i64) -> Option<&Record> {
        self.records.get(number)
    }

    /// Returns the record of a job, for changes other than of its user, its queue and its time limit.
    pub(crate) fn get_mut(&mut self, number: i64) -> Option<&mut Record> {
        self.records.get_mut(number)
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
        self.get(number).is_some()
    }

    /// Returns the records, by number.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }

    /// Returns the records, to share them.
    pub(crate) fn all(&self) -> &RecordMap {
        &self.records
    }

    /// Adds a job, or replaces its record.
    pub(crate) fn insert(&mut self, record: Record) {
        self.count_in_scopes(&record);
        *self.in_queue.entry(Arc::clone(&record.queue)).or_default() += 1;
        if let Some(before) = self.records.insert(record) {
            self.count_out(&before);
        }
    }

    /// Removes a job, which does not run any more.
    pub(crate) fn remove(&mut self, number: i64) -> Option<Record> {
        self.running.remove(&number);
        self.ahead.remove(&number);
        self.set_expected_end(number, None);
        let record = self.records.remove(number)?;
        self.count_out(&record);
        Some(record)
    }

    /// Adds a record to the sums for limits.
    fn count_in_scopes(&mut self, record: &Record) {
        for scope in record.scopes() {
            self.usage.entry(scope).or_default().add(record);
        }
    }

    /// Removes a record from the sums for limits.
    fn count_out_of_scopes(&mut self, record: &Record) {
        for scope in record.scopes() {
            let Some(usage) = self.usage.get_mut(&scope) else { continue };
            usage.remove(record);
            if *usage == Usage::default() {
                self.usage.remove(&scope);
            }
        }
    }

    /// Removes a record from the sums for limits and from its queue.
    fn count_out(&mut self, record: &Record) {
        self.count_out_of_scopes(record);
        if let Some(jobs) = self.in_queue.get_mut(&record.queue) {
            *jobs -= 1;
        }
    }

    /// Sets the time limit of a job.
    pub(crate) fn set_time_limit(&mut self, number: i64, time: Span) {
        let Some(before) = self.records.get(number).cloned() else { return };
        let after = Record { time, ..before.clone() };
        self.count_in_scopes(&after);
        self.count_out_of_scopes(&before);
        self.records.insert(after);
    }

    /// Returns the sums of the jobs that a limit counts.
    pub(crate) fn usage(&self, scope: &Scope) -> Usage {
        self.usage.get(scope).copied().unwrap_or_default()
    }

    /// Returns the number of jobs that a limit counts and that run in their windows. O(n) for n running jobs.
    pub(crate) fn running_in(&self, scope: &Scope) -> u64 {
        let records = self.running.iter().filter_map(|number| self.get(*number));
        records.filter(|record| record.scopes().any(|of| of == *scope)).count() as u64
    }

    /// Returns the number of jobs of a queue.
    pub(crate) fn count_in(&self, queue: &str) -> usize {
        self.in_queue.get(queue).copied().unwrap_or_default()
    }

    /// Sets the instant at which a running job is expected to end; `None` for any other job, and for an overdue one.
    pub(crate) fn set_expected_end(&mut self, number: i64, end: Option<Time>) {
        let before = match end {
            Some(end) => self.end_of.insert(number, end),
            None => self.end_of.remove(&number),
        };
        self.ends.extend(end.map(|end| (end, number)));
        if let Some(before) = before.filter(|before| Some(*before) != end) {
            self.ends.remove(&(before, number));
        }
    }

    /// Returns the earliest expected end of a running job.
    pub(crate) fn next_end(&self) -> Option<Time> {
        self.ends.first().map(|(end, _)| *end)
    }

    /// Returns the running jobs that are expected to end by an instant, by number.
    pub(crate) fn ending_by(&self, at: Time) -> BTreeSet<i64> {
        self.ends.iter().take_while(|(end, _)| *end <= at).map(|(_, number)| *number).collect()
    }

    /// Records that an attempt of a job begins ahead of its window.
    pub(crate) fn set_ahead(&mut self, number: i64) {
        self.ahead.insert(number);
    }

    /// Returns the jobs with an attempt ahead of its window, by number.
    pub(crate) fn ahead(&mut self) -> Vec<i64> {
        let JobTable { ahead, records, .. } = self;
        let is_ahead = |number: &i64| {
            records.get(*number).and_then(|record| record.run.as_ref()).is_some_and(|run| !run.in_window)
        };
        ahead.retain(is_ahead);
        ahead.iter().copied().collect()
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

    /// Records that a job leaves its ledger: it has no handle, does not run and is not expected to end.
    ///
    /// Its handle stays in use until the ledger has removed it.
    pub(crate) fn leave_ledger(&mut self, number: i64) {
        self.set_stopped(number);
        self.set_expected_end(number, None);
        self.handles.detach(number);
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

/// The sums of unfinished jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) jobs: u64,
    pub(crate) bytes: u64,
    /// In processor-ticks. No sum overflows: jobs are no larger than the machine.
    pub(crate) cpu_time: i128,
    /// In ticks of one GPU.
    pub(crate) gpu_time: i128,
}

impl Usage {
    /// Returns what a job counts.
    pub(crate) fn new(record: &Record) -> Usage {
        let time = i128::from(record.time.ticks());
        Usage {
            jobs: 1,
            bytes: size::bytes(&record.submission) as u64,
            cpu_time: i128::from(record.submission.cpus).saturating_mul(time),
            gpu_time: i128::from(record.gpus()).saturating_mul(time),
        }
    }

    /// Adds a job.
    pub(crate) fn add(&mut self, record: &Record) {
        let Usage { jobs, bytes, cpu_time, gpu_time } = Usage::new(record);
        self.jobs += jobs;
        self.bytes = self.bytes.wrapping_add(bytes);
        self.cpu_time = self.cpu_time.wrapping_add(cpu_time);
        self.gpu_time = self.gpu_time.wrapping_add(gpu_time);
    }

    /// Removes a job that was added.
    pub(crate) fn remove(&mut self, record: &Record) {
        let Usage { jobs, bytes, cpu_time, gpu_time } = Usage::new(record);
        self.jobs = self.jobs.saturating_sub(jobs);
        self.bytes = self.bytes.wrapping_sub(bytes);
        self.cpu_time = self.cpu_time.wrapping_sub(cpu_time);
        self.gpu_time = self.gpu_time.wrapping_sub(gpu_time);
    }
}
