//! Limits on what one user may have in the daemon.

use std::sync::Arc;

use miserly_api::model::{Problem, ProblemCode, Submission};
use miserly_core::Span;
use miserly_units::{duration, memory};
use serde::{Deserialize, Serialize};

use crate::{Caller, Engine, Journal, Launcher, Record, submission_size};

/// The limits for the unfinished jobs of each user. Root has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct UserLimits {
    /// The number of jobs.
    pub jobs: Option<u64>,
    /// The size of their commands, scripts and environments, in bytes.
    pub bytes: Option<u64>,
    /// Their processors times their time limits, in processor-ticks.
    pub cpu_time: Option<i64>,
}

/// What the unfinished jobs of a user have.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    jobs: u64,
    bytes: u64,
    cpu_time: i64,
}

impl Usage {
    fn add(&mut self, record: &Record) {
        let submission: &Arc<Submission> = &record.submission;
        let cpus = i64::try_from(submission.cpus).unwrap_or(i64::MAX);
        self.jobs += 1;
        self.bytes = self.bytes.saturating_add(submission_size::bytes(submission) as u64);
        self.cpu_time = self.cpu_time.saturating_add(cpus.saturating_mul(record.time));
    }
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Checks that a user with these further jobs is within the limits.
    pub(crate) fn check_user_limits(&self, caller: &Caller, records: &[Record]) -> Result<(), Problem> {
        let limits = self.setup.user_limits;
        if caller.uid == 0 || limits == UserLimits::default() {
            return Ok(());
        }
        let mut usage = Usage::default();
        let own = self.jobs.records().filter(|record| record.uid == caller.uid);
        own.chain(records).for_each(|record| usage.add(record));
        let exceeded = if let Some(most) = limits.jobs.filter(|most| usage.jobs > *most) {
            format!("{} unfinished jobs, and user-limits.jobs is {most}", usage.jobs)
        } else if let Some(most) = limits.bytes.filter(|most| usage.bytes > *most) {
            format!("jobs of {}, and user-limits.bytes is {}", memory(usage.bytes), memory(most))
        } else if let Some(most) = limits.cpu_time.filter(|most| usage.cpu_time > *most) {
            let [used, most] = [usage.cpu_time, most].map(|ticks| duration(Span::from_ticks(ticks)));
            format!("unfinished jobs of {used} of processor time, and user-limits.cpu-time is {most}")
        } else {
            return Ok(());
        };
        let message = format!("you would have {exceeded}; submit it when some of your jobs have ended");
        Err(Problem::new(ProblemCode::Refused, message))
    }
}
