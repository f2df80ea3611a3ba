//! The setup that holds now, and those before and after it.

use std::ops::Deref;
use std::sync::Arc;

use crate::journal::to_json;
use crate::{Journal, JournalError, Setup};

/// The key of the stored setup.
pub(crate) const SETUP: &str = "setup";

/// The setup that holds now. A batch may replace it, and a failed commit restores it.
#[derive(Debug)]
pub(crate) struct CurrentSetup {
    setup: Arc<Setup>,
    /// The setup at the last commit, if this batch has replaced it.
    durable: Option<Arc<Setup>>,
    /// The configured setup, until the jobs of a new daemon are under it.
    configured: Option<Setup>,
    /// The reason why the configured setup does not apply.
    problem: Option<String>,
}

impl Deref for CurrentSetup {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.setup
    }
}

impl CurrentSetup {
    /// Returns the setup of the last daemon, under which the stored jobs have their promises, or else the configured one.
    pub(crate) fn load(journal: &impl Journal, configured: Setup) -> Result<CurrentSetup, JournalError> {
        let stored: Option<serde_json::Result<Setup>> =
            journal.value(SETUP)?.map(|text| serde_json::from_str(&text));
        let last = match stored.transpose() {
            Ok(stored) => stored,
            Err(error) => {
                tracing::error!(
                    "this version cannot read the stored setup ({error}): its advance reservations are lost, and the \
                     configuration holds"
                );
                None
            }
        };
        let text = to_json(&configured)?;
        let last = match last {
            Some(last) if to_json(&last)? != text => Some(last),
            _ => None,
        };
        let (setup, configured) = match last {
            Some(last) => (last, Some(configured)),
            None => (configured, None),
        };
        Ok(CurrentSetup { setup: Arc::new(setup), durable: None, configured, problem: None })
    }

    /// Returns the setup, to share it.
    pub(crate) const fn shared(&self) -> &Arc<Setup> {
        &self.setup
    }

    /// Replaces the setup in this batch.
    pub(crate) fn replace(&mut self, setup: Setup) {
        let before = std::mem::replace(&mut self.setup, Arc::new(setup));
        self.durable.get_or_insert(before);
    }

    /// Notes that the setup is durable.
    pub(crate) fn commit(&mut self) {
        self.durable = None;
    }

    /// Restores the setup at the last commit.
    pub(crate) fn roll_back(&mut self) {
        if let Some(setup) = self.durable.take() {
            self.setup = setup;
        }
    }

    /// Takes the configured setup that does not hold yet.
    pub(crate) fn take_configured(&mut self) -> Option<Setup> {
        self.configured.take()
    }

    /// Returns the reason why the configured setup does not apply.
    pub(crate) const fn problem(&self) -> Option<&String> {
        self.problem.as_ref()
    }

    /// Notes why a configured setup does not apply, or that it does.
    pub(crate) fn set_problem(&mut self, problem: Option<String>) {
        self.problem = problem;
    }
}
