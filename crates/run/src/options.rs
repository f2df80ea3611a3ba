//! The options of a run.

use miserly_core::{EventOrder, Procs};
use miserly_machine_file::MachineSpec;
use miserly_sim::{BatchRule, Grouping};
use miserly_workload::{Feedback, JobOptions};

use crate::error::SetupError;
use crate::opportunistic::OpportunisticOptions;

/// The options of a run: the machine, the jobs of the log, and the measures.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The processors of the machine, in place of those of the log's header.
    pub procs: Option<Procs>,
    /// The machine; goes before `procs`.
    pub machine: Option<MachineSpec>,
    /// How the lines of the log become jobs. [`RunSetup`](crate::RunSetup) sets the machine and its pools.
    pub jobs: JobOptions,
    /// Users whose jobs are used, by number or by name in the header; besides those of `jobs`.
    pub users: Vec<String>,
    /// Users whose jobs are left out, by number or by name in the header.
    pub without_users: Vec<String>,
    /// Queues whose jobs are used, by number or by name in the header; besides those of `jobs`.
    pub queues: Vec<String>,
    /// How a job finds the earlier one after whose end it is submitted, in place of the submissions of the log.
    pub feedback: Option<Feedback>,
    /// How the events of one instant reach the policy.
    pub event_order: EventOrder,
    /// Simulate, but do not measure, jobs submitted within so many seconds of the first one; that of the log's header if none is
    /// given.
    pub warmup: Option<i64>,
    /// Measure the jobs of these batches by termination, in place of those behind the warm-up.
    pub batches: Option<BatchRule>,
    /// Opportunistic and interactive work, on machines with pools.
    pub opportunistic: OpportunisticOptions,
    /// Whether the result has distributions and series over time.
    pub details: bool,
    /// The groupings of the jobs that are measured too.
    pub by: Vec<Grouping>,
}

impl RunOptions {
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        match (self.jobs.from, self.jobs.to) {
            (Some(from), Some(to)) if from >= to => Err(SetupError::EmptySlice { from, to }),
            _ => Ok(()),
        }
    }
}
