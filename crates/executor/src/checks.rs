//! The checks of a launch: the user of its job submitted it, for this attempt.

use std::fs::File;
use std::io::{self, Write};

use miserly_marks::mark;

use crate::failure::{LaunchFailure, LaunchFailureKind};
use crate::launch::LaunchRequest;
use crate::seal::{Credential, Key};
use crate::used_seals::UsedSeals;

/// The key of the seals, and the jobs for which they were used. `W` is the file of the latter.
#[derive(Debug)]
pub struct LaunchChecks<W = File> {
    /// The key.
    pub key: Key,
    /// The jobs.
    pub used: UsedSeals<W>,
}

impl<W: Write> LaunchChecks<W> {
    /// Returns the credential of a launch on a machine with these processors. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// What is wrong with the request, or with its credential.
    pub fn verified(
        &self,
        request: &LaunchRequest,
        online: &[u32],
        now: i64,
    ) -> Result<Credential, LaunchFailure> {
        request.check(online).map_err(|problem| refused(&problem))?;
        let credential = self.key.verified(request.credential.as_deref(), &request.submission, now);
        let credential = credential.map_err(|problem| refused(&problem))?;
        request.check_placement().map_err(|problem| refused(&problem))?;
        Ok(credential)
    }

    /// Launches an attempt with a credential, unless that was used for another job or another attempt.
    ///
    /// # Errors
    /// The use, or the failure of `launch`. The credential is not used then.
    pub fn launch<T>(
        &self,
        request: &LaunchRequest,
        credential: &Credential,
        launch: impl FnOnce() -> Result<T, LaunchFailure>,
    ) -> Result<(T, io::Result<()>), LaunchFailure> {
        let claim = |issue| self.used.claim(request.seal_use(issue), request.attempt);
        let claimed = credential.issue.map(claim).transpose().map_err(|problem| {
            mark!("refused: the use of a seal");
            refused(&problem)
        })?;
        let launched = launch();
        let kept = match (claimed, launched.is_ok()) {
            (Some(claimed), true) => self.used.keep(claimed),
            (Some(claimed), false) => {
                mark!("a seal is not used");
                self.used.give_up(claimed);
                Ok(())
            }
            (None, _) => Ok(()),
        };
        Ok((launched?, kept))
    }
}

fn refused(problem: &dyn ToString) -> LaunchFailure {
    LaunchFailure::new(LaunchFailureKind::Final, problem)
}
