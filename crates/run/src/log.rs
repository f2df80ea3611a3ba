//! A log that many runs share.

use std::sync::Arc;

use miserly_workload::{Survey, Trace, TraceError};

/// A log that many runs share: unpacked in memory and surveyed, with its checksum.
#[derive(Clone)]
pub struct Log {
    /// Its lines.
    pub trace: Arc<Trace>,
    /// The result of its survey.
    pub survey: Arc<Survey>,
    /// The SHA-256 of the log as it is stored.
    pub sha256: String,
}

impl Log {
    /// Reads a log into memory.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(trace: Trace) -> Result<Log, TraceError> {
        let (trace, sha256) = trace.into_memory()?;
        let survey = Arc::new(trace.survey()?);
        Ok(Log { trace: Arc::new(trace), survey, sha256 })
    }
}
