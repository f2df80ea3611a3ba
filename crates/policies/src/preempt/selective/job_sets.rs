//! The sets of running and of idle jobs.

use miserly_core::{JobId, Ledger};

/// The jobs in the system, as in the ledger. Cached so that a pass need not list them all.
#[derive(Debug, Default)]
pub(super) struct JobSets {
    /// Jobs that wait or are suspended.
    pub(super) idle: Vec<JobId>,
    pub(super) running: Vec<JobId>,
}

impl JobSets {
    pub(super) fn new(ledger: &Ledger) -> JobSets {
        JobSets {
            idle: ledger.waiting().chain(ledger.suspended()).collect(),
            running: ledger.running().collect(),
        }
    }

    pub(super) fn insert_idle(&mut self, job: JobId) {
        self.idle.push(job);
    }

    pub(super) fn remove(&mut self, job: JobId) {
        self.idle.retain(|idle| *idle != job);
        self.running.retain(|running| *running != job);
    }

    pub(super) fn set_running(&mut self, job: JobId) {
        self.idle.retain(|idle| *idle != job);
        self.running.push(job);
    }

    pub(super) fn set_suspended(&mut self, jobs: Vec<JobId>) {
        self.running.retain(|running| !jobs.contains(running));
        self.idle.extend(jobs);
    }
}
