//! A log that is held whole: its comments and its lines.

use std::io::{self, Write};

use crate::swf::{LogLine, Record, SwfWriter};
use crate::trace::{Trace, TraceError};

/// The comments and the lines of a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WholeLog {
    /// Comments, including `;`.
    pub comments: Vec<String>,
    /// Lines of jobs.
    pub jobs: Vec<Record>,
}

impl WholeLog {
    /// Reads a log.
    ///
    /// # Errors
    /// The log cannot be read, or a line is malformed.
    pub fn read(trace: &Trace) -> Result<WholeLog, TraceError> {
        let mut log = WholeLog::default();
        let mut reader = trace.reader()?;
        while let Some(line) = reader.next_line().map_err(|error| trace.read_error(error))? {
            match line {
                LogLine::Comment(comment) => log.comments.push(comment.to_owned()),
                LogLine::Job(job) => log.jobs.push(job.clone()),
                LogLine::Blank => {}
            }
        }
        Ok(log)
    }

    /// Writes the log in the Standard Workload Format.
    ///
    /// # Errors
    /// The output fails.
    pub fn write(&self, output: impl Write) -> io::Result<()> {
        let mut writer = SwfWriter::new(io::BufWriter::new(output));
        self.comments.iter().try_for_each(|comment| writer.comment(comment))?;
        self.jobs.iter().try_for_each(|job| writer.job(job))?;
        writer.into_inner().flush()
    }

    /// Converts the log to a readable one in memory.
    pub fn into_trace(self, name: &str) -> Trace {
        let mut text = Vec::new();
        // Writing to memory cannot fail.
        self.write(&mut text).unwrap_or_default();
        Trace::memory(name, text)
    }
}
