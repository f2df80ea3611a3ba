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
    pub(super) fn of(ledger: &Ledger) -> JobSets {
        JobSets {
            idle: ledger.waiting().chain(ledger.suspended()).collect(),
            running: ledger.running().collect(),
        }
    }

    pub(super) fn comes(&mut self, job: JobId) {
        self.idle.push(job);
    }

    pub(super) fn is_gone(&mut self, job: JobId) {
        self.idle.retain(|idle| *idle != job);
        self.running.retain(|running| *running != job);
    }

    pub(super) fn runs(&mut self, job: JobId) {
        self.idle.retain(|idle| *idle != job);
        self.running.push(job);
    }

    pub(super) fn are_suspended(&mut self, jobs: Vec<JobId>) {
        self.running.retain(|running| !jobs.contains(running));
        self.idle.extend(jobs);
    }
}
