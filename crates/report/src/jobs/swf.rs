//! The input log with what the simulation made of it.

use std::io::{self, Write};

use miserly_sim::{Finished, Sink};
use miserly_workload::swf::{Field, Header, Record, Writer};

/// Writes each job's line as it was, but for the wait, the runtime, the allocation and the status.
///
/// The status is 1 for a job that ended by itself and 0 for one that was killed at the log's estimate. The format
/// knows whole seconds only: a wait or runtime with decimals is rounded down.
pub struct SwfJobs<W> {
    writer: Writer<W>,
}

impl<W: Write> SwfJobs<W> {
    /// Writes the log's comments, and `notes` behind them.
    ///
    /// # Errors
    /// If the output fails.
    pub fn new(output: W, header: &Header, notes: &[String]) -> io::Result<SwfJobs<W>> {
        let mut writer = Writer::new(output);
        for comment in header.comments() {
            writer.comment(comment)?;
        }
        for note in notes {
            writer.comment(&format!("; Note: {note}"))?;
        }
        Ok(SwfJobs { writer })
    }

    /// Hands the output back.
    pub fn into_inner(self) -> W {
        self.writer.into_inner()
    }
}

impl<W: Write> Sink for SwfJobs<W> {
    fn job(&mut self, job: &Finished) -> io::Result<()> {
        let mut record = job.record.as_deref().cloned().unwrap_or_else(Record::unknown);
        record.set(Field::Wait, job.wait().secs());
        record.set(Field::Runtime, job.runtime.secs());
        // No machine has more processors than fit.
        record.set(Field::Allocated, i64::try_from(job.request.procs().get()).unwrap_or(i64::MAX));
        record.set(Field::Status, i64::from(!job.killed));
        self.writer.job(&record)
    }
}
