//! The settings of a run.

use miserly_workload::ArrivalScaling;
use serde::{Deserialize, Serialize};

use super::machine::MachineDoc;
use super::slicing::BatchSettings;
use crate::options::RunOptions;
use crate::setup::RunSetup;

/// The settings of a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SettingsDoc {
    /// Processors of the machine.
    pub procs: u32,
    /// The machine.
    pub machine: MachineDoc,
    /// Event order for simultaneous events.
    pub event_order: String,
    /// Treatment of a job at the log's own estimate.
    pub overrun: String,
    /// Runtime information given to the policy.
    pub estimates: String,
    /// Field of the log used as the size.
    pub procs_field: String,
    /// Filters.
    pub drop: Vec<String>,
    /// Earliest submission, in seconds.
    pub from: Option<i64>,
    /// Latest submission, excluded, in seconds.
    pub to: Option<i64>,
    /// Users whose jobs are simulated; all if empty.
    pub users: Vec<u32>,
    /// Queues whose jobs are simulated; all if empty.
    pub queues: Vec<u32>,
    /// Factor by which the load was scaled.
    pub scale_load: f64,
    /// Whether a factor was given, which may be 1. Tables then show it.
    #[serde(skip)]
    pub load_is_scaled: bool,
    /// Whether all jobs were submitted at time 0.
    pub offline: bool,
    /// Seconds by which submissions were moved at random, at most; if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shake: Option<u32>,
    /// How jobs found the earlier ones after whose ends they were submitted, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// Warm-up in seconds.
    pub warmup: i64,
    /// Measured terminations, if they are not all after the warm-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batches: Option<BatchSettings>,
    /// Seed of random draws.
    pub seed: u64,
    /// Use of idle resources on a machine with pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_use: Option<IdleUseDoc>,
    /// Whether malformed lines were skipped.
    pub lenient: bool,
}

/// The use of idle resources on a machine with pools.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct IdleUseDoc {
    /// Opportunistic execution: `by-policy` enables it if the policy of a queue needs it; `on` and
    /// `off` override that.
    pub opportunistic: String,
    /// Preemption lead time before promised starts, in seconds.
    pub preempt_lead_time: Option<i64>,
    /// Interactive work: a process with parameters, or a file with the SHA-256 of its bytes.
    pub interactive: Option<String>,
}

impl RunSetup {
    /// Returns the settings of the run, as documents have them.
    pub fn settings(&self) -> SettingsDoc {
        let RunOptions { jobs, event_order, warmup, batches, .. } = &self.options;
        SettingsDoc {
            procs: u32::try_from(jobs.procs).unwrap_or(u32::MAX),
            machine: MachineDoc::new(&self.spec),
            event_order: event_order.to_string(),
            overrun: jobs.overrun.to_string(),
            estimates: jobs.estimates.to_string(),
            procs_field: jobs.procs_field.to_string(),
            drop: jobs.drop.iter().map(ToString::to_string).collect(),
            from: jobs.from,
            to: jobs.to,
            users: jobs.users.clone(),
            queues: jobs.queues.clone(),
            scale_load: if let ArrivalScaling::Scaled(factor) = jobs.arrivals {
                factor.as_f64()
            } else {
                1.0
            },
            load_is_scaled: matches!(jobs.arrivals, ArrivalScaling::Scaled(_)),
            offline: jobs.arrivals == ArrivalScaling::Offline,
            shake: Some(jobs.shake).filter(|secs| *secs > 0),
            feedback: self.options.feedback.map(|feedback| feedback.to_string()),
            warmup: warmup.unwrap_or_default(),
            batches: batches.map(BatchSettings::from),
            seed: jobs.seed,
            idle_use: self.spec.pools.as_ref().map(|_| self.options.opportunistic.document()),
            lenient: jobs.lenient,
        }
    }
}
