//! The input log with simulated times.

use std::io::{self, Write};

use miserly_sim::{Finished, Sink};
use miserly_workload::TraceError;
use miserly_workload::swf::{Field, Header, Record, SwfWriter};

use super::lines::Lines;

/// A writer that copies each job's line and replaces wait, runtime, allocation and status.
///
/// The lines come from a second pass over the log, so the jobs must arrive in the order of their submission.
///
/// The status is 1 for a job that completed and 0 for one that was killed at the log's estimate.
/// SWF has whole seconds only, so waits and runtimes are rounded down.
pub struct SwfJobs<W, R> {
    writer: SwfWriter<W>,
    lines: Lines<R>,
}

impl<W: Write, R: Iterator<Item = Result<Record, TraceError>>> SwfJobs<W, R> {
    /// Writes the log's comments, followed by `notes`. `records` are the lines of its jobs.
    ///
    /// # Errors
    /// The output fails.
    pub fn new(output: W, header: &Header, notes: &[String], records: R) -> io::Result<SwfJobs<W, R>> {
        let mut writer = SwfWriter::new(output);
        for comment in header.comments() {
            writer.comment(comment)?;
        }
        for note in notes {
            writer.comment(&format!("; Note: {note}"))?;
        }
        Ok(SwfJobs { writer, lines: Lines::new(records) })
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.writer.into_inner()
    }
}

impl<W: Write, R: Iterator<Item = Result<Record, TraceError>>> Sink for SwfJobs<W, R> {
    fn job(&mut self, job: &Finished) -> io::Result<()> {
        let mut record = self.lines.of(job)?;
        record.set(Field::Wait, job.wait().secs());
        record.set(Field::Runtime, job.runtime.secs());
        // Machine sizes fit into `i64`.
        record.set(Field::Allocated, i64::try_from(job.request.procs().get()).unwrap_or(i64::MAX));
        record.set(Field::Status, i64::from(!job.killed));
        self.writer.job(&record)
    }
}
