//! The input log with what the simulation made of it.

use std::io::{self, Write};

use miserly_sim::{Finished, Sink};
use miserly_workload::TraceError;
use miserly_workload::swf::{Field, Header, Record, Writer};

/// A writer of the lines of the log with the wait, the runtime, the allocation and the status of the simulation.
///
/// The lines come from a second pass over the log. They are matched by the position of the job
/// ([`Finished::admission`]), so the jobs must come in the order of their submission.
///
/// The status is 1 for a job that ended by itself and 0 for one that was killed at the log's estimate. The format
/// knows whole seconds only: a wait or runtime with decimals is rounded down.
pub struct SwfJobs<W, R> {
    writer: Writer<W>,
    /// The lines that are left.
    records: R,
    /// The position of the next line.
    next: u64,
}

impl<W: Write, R: Iterator<Item = Result<Record, TraceError>>> SwfJobs<W, R> {
    /// Writes the comments of the log, and `notes` behind them. `records` are the lines of its jobs.
    ///
    /// # Errors
    /// If the output fails.
    pub fn new(output: W, header: &Header, notes: &[String], records: R) -> io::Result<SwfJobs<W, R>> {
        let mut writer = Writer::new(output);
        for comment in header.comments() {
            writer.comment(comment)?;
        }
        for note in notes {
            writer.comment(&format!("; Note: {note}"))?;
        }
        Ok(SwfJobs { writer, records, next: 0 })
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.writer.into_inner()
    }

    /// Returns the line of the job at that position. Skips the lines before it, whose jobs were refused.
    fn record(&mut self, position: u64) -> io::Result<Record> {
        let skipped = usize::try_from(position.saturating_sub(self.next)).unwrap_or(usize::MAX);
        self.next = position + 1;
        match self.records.nth(skipped) {
            Some(record) => record.map_err(io::Error::other),
            None => Err(io::Error::other("the log changed during the run: it has fewer jobs")),
        }
    }
}

impl<W: Write, R: Iterator<Item = Result<Record, TraceError>>> Sink for SwfJobs<W, R> {
    fn job(&mut self, job: &Finished) -> io::Result<()> {
        let mut record = self.record(job.admission)?;
        record.set(Field::Wait, job.wait().secs());
        record.set(Field::Runtime, job.runtime.secs());
        // No machine has more processors than fit.
        record.set(Field::Allocated, i64::try_from(job.request.procs().get()).unwrap_or(i64::MAX));
        record.set(Field::Status, i64::from(!job.killed));
        self.writer.job(&record)
    }
}
