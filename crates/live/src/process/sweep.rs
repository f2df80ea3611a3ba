//! Removal of the folders of unknown attempts. Their removal was lost in a crash, or damage lost
//! their jobs.

use miserly_core::Span;
use miserly_engine::Attempt;
use miserly_launch::FoundAttempt;

use super::attempt::Begin;
use super::{Processes, folder, found, retire};

impl Processes {
    /// Settles the attempts that have a folder and are not in `known`.
    ///
    /// Unknown attempts have no window. Those that run are ended, with this grace, and their
    /// folders are removed. Returns the highest job number that has a folder, or 0 if there is
    /// none. The name of an existing folder must not be used again.
    ///
    /// # Errors
    /// If the folders cannot be listed.
    pub fn sweep(&mut self, known: &[Attempt], grace: Span) -> std::io::Result<i64> {
        let mut highest = 0;
        for entry in std::fs::read_dir(&self.home.folder)? {
            let Some(attempt) = entry?.file_name().to_str().and_then(attempt_of) else { continue };
            highest = highest.max(attempt.job);
            if !known.contains(&attempt) {
                self.settle_unknown(attempt, grace);
            }
        }
        Ok(highest)
    }

    fn settle_unknown(&mut self, attempt: Attempt, grace: Span) {
        let path = folder(&self.home.folder, attempt);
        match found(&self.home, attempt) {
            Ok(FoundAttempt::Alive(shim)) => {
                tracing::warn!("{}: its job is unknown and runs; it is ended", path.display());
                self.supervise(attempt, Begin::Unknown(Box::new(shim), grace));
            }
            Ok(_) => retire::retire(&path),
            Err(error) => tracing::error!("{}: its job is unknown: {error}", path.display()),
        }
    }
}

/// Returns the attempt that has a folder of this name.
fn attempt_of(name: &str) -> Option<Attempt> {
    let (job, nth) = name.split_once('.')?;
    Some(Attempt { job: job.parse().ok()?, nth: nth.parse().ok()? })
}
