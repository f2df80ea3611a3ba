//! Handles of jobs in the ledgers.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::JobId;

/// A one-to-one map between job numbers and the handles by which the ledgers know the jobs.
///
/// Handles are dense and reused. Invariant: `jobs[handle]` is the number of the job with that handle, or `None` for a free handle. A
/// released handle of a requeued job may be replaced by a new one before it is freed.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandleTable {
    /// The job of each handle.
    jobs: Vec<Option<i64>>,
    /// The current handle of each job.
    handles: BTreeMap<i64, JobId>,
    /// The free handles, by index.
    free: BTreeSet<usize>,
}

impl HandleTable {
    /// Returns the current handle of a job.
    pub(crate) fn handle(&self, number: i64) -> Option<JobId> {
        self.handles.get(&number).copied()
    }

    /// Returns the number of the job that has a handle.
    pub(crate) fn number(&self, handle: JobId) -> Option<i64> {
        self.jobs.get(handle.index()).copied().flatten()
    }

    /// Returns the lowest index above all handles in use.
    pub(crate) fn unused(&self) -> u32 {
        u32::try_from(self.jobs.len()).unwrap_or(u32::MAX)
    }

    /// Assigns the lowest free handle to a job. An earlier handle of the job is freed by [`free`](HandleTable::free).
    pub(crate) fn assign(&mut self, number: i64) -> JobId {
        let index = self.free.pop_first().unwrap_or_else(|| {
            self.jobs.push(None);
            self.jobs.len() - 1
        });
        self.jobs[index] = Some(number);
        // More jobs than that fit in no memory.
        let handle = JobId(u32::try_from(index).unwrap_or(u32::MAX));
        self.handles.insert(number, handle);
        handle
    }

    /// Separates a job from its handle, which stays in use until the ledger has removed it.
    pub(crate) fn detach(&mut self, number: i64) {
        self.handles.remove(&number);
    }

    /// Frees a handle that no ledger uses any more.
    pub(crate) fn free(&mut self, handle: JobId) {
        let Some(number) = self.jobs.get_mut(handle.index()).and_then(Option::take) else { return };
        self.free.insert(handle.index());
        if self.handle(number) == Some(handle) {
            self.handles.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_handle_is_reused() {
        let mut table = HandleTable::default();
        let [first, second] = [7, 8].map(|number| table.assign(number));
        assert_eq!((first, second, table.unused()), (JobId(0), JobId(1), 2));
        table.free(first);
        assert_eq!((table.handle(7), table.number(first)), (None, None));
        assert_eq!(table.assign(9), first);
        assert_eq!(table.number(first), Some(9));
    }

    #[test]
    fn a_requeued_job_has_a_new_handle_before_the_old_one_is_freed() {
        let mut table = HandleTable::default();
        let old = table.assign(7);
        table.detach(7);
        let new = table.assign(7);
        assert_ne!(old, new);
        assert_eq!((table.number(old), table.number(new)), (Some(7), Some(7)));
        table.free(old);
        assert_eq!((table.handle(7), table.number(old)), (Some(new), None));
    }
}
