//! Opportunistic and interactive work: options of runs on machines with pools.

use miserly_core::{OpportunisticConfig, Resources, Span};
use miserly_policies::PolicySpec;
use miserly_workload::Interactive;

use crate::document::IdleUseDoc;

/// The default preemption lead time, seconds: the same as the daemon's.
const LEAD: i64 = 5;

/// Opportunistic and interactive work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpportunisticOptions {
    /// Whether there are opportunistic jobs.
    pub mode: OpportunisticMode,
    /// Interactive work, if there is any.
    pub interactive: Option<Interactive>,
}

/// Whether waiting jobs run on idle processors ahead of their promised starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpportunisticMode {
    /// They do if the policy of a queue needs it ([`Needs::opportunistic`](miserly_policies::Needs)).
    #[default]
    ByPolicy,
    /// They do, and are parked that many seconds before their starts.
    Lead(i64),
    /// They do not.
    Off,
}

impl OpportunisticOptions {
    /// Returns the first of these options that is set, by its name on the command line.
    pub(crate) fn option(&self) -> Option<&'static str> {
        match self.mode {
            OpportunisticMode::Lead(_) => Some("--preempt-lead-time"),
            OpportunisticMode::Off => Some("--no-opportunistic"),
            OpportunisticMode::ByPolicy => self.interactive.as_ref().map(|_| "--interactive"),
        }
    }

    /// Returns the layer of opportunistic jobs for a machine with these resources, under queues of these policies.
    pub(crate) fn config<'a>(
        &self,
        mut policies: impl Iterator<Item = &'a PolicySpec>,
        machine: Resources,
    ) -> Option<OpportunisticConfig> {
        let secs = match self.mode {
            OpportunisticMode::ByPolicy => {
                policies.any(|policy| policy.needs().opportunistic).then_some(LEAD)?
            }
            OpportunisticMode::Lead(secs) => secs,
            OpportunisticMode::Off => return None,
        };
        Some(OpportunisticConfig { lead: Span::from_secs(secs).unwrap_or(Span::MAX), machine })
    }

    /// Returns the options as documents have them.
    pub(crate) fn document(&self) -> IdleUseDoc {
        let (opportunistic, preempt_lead_time) = match self.mode {
            OpportunisticMode::ByPolicy => ("by-policy", Some(LEAD)),
            OpportunisticMode::Lead(secs) => ("on", Some(secs)),
            OpportunisticMode::Off => ("off", None),
        };
        let interactive = self.interactive.as_ref().map(ToString::to_string);
        IdleUseDoc { opportunistic: opportunistic.to_owned(), preempt_lead_time, interactive }
    }
}
