//! The messages of a command that has a job with its input.

use miserly_api::model::{Accepted, JobView, KilledBy, Phase, Window};

use crate::commands::live::local;
use crate::commands::live::show::ended_text;
use crate::commands::live::submit::{accepted_text, promised_text};
use crate::commands::live::text::Instants;
use crate::slurm_names::{host, note_end_of_task};

/// Whose words a command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Messages {
    /// None.
    Quiet,
    /// Those of this program.
    Own,
    /// Those of Slurm's salloc.
    Salloc,
    /// Those of Slurm's srun. A step may print the ends of its tasks itself.
    Srun {
        /// Whether it prints that the job waits.
        waits: bool,
        /// Whether it prints the end of the task.
        ends: bool,
    },
}

impl Messages {
    /// Returns the command of Slurm that prints that its job waits.
    fn name(self) -> Option<&'static str> {
        match self {
            Messages::Quiet | Messages::Own | Messages::Srun { waits: false, .. } => None,
            Messages::Salloc => Some("salloc"),
            Messages::Srun { .. } => Some("srun"),
        }
    }

    /// Prints that a job was accepted.
    pub(super) fn accepted(self, job: &Accepted) {
        let number = job.number;
        if self == Messages::Own {
            note!("{}", accepted_text(std::slice::from_ref(job)).trim_end());
        }
        let Some(name) = self.name().filter(|_| !job.started) else { return };
        if self == Messages::Salloc {
            note!("salloc: Pending job allocation {number}");
        }
        note!("{name}: job {number} queued and waiting for resources");
        if let Some(window) = &job.promise {
            note!("{name}: job {number}: {}", promised_text(window));
        }
    }

    /// Prints the new promise of a job that waits.
    pub(super) fn promised(self, job: i64, window: &Window) {
        match self.name() {
            Some(name) => note!("{name}: job {job}: {}", promised_text(window)),
            None if self == Messages::Own => note!("job {job}: {}", promised_text(window)),
            None => {}
        }
    }

    /// Prints that a job has started, after it `waited`.
    pub(super) fn started(self, job: i64, waited: bool) {
        if let Some(name) = self.name().filter(|_| waited) {
            note!("{name}: job {job} has been allocated resources");
        }
        if self == Messages::Salloc {
            note!("salloc: Granted job allocation {job}");
        }
    }

    /// Prints until when a terminal lasts.
    pub(super) fn terminal(self, job: i64, end: jiff::Timestamp) {
        if self != Messages::Quiet {
            let name = self.name().map(|name| format!("{name}: ")).unwrap_or_default();
            note!("{name}job {job}: runs until {} at the latest; Enter ~ . detaches", local(end));
        }
    }

    /// Prints the end of a job.
    pub(super) fn ended(self, job: &JobView) {
        let number = job.number;
        match (self, &job.phase) {
            (Messages::Quiet | Messages::Srun { ends: false, .. }, _)
            | (Messages::Own, Phase::Done { .. }) => {}
            (Messages::Own, phase) => note!("job {number}: {}", ended_text(phase, Instants::exact())),
            (Messages::Salloc, Phase::Done { .. } | Phase::Killed { by: KilledBy::User, .. }) => {
                note!("salloc: Relinquishing job allocation {number}");
            }
            (Messages::Salloc, phase) => {
                note!("salloc: job {number}: {}", ended_text(phase, Instants::exact()));
                note!("salloc: Relinquishing job allocation {number}");
                note!("salloc: Job allocation {number} has been revoked.");
            }
            (Messages::Srun { .. }, Phase::Done { exit, .. }) => note_end_of_task(&host(), 0, *exit),
            (Messages::Srun { .. }, phase) => {
                note!("srun: error: job {number}: {}", ended_text(phase, Instants::exact()));
            }
        }
    }
}
