//! Jobs without a usable record: rows that cannot be read, and attempts that run although the state does not have them.
//!
//! Neither stops the daemon. An unreadable row stays in the journal as it is, and its job does not run. An adopted attempt keeps
//! its processors, its GPUs and its memory until it ends: the pools do not have them, so no promise is built on them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use miserly_core::Time;

use crate::{Attempt, JobRow, Record, Run};

/// The problem of an attempt that the state does not have.
pub(crate) const UNKNOWN: &str = "the state does not have it";

/// An attempt that runs and of which the state has no usable record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adoption {
    /// The attempt.
    pub attempt: Attempt,
    /// The name of the job.
    pub name: String,
    /// The queue of the job, if it is known.
    pub queue: Option<String>,
    /// The processors of its window, by number; none if it has no window.
    pub cpus: Vec<u32>,
    /// Its GPUs, by index.
    pub gpus: Vec<u32>,
    /// Its memory, in kilobytes.
    pub memory: u64,
    /// The end of its window, if it has one.
    pub end: Option<Time>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The working directory.
    pub directory: PathBuf,
}

/// The jobs without a usable record.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnrecordedJobs {
    /// Rows of unfinished jobs that cannot be read, by number.
    unreadable: BTreeMap<i64, JobRow>,
    adopted: BTreeMap<Attempt, Adoption>,
    /// Jobs that cannot be placed.
    pub(crate) aside: SetAside,
}

impl UnrecordedJobs {
    /// Replaces the rows that cannot be read.
    pub(crate) fn set_unreadable(&mut self, rows: Vec<JobRow>) {
        self.unreadable = rows.into_iter().map(|row| (row.number, row)).collect();
    }

    /// Returns whether a job has not finished, as far as it is known.
    pub(crate) fn contains(&self, job: i64) -> bool {
        self.unreadable.contains_key(&job) || self.aside.record(job).is_some() || self.attempt(job).is_some()
    }

    /// Returns the memory of the adopted attempts, in kilobytes.
    pub(crate) fn memory(&self) -> u64 {
        self.adopted.values().map(|adoption| adoption.memory).sum()
    }

    /// Returns whether an adopted attempt has processors.
    pub(crate) fn has_cpus(&self) -> bool {
        self.adopted.values().any(|adoption| !adoption.cpus.is_empty())
    }

    /// Returns the unfinished jobs that cannot be read and do not run, by number.
    pub(crate) fn unreadable_waiting(&self) -> impl Iterator<Item = i64> {
        self.unreadable.keys().copied().filter(|job| self.attempt(*job).is_none())
    }

    /// Returns the row of an unfinished job that cannot be read.
    pub(crate) fn unreadable(&self, job: i64) -> Option<&JobRow> {
        self.unreadable.get(&job)
    }

    /// Returns the rows of unfinished jobs that cannot be read, by number.
    pub(crate) fn unreadable_rows(&self) -> impl Iterator<Item = &JobRow> {
        self.unreadable.values()
    }

    /// Returns the adopted attempts.
    pub(crate) fn adopted(&self) -> impl Iterator<Item = &Adoption> {
        self.adopted.values()
    }

    /// Returns the last adopted attempt of a job.
    pub(crate) fn attempt(&self, job: i64) -> Option<&Adoption> {
        let (first, last) = (Attempt { job, nth: 0 }, Attempt { job, nth: u32::MAX });
        self.adopted.range(first..=last).next_back().map(|(_, adoption)| adoption)
    }

    /// Adopts attempts.
    pub(crate) fn adopt(&mut self, adoptions: impl IntoIterator<Item = Adoption>) {
        self.adopted.extend(adoptions.into_iter().map(|one| (one.attempt, one)));
    }

    /// Returns whether an attempt is adopted.
    pub(crate) fn is_adopted(&self, attempt: Attempt) -> bool {
        self.adopted.contains_key(&attempt)
    }

    /// Removes an adopted attempt.
    pub(crate) fn remove_adopted(&mut self, attempt: Attempt) -> Option<Adoption> {
        self.adopted.remove(&attempt)
    }

    /// Returns the processors of the adopted attempts.
    pub(crate) fn cpus(&self) -> BTreeSet<u32> {
        self.adopted.values().flat_map(|adoption| adoption.cpus.iter().copied()).collect()
    }

    /// Returns the GPUs of the adopted attempts.
    pub(crate) fn gpus(&self) -> BTreeSet<u32> {
        self.adopted.values().flat_map(|adoption| adoption.gpus.iter().copied()).collect()
    }

    /// Returns the jobs.
    pub(crate) fn numbers(&self) -> BTreeSet<i64> {
        self.unreadable.keys().copied().chain(self.adopted.keys().map(|attempt| attempt.job)).collect()
    }

    /// Returns why a job has no usable record, as a sentence about the job.
    pub(crate) fn problem(&self, job: i64) -> String {
        let problem = self.unreadable.get(&job).and_then(|row| row.problem.as_ref());
        match (problem, self.aside.jobs().find(|(record, _)| record.number == job)) {
            (Some(problem), _) => format!("its record cannot be read ({problem})"),
            (_, Some((_, reason))) => format!("it is set aside until its attempt has ended ({reason})"),
            _ => UNKNOWN.to_owned(),
        }
    }
}

/// The jobs that are set aside.
#[derive(Clone, Debug, Default)]
pub(crate) struct SetAside {
    /// Why jobs are set aside. A load leaves them out of the ledgers.
    reasons: BTreeMap<i64, String>,
    /// The jobs that the last load left out and that are not held, with the reasons.
    left_out: BTreeMap<i64, (Record, String)>,
}

impl SetAside {
    /// Returns why a job in a ledger is set aside.
    pub(crate) fn reason(&self, record: &Record) -> Option<&String> {
        self.reasons.get(&record.number).filter(|_| record.is_in_ledger())
    }

    /// Replaces the jobs that a load leaves out.
    pub(crate) fn leave_out(&mut self, jobs: Vec<(Record, String)>) {
        self.left_out = jobs.into_iter().map(|(record, reason)| (record.number, (record, reason))).collect();
    }

    /// Returns the record of a job that is set aside and whose attempt has not ended.
    pub(crate) fn record(&self, job: i64) -> Option<&Record> {
        self.left_out.get(&job).map(|(record, _)| record)
    }

    /// Returns the jobs whose attempts have not ended, and why they are set aside.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = &(Record, String)> {
        self.left_out.values()
    }

    /// Sets jobs aside, for a reason.
    pub(crate) fn add(&mut self, jobs: &[i64], reason: &str) {
        self.reasons.extend(jobs.iter().map(|job| (*job, reason.to_owned())));
    }

    /// Takes the record of a job whose attempt has ended, and why it was set aside.
    pub(crate) fn take(&mut self, job: i64) -> Option<(Record, String)> {
        self.left_out.remove(&job)
    }

    /// Returns the attempt of a job that is set aside, for changes.
    pub(crate) fn run_mut(&mut self, job: i64) -> Option<&mut Run> {
        self.left_out.get_mut(&job)?.0.run.as_mut()
    }
}
