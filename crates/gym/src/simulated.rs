//! Windows under the policies of the simulator.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use miserly_policies::PolicySpec;
use miserly_run::{RunOptions, RunSetup, SetupError};
use miserly_workload::{JobOptions, Overrun, Trace};

use crate::episode::bounded_slowdown;
use crate::log::{Job, JobLog};
use crate::score::run_window;

/// A window whose jobs have starts.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The jobs with their starts, in seconds, in the order of their submissions.
    pub jobs: Vec<(Job, f64)>,
}

impl Scheduled {
    /// Returns the mean bounded slowdown.
    pub fn mean_bounded_slowdown(&self) -> f64 {
        let slowdowns = self.jobs.iter().map(|(job, start)| bounded_slowdown(job, *start));
        slowdowns.sum::<f64>() / self.jobs.len() as f64
    }
}

/// Schedules a window by a policy of the simulator. Jobs run past their estimates, and the machine is empty at first.
///
/// # Errors
/// If the policy does not run on a plain machine.
pub fn schedule_with(
    policy: &PolicySpec,
    log: &JobLog,
    window: Range<usize>,
) -> Result<Scheduled, SetupError> {
    let jobs = &log.jobs[window];
    let mut text = format!("; MaxProcs: {}\n", log.procs);
    for job in jobs {
        let Job { number, submit, runtime, estimate, procs, labels: [memory, user, group, executable] } = job;
        let _ = writeln!(
            text,
            "{number} {submit} -1 {runtime} {procs} -1 -1 {procs} {estimate} {memory} 1 {user} {group} {executable} -1 -1 -1 -1"
        );
    }
    let options = RunOptions {
        jobs: JobOptions { overrun: Overrun::Run, ..JobOptions::default() },
        warmup: Some(0),
        ..RunOptions::default()
    };
    let setup = RunSetup::new(Trace::memory(log.name.clone(), text.into_bytes()), options)?;
    let columns = run_window(&setup, policy)?;
    let mut starts: BTreeMap<_, _> = columns.number.into_iter().zip(columns.start).collect();
    let jobs = jobs.iter().filter_map(|job| starts.remove(&job.number).map(|start| (*job, start)));
    Ok(Scheduled { jobs: jobs.collect() })
}
