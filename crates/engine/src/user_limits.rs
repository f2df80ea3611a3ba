//! Limits on what one user may have in the daemon.

use miserly_api::model::{Problem, ProblemCode};
use miserly_core::Span;
use miserly_units::{duration, memory};
use serde::{Deserialize, Serialize};

use crate::conditions::MOST;
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    jobs: u64,
    bytes: u64,
    /// In processor-ticks. No sum overflows: jobs are no larger than the machine.
    cpu_time: i128,
}

impl Usage {
    fn of(record: &Record) -> Usage {
        Usage {
            jobs: 1,
            bytes: submission_size::bytes(&record.submission) as u64,
            cpu_time: i128::from(record.submission.cpus).saturating_mul(record.time.into()),
        }
    }

    /// Adds a job.
    pub(crate) fn add(&mut self, record: &Record) {
        let Usage { jobs, bytes, cpu_time } = Usage::of(record);
        self.jobs += jobs;
        self.bytes = self.bytes.wrapping_add(bytes);
        self.cpu_time = self.cpu_time.wrapping_add(cpu_time);
    }

    /// Removes a job that was added.
    pub(crate) fn remove(&mut self, record: &Record) {
        let Usage { jobs, bytes, cpu_time } = Usage::of(record);
        self.jobs = self.jobs.saturating_sub(jobs);
        self.bytes = self.bytes.wrapping_sub(bytes);
        self.cpu_time = self.cpu_time.wrapping_sub(cpu_time);
    }
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Checks that a user with these further jobs is within the limits.
    pub(crate) fn check_user_limits(&self, caller: &Caller, records: &[Record]) -> Result<(), Problem> {
        self.check_waits(caller, records)?;
        if !self.has_limits(caller.uid) {
            return Ok(());
        }
        let mut usage = self.jobs.usage(caller.uid);
        for record in records {
            usage.add(record);
        }
        self.check_usage(usage)
    }

    /// Checks that the user of a job is within the limits with another record of it. A job that becomes smaller may exceed them.
    pub(crate) fn check_changed_usage(&self, before: &Record, after: &Record) -> Result<(), Problem> {
        if !self.has_limits(before.uid) || Usage::of(after).cpu_time <= Usage::of(before).cpu_time {
            return Ok(());
        }
        let mut usage = self.jobs.usage(before.uid);
        usage.remove(before);
        usage.add(after);
        self.check_usage(usage)
    }

    /// Returns whether the jobs of a user are limited. Those of root are not.
    fn has_limits(&self, uid: u32) -> bool {
        uid != 0 && self.setup.user_limits != UserLimits::default()
    }

    fn check_usage(&self, usage: Usage) -> Result<(), Problem> {
        let limits = self.setup.user_limits;
        let exceeded = if let Some(most) = limits.jobs.filter(|most| usage.jobs > *most) {
            format!("{} unfinished jobs, and user-limits.jobs is {most}", usage.jobs)
        } else if let Some(most) = limits.bytes.filter(|most| usage.bytes > *most) {
            format!("jobs of {}, and user-limits.bytes is {}", memory(usage.bytes), memory(most))
        } else if let Some(most) = limits.cpu_time.filter(|most| usage.cpu_time > i128::from(*most)) {
            let used = i64::try_from(usage.cpu_time).unwrap_or(i64::MAX);
            let [used, most] = [used, most].map(|ticks| duration(Span::from_ticks(ticks)));
            format!("unfinished jobs of {used} of processor time, and user-limits.cpu-time is {most}")
        } else {
            return Ok(());
        };
        let message = format!("you would have {exceeded}; submit it when some of your jobs have ended");
        Err(Problem::new(ProblemCode::Refused, message))
    }

    /// Checks that the jobs of a user, with these further ones, do not wait for too many others. No setting raises this limit.
    fn check_waits(&self, caller: &Caller, records: &[Record]) -> Result<(), Problem> {
        let new: usize = records.iter().map(|record| record.after.len()).sum();
        let all = self.dependencies.waits(caller.uid).saturating_add(new);
        if new == 0 || all <= MOST {
            return Ok(());
        }
        let message = format!(
            "your jobs would wait for {all} jobs in total, and the most is {MOST}; let one job wait for many, and others for that \
             one"
        );
        Err(Problem::new(ProblemCode::Refused, message))
    }
}
