//! The lines of jobs in the log of a run.

use std::io;

use miserly_sim::Finished;
use miserly_workload::TraceError;
use miserly_workload::swf::Record;

/// The lines of the jobs of a run, from another pass over its log.
///
/// They are matched by the position of the job ([`Finished::admission`]), so the jobs must come in the order of their
/// submission.
pub(super) struct Lines<R> {
    records: R,
    /// Position of the next line.
    next: u64,
}

impl<R: Iterator<Item = Result<Record, TraceError>>> Lines<R> {
    pub(super) const fn new(records: R) -> Lines<R> {
        Lines { records, next: 0 }
    }

    /// Returns the line of a job. Skips the lines before it, whose jobs were refused.
    pub(super) fn of(&mut self, job: &Finished) -> io::Result<Record> {
        let skipped = usize::try_from(job.admission.saturating_sub(self.next)).unwrap_or(usize::MAX);
        self.next = job.admission + 1;
        match self.records.nth(skipped) {
            Some(record) => record.map_err(io::Error::other),
            None => Err(io::Error::other("the log changed during the run: it has fewer jobs")),
        }
    }
}
