//! Jobs without a usable record: rows that cannot be read, and attempts that run although the state does not have them.
//!
//! Neither stops the daemon. An unreadable row stays in the journal as it is, and its job does not run. An adopted attempt keeps
//! its processors and its memory until it ends: the pools do not have them, so no promise is built on them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use miserly_api::model::{Problem, ProblemCode};
use miserly_core::Time;

use crate::set_aside::SetAside;
use crate::{Attempt, BegunWindow, Caller, Ending, Engine, JobRow, Journal, Launcher, Run};

/// The problem of an attempt that the state does not have.
const UNKNOWN: &str = "the state does not have it";

/// An attempt that runs and of which the state has no usable record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adoption {
    /// The attempt.
    pub attempt: Attempt,
    /// The name of the job.
    pub name: String,
    /// The processors of its window, by number; none if it has no window.
    pub cpus: Vec<u32>,
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

    fn cpus(&self) -> BTreeSet<u32> {
        self.adopted.values().flat_map(|adoption| adoption.cpus.iter().copied()).collect()
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

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Adopts attempts that run and of which the state has no usable record. The launcher supervises them.
    pub fn adopt(&mut self, adoptions: Vec<Adoption>) {
        let adoptions = adoptions.into_iter().map(|one| (one.attempt, one));
        Arc::make_mut(&mut self.unrecorded).adopted.extend(adoptions);
        self.withhold_cpus();
    }

    /// Adopts the attempts that are in windows and whose jobs the system has not started: their ledger has other plans.
    pub(crate) fn adopt_begun(&mut self, begun: &[BegunWindow]) {
        for BegunWindow { attempt, cpus, end } in begun {
            if self.jobs.is_running(attempt.job) {
                continue;
            }
            let record = self.jobs.get(attempt.job);
            // A suspended job is in its window, too.
            let waits = |run: &Run| run.nth == attempt.nth && !run.in_window && run.ending.is_none();
            let is_aside = self.unrecorded.aside.record(attempt.job).is_some();
            if is_aside || record.is_some_and(|record| !record.run.as_ref().is_some_and(waits)) {
                continue;
            }
            let adoption = Adoption {
                attempt: *attempt,
                name: record.map(|record| record.name.to_string()).unwrap_or_default(),
                cpus: cpus.clone(),
                memory: record.map_or(0, |record| record.memory.kilobytes()),
                end: Some(*end).filter(|end| *end < Time::MAX),
                ..Adoption::default()
            };
            Arc::make_mut(&mut self.unrecorded).adopted.insert(*attempt, adoption);
            self.withhold_cpus();
        }
    }

    /// Ends the adoption of an attempt of a job with a record: it is over, or its window begins.
    pub(crate) fn release_adopted(&mut self, attempt: Attempt) {
        self.remove_adopted(attempt);
    }

    /// Removes an adopted attempt. Returns whether there was one.
    fn remove_adopted(&mut self, attempt: Attempt) -> bool {
        if !self.unrecorded.adopted.contains_key(&attempt) {
            return false;
        }
        Arc::make_mut(&mut self.unrecorded).adopted.remove(&attempt);
        self.withhold_cpus();
        true
    }

    /// Keeps the processors of the adopted attempts from all other jobs.
    fn withhold_cpus(&mut self) {
        self.cpus.withhold(self.unrecorded.cpus());
    }

    /// Ends the adoption of an attempt that is over. Its record stays if the row of its job cannot be read: a later reader finds the
    /// end there.
    pub(crate) fn end_adopted(&mut self, attempt: Attempt) {
        if self.remove_adopted(attempt) {
            tracing::warn!("job {}: its attempt {} is over; {}", attempt.job, attempt.nth, UNKNOWN);
        }
        if !self.unrecorded.unreadable.contains_key(&attempt.job) {
            self.forget(attempt);
        }
    }

    /// Logs the waiting jobs that cannot be read. Their promises are at risk until they can be.
    pub(crate) fn report_unreadable(&self) {
        for job in self.unrecorded.unreadable_waiting() {
            tracing::error!(
                "job {job}: {}; it does not run, and its promise is at risk",
                self.unrecorded.problem(job)
            );
        }
    }

    /// Returns the attempt of a job without a usable record that the caller may cancel, if there is one.
    pub(crate) fn adopted_attempt(&self, caller: &Caller, job: i64) -> Result<Option<Attempt>, Problem> {
        let Some(adoption) = self.unrecorded.attempt(job).filter(|_| !self.jobs.contains(job)) else {
            return Ok(None);
        };
        if !self.info.is_operator(caller) {
            let message = format!("job {job} has no record; only an operator can cancel it");
            return Err(Problem::new(ProblemCode::Forbidden, message));
        }
        Ok(Some(adoption.attempt))
    }

    /// Ends the attempt of a job without a usable record. Returns whether there is one.
    ///
    /// # Errors
    /// If there is one, and the caller is no operator.
    pub(crate) fn cancel_adopted(&mut self, caller: &Caller, job: i64) -> Result<bool, Problem> {
        let Some(attempt) = self.adopted_attempt(caller, job)? else { return Ok(false) };
        let kill = self.kill(Ending::Cancelled);
        self.batch.act(attempt, kill);
        Ok(true)
    }

    /// Returns the problem of a request to change a job without a usable record.
    pub(crate) fn unrecorded_problem(&self, job: i64) -> Option<Problem> {
        let message = || format!("job {job} cannot be changed: {}", self.unrecorded.problem(job));
        self.unrecorded.contains(job).then(|| Problem::new(ProblemCode::Conflict, message()))
    }
}
