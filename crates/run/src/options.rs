//! The options of a run.

use std::sync::Arc;

use miserly_core::{EventOrder, Machine, Procs};
use miserly_machine_file::MachineSpec;
use miserly_sim::{BatchRule, Grouping};
use miserly_workload::{ArrivalScaling, Estimates, FieldFilter, JobOptions, Overrun, ProcsField};

use crate::error::SetupError;
use crate::opportunistic::OpportunisticOptions;

/// The options of a run: the machine, the jobs of the log, and the measures.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The processors of the machine, in place of those of the log's header.
    pub procs: Option<Procs>,
    /// The machine; goes before `procs`.
    pub machine: Option<MachineSpec>,
    /// The time limits that the policy sees.
    pub estimates: Estimates,
    /// The fate of a job that reaches its time limit in the log.
    pub overrun: Overrun,
    /// How the events of one instant reach the policy.
    pub instants: EventOrder,
    /// Which field is a job's size, where both are known.
    pub procs_field: ProcsField,
    /// Jobs to leave out: those that meet any of these.
    pub drop: Vec<FieldFilter>,
    /// Skip and count malformed lines instead of stopping at the first.
    pub lenient: bool,
    /// Only jobs submitted then or later, in the log's seconds.
    pub from: Option<i64>,
    /// Only jobs submitted before then, in the log's seconds.
    pub to: Option<i64>,
    /// Only the jobs of these users, if any is named.
    pub users: Vec<u32>,
    /// Only the jobs of these queues, if any is named.
    pub queues: Vec<u32>,
    /// The change of the submit times.
    pub arrivals: ArrivalScaling,
    /// Simulate, but do not measure, jobs submitted within so many seconds of the first one.
    pub warmup: i64,
    /// Measure the jobs of these batches by termination, in place of those behind the warm-up.
    pub batches: Option<BatchRule>,
    /// The seed of random draws.
    pub seed: u64,
    /// Opportunistic and interactive work, on machines with pools.
    pub opportunistic: OpportunisticOptions,
    /// Whether the result has distributions and series over time.
    pub details: bool,
    /// The groupings of the jobs that are measured too.
    pub by: Vec<Grouping>,
}

impl RunOptions {
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        match (self.from, self.to) {
            (Some(from), Some(to)) if from >= to => Err(SetupError::EmptySlice { from, to }),
            _ => Ok(()),
        }
    }

    /// How the lines of a log become jobs of `machine`, which has `procs` processors.
    pub(crate) fn job_options(&self, procs: Procs, machine: &Arc<Machine>) -> JobOptions {
        JobOptions {
            procs,
            machine: (!machine.is_plain()).then(|| Arc::clone(machine)),
            pools: Arc::default(),
            procs_field: self.procs_field,
            drop: self.drop.clone(),
            overrun: self.overrun,
            estimates: self.estimates,
            seed: self.seed,
            lenient: self.lenient,
            from: self.from,
            to: self.to,
            users: self.users.clone(),
            queues: self.queues.clone(),
            arrivals: self.arrivals,
            keep_records: false,
        }
    }
}
