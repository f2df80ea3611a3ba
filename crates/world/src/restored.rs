//! Copies of the state, and states that are older than their jobs.

use miserly_core::Span;
use miserly_launcher::UnknownAttempts;

use crate::checks::Watch;
use crate::journals::Backup;
use crate::world::{Checked, World};

/// A copy of the state, with what the users knew then.
#[derive(Clone, Debug)]
pub(crate) struct Restorable {
    journal: Backup,
    watch: Watch,
}

impl World {
    /// The operator copies the state of a daemon that runs.
    pub(crate) fn back_up(&mut self) -> Checked {
        if self.is_quiet() {
            self.backup = Some(Restorable { journal: self.journal.back_up()?, watch: self.watch.clone() });
        }
        Ok(())
    }

    /// The operator restores the last copy.
    pub(crate) fn restore(&mut self, sweep: bool) -> Checked {
        // A full disk refuses the copy.
        let Some(Restorable { journal, watch }) = self.backup.clone().filter(|_| !self.full) else {
            return Ok(());
        };
        self.stop()?;
        let running = self.machine.fresh_commands();
        self.journal.restore(&journal, &self.machine)?;
        self.watch.restore(&watch);
        self.places = self.places_now();
        self.unknown = if sweep { UnknownAttempts::End(Span::ZERO) } else { UnknownAttempts::Adopt };
        let started = self.start();
        self.unknown = UnknownAttempts::Adopt;
        started?;
        match running.into_iter().find(|attempt| !self.machine.runs(*attempt)).filter(|_| !sweep) {
            Some(ended) => Err(format!("the restore ended the command of {}.{}", ended.job, ended.nth)),
            None => Ok(()),
        }
    }
}
