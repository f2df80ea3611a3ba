//! The input log with simulated times.

use std::io::{self, Write};

use miserly_sim::{Finished, Sink};
use miserly_workload::swf::{Field, Header, Record, SwfWriter};

/// A writer that copies each job's line and replaces wait, runtime, allocation and status.
///
/// The status is 1 for a job that completed and 0 for one that was killed at the log's estimate.
/// SWF has whole seconds only, so waits and runtimes are rounded down.
pub struct SwfJobs<W> {
    writer: SwfWriter<W>,
}

impl<W: Write> SwfJobs<W> {
    /// Writes the log's comments, followed by `notes`.
    ///
    /// # Errors
    /// The output fails.
    pub fn new(output: W, header: &Header, notes: &[String]) -> io::Result<SwfJobs<W>> {
        let mut writer = SwfWriter::new(output);
        for comment in header.comments() {
            writer.comment(comment)?;
        }
        for note in notes {
            writer.comment(&format!("; Note: {note}"))?;
        }
        Ok(SwfJobs { writer })
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.writer.into_inner()
    }
}

impl<W: Write> Sink for SwfJobs<W> {
    fn job(&mut self, job: &Finished) -> io::Result<()> {
        let mut record = job.record.as_deref().cloned().unwrap_or_else(Record::unknown);
        record.set(Field::Wait, job.wait().secs());
        record.set(Field::Runtime, job.runtime.secs());
        // Machine sizes fit into `i64`.
        record.set(Field::Allocated, i64::try_from(job.request.procs().get()).unwrap_or(i64::MAX));
        record.set(Field::Status, i64::from(!job.killed));
        self.writer.job(&record)
    }
}
