//! The jobs of one state.

use super::JobId;

/// A set of jobs without an order. Each operation is O(1).
#[derive(Clone, Debug, Default)]
pub(super) struct JobSet {
    jobs: Vec<JobId>,
    /// The position of each job in the list, by its handle; of any value for other jobs.
    positions: Vec<usize>,
}

impl JobSet {
    /// Inserts a job that is not in the set.
    pub(super) fn insert(&mut self, job: JobId) {
        if self.positions.len() <= job.index() {
            self.positions.resize(job.index() + 1, 0);
        }
        self.positions[job.index()] = self.jobs.len();
        self.jobs.push(job);
    }

    /// Removes a job that is in the set.
    pub(super) fn remove(&mut self, job: JobId) {
        let position = self.positions[job.index()];
        self.jobs.swap_remove(position);
        if let Some(moved) = self.jobs.get(position) {
            self.positions[moved.index()] = position;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = JobId> + '_ {
        self.jobs.iter().copied()
    }
}
