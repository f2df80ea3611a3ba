//! What runs beside the windows of jobs: options of runs on machines with pools.

use miserly_core::{Filler, Resources, Span};
use miserly_policies::Chosen;
use miserly_report::IdleUseDoc;
use miserly_workload::Interactive;

/// So long before its promised start a job is parked, seconds, where nothing is said: as the daemon does.
const LEAD: i64 = 5;

/// What runs beside the windows of jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FillingOptions {
    /// Whether jobs run ahead of their starts.
    pub when: Filling,
    /// Interactive work, if there is any.
    pub interactive: Option<Interactive>,
}

/// Whether jobs run on idle processors ahead of their promised starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filling {
    /// They do if a queue has the policy `miser`.
    #[default]
    WithMiser,
    /// They do, and are parked so many seconds before their starts.
    Lead(i64),
    /// They do not.
    Off,
}

impl FillingOptions {
    /// The first of these options that was given, by its name on the command line.
    pub(crate) fn asked(&self) -> Option<&'static str> {
        match self.when {
            Filling::Lead(_) => Some("--parking-lead"),
            Filling::Off => Some("--no-early"),
            Filling::WithMiser => self.interactive.as_ref().map(|_| "--interactive"),
        }
    }

    /// What opportunistic work may use of a machine that has so much, under queues of these policies, if there is to be any.
    pub(crate) fn filler<'a>(
        &self,
        mut policies: impl Iterator<Item = &'a Chosen>,
        machine: Resources,
    ) -> Option<Filler> {
        let secs = match self.when {
            Filling::WithMiser => policies.any(|policy| policy.policy().name == "miser").then_some(LEAD)?,
            Filling::Lead(secs) => secs,
            Filling::Off => return None,
        };
        Some(Filler { lead: Span::from_secs(secs).unwrap_or(Span::MAX), machine })
    }

    /// As documents tell them.
    pub(crate) fn document(&self) -> IdleUseDoc {
        let (early, parking_lead) = match self.when {
            Filling::WithMiser => ("miser", Some(LEAD)),
            Filling::Lead(secs) => ("on", Some(secs)),
            Filling::Off => ("off", None),
        };
        let interactive = self.interactive.as_ref().map(ToString::to_string);
        IdleUseDoc { early, parking_lead, interactive }
    }
}
