//! Conditions on the ends of other jobs: the jobs that they mean, and the end of a job whose conditions cannot hold.
//!
//! A job waits for all jobs in [`Record::after`]. Those of them that have to succeed or to fail are in
//! [`Record::after_ok`] and [`Record::after_not_ok`] as well. A job leaves these lists when it has ended as required.
//! If it has ended in another way, the job that waits for it ends as failed, before the round of that end is played.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use miserly_api::model::{Condition, Exit, Failure, KilledBy, Phase, Problem, Submission, When};
use miserly_core::{Round, Time};

use crate::batch::PendingBatch;
use crate::dependency::expected_ends::ExpectedEnds;
use crate::dependency::targets;
use crate::dependency::targets::{FIELD, Target, TargetSearch};
use crate::{
    Caller, EndedFilter, EndedJobs, Ending, Engine, JobRow, JobState, Journal, JournalError, Launcher, Now,
    Record, Snapshot,
};

/// The most jobs that all waiting jobs of a user wait for, counted for each of them.
pub(crate) const MOST: usize = 200_000;

/// The jobs that the new jobs of a submission wait for.
#[derive(Debug, Default)]
pub(crate) struct Required {
    common: Waits,
    /// Arrays of which each new job waits for the job with its own index: the number of the array, and its jobs by index.
    each: Vec<(i64, BTreeMap<u32, Target>)>,
}

/// The jobs that one job waits for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    pub(crate) after: BTreeSet<i64>,
    pub(crate) ok: BTreeSet<i64>,
    pub(crate) not_ok: BTreeSet<i64>,
}

impl Waits {
    /// Adds a job, unless it has ended as required.
    ///
    /// A job that has ended in another way is added, too. Then the condition fails as soon as the new job is accepted, as it
    /// would if that end came later.
    fn add(&mut self, when: When, target: Target) {
        let required = match when {
            When::Any => None,
            When::Ok | When::EachOk => Some(true),
            When::NotOk => Some(false),
        };
        let holds = target.ended_ok.is_some_and(|ok| required.is_none_or(|required| required == ok));
        if holds {
            return;
        }
        self.after.insert(target.number);
        match required {
            Some(true) => drop(self.ok.insert(target.number)),
            Some(false) => drop(self.not_ok.insert(target.number)),
            None => {}
        }
    }
}

impl Required {
    /// Returns the jobs that the new job with an index waits for.
    ///
    /// # Errors
    /// If an array has no job with that index.
    pub(crate) fn waits(&self, index: Option<u32>) -> Result<Waits, Problem> {
        let mut waits = self.common.clone();
        for (array, targets) in &self.each {
            let Some(index) = index else {
                let message =
                    "each-ok waits for the job with the same index, so the new job has to be an array";
                return Err(Problem::with_field(FIELD, message));
            };
            let Some(target) = targets.get(&index) else {
                let message = format!("array {array} has no job with index {index} to wait for");
                return Err(Problem::with_field(FIELD, message));
            };
            waits.add(When::EachOk, *target);
        }
        Ok(waits)
    }
}

impl Snapshot {
    /// Returns the jobs that the new jobs of a submission wait for.
    ///
    /// # Errors
    /// If there is no such job, or the result of a job is not known any more.
    pub(crate) fn required(
        &self,
        caller: &Caller,
        submission: &Submission,
        jobs: usize,
        ended: &dyn EndedJobs,
    ) -> Result<Required, Problem> {
        let mut search = TargetSearch::new(self, caller, &submission.conditions, ended)?;
        let mut required = Required::default();
        for number in submission.after.iter().collect::<BTreeSet<_>>() {
            for target in search.targets("after", *number, None, When::Any)? {
                required.common.add(When::Any, target);
            }
        }
        let mut seen: Vec<(i64, Option<u32>, When)> = vec![];
        for condition in &submission.conditions {
            let Condition { index, when, .. } = *condition;
            let number = search.number(condition)?;
            if seen.contains(&(number, index, when)) {
                continue;
            }
            seen.push((number, index, when));
            let targets = search.targets(FIELD, number, index, when)?;
            if when == When::EachOk {
                let by_index = targets.into_iter().filter_map(|target| Some((target.index?, target)));
                required.each.push((number, by_index.collect()));
            } else {
                for target in targets {
                    required.common.add(when, target);
                }
            }
        }
        let waits = required.common.after.len() + required.each.len();
        if waits.saturating_mul(jobs) > MOST {
            let message = format!(
                "{jobs} jobs would wait for {waits} jobs each; let one job wait for these, and the new jobs for that one"
            );
            return Err(Problem::with_field(FIELD, message));
        }
        Ok(required)
    }
}

/// The finished jobs, with those of the batch that is not durable yet.
pub(crate) struct EndedNow<'e, J> {
    pub(crate) journal: &'e J,
    pub(crate) batch: &'e PendingBatch,
}

impl<J: Journal> EndedJobs for EndedNow<'_, J> {
    fn job(&self, number: i64) -> Result<Option<JobRow>, JournalError> {
        match self.batch.finished.get(&number) {
            Some(record) => record.row().map(Some),
            None => Journal::job(self.journal, number),
        }
    }

    fn ended_jobs(&self, filter: &EndedFilter) -> Result<Vec<JobRow>, JournalError> {
        let rows = Journal::ended_jobs(self.journal, filter)?;
        let mut rows: BTreeMap<i64, JobRow> = rows.into_iter().map(|row| (row.number, row)).collect();
        let admits = |record: &&Record| {
            let of_array = |array| record.number == array || record.array.is_some_and(|of| of.first == array);
            filter.uid.is_none_or(|uid| uid == record.uid)
                && filter.queue.as_ref().is_none_or(|queue| **queue == *record.queue)
                && filter.array.is_none_or(of_array)
        };
        for record in self.batch.finished.values().filter(admits) {
            rows.insert(record.number, record.row()?);
        }
        let mut rows: Vec<JobRow> = rows.into_values().collect();
        let limit = filter.limit.map_or(rows.len(), |limit| limit as usize);
        Ok(rows.split_off(rows.len().saturating_sub(limit)))
    }

    fn ended_from(&self, from: i64, limit: u32) -> Result<Vec<JobRow>, JournalError> {
        let rows = Journal::ended_from(self.journal, from, limit)?;
        let mut rows: BTreeMap<i64, JobRow> = rows.into_iter().map(|row| (row.number, row)).collect();
        for (number, record) in self.batch.finished.range(from..).take(limit as usize) {
            rows.insert(*number, record.row()?);
        }
        Ok(rows.into_values().take(limit as usize).collect())
    }
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Returns the finished jobs, with those of this batch.
    pub(crate) fn ended_now(&self) -> EndedNow<'_, J> {
        EndedNow { journal: &self.journal, batch: &self.batch }
    }

    /// Removes finished jobs from all dependencies. Ends the jobs that wait for another end of them as failed, and so those
    /// that wait for these in turn.
    ///
    /// # Errors
    /// If the end of a job cannot be read.
    pub(crate) fn resolve_dependencies(
        &mut self,
        now: Now,
        at: Time,
        round: &mut Round,
    ) -> Result<(), JournalError> {
        let mut ends = BTreeMap::new();
        let mut finished = self.dependencies.finished(|job| self.is_unfinished(job));
        while !finished.is_empty() {
            for (number, others) in self.dependencies.remove_finished(&std::mem::take(&mut finished)) {
                let unmet = self.unmet(number, &others, &mut ends)?;
                if let Some(record) = self.jobs.get_mut(number) {
                    record.remove_dependencies(&others);
                    self.batch.touch(number);
                }
                if let Some(message) = unmet {
                    self.fail_dependent(now, at, number, message, round);
                    // Then others may wait for this end.
                    finished.extend(Some(number).filter(|number| !self.is_unfinished(*number)));
                }
            }
        }
        Ok(())
    }

    /// Returns why a job can never run after others have ended. An unknown result is neither a success nor a failure.
    fn unmet(
        &self,
        number: i64,
        others: &BTreeSet<i64>,
        ends: &mut BTreeMap<i64, Option<Phase>>,
    ) -> Result<Option<String>, JournalError> {
        let Some(record) = self.jobs.get(number) else { return Ok(None) };
        for (other, success) in record.wanted(others) {
            let end = match ends.entry(other) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(self.end_of(other)?),
            };
            if end.as_ref().map(Phase::succeeded) != Some(success) {
                let (text, wanted) = (end_text(end.as_ref()), if success { "success" } else { "failure" });
                return Ok(Some(format!("job {other} {text}, and this job waits for its {wanted}")));
            }
        }
        Ok(None)
    }

    /// Returns the end of a finished job, if it is known.
    fn end_of(&self, number: i64) -> Result<Option<Phase>, JournalError> {
        if let Some(record) = self.batch.finished.get(&number) {
            return Ok(record.finished_phase().cloned());
        }
        match Journal::job(&self.journal, number) {
            Ok(row) => Ok(row.as_ref().and_then(targets::end_of)),
            // The next daemon would find the same damage.
            Err(JournalError::Damaged(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Ends a job that waits, and that can never run.
    ///
    /// One that has begun all the same, as its earliest start may be a little before the end of the other job, is cancelled.
    fn fail_dependent(&mut self, now: Now, at: Time, number: i64, message: String, round: &mut Round) {
        if let Some(record) = self.jobs.get_mut(number) {
            // Its user set the condition.
            record.promise.withdraw(&mut self.values.promises, number, now.wall);
        }
        if self.end_run(number, Ending::Cancelled) {
            return;
        }
        let Some(record) = self.jobs.get(number) else { return };
        if record.is_suspended_without_attempt() {
            self.end_without_attempt(now, at, number, round);
        } else if record.is_in_ledger() {
            round.withdrawn.extend(self.jobs.handle(number));
        }
        self.finish(number, Phase::Failed { at: now.wall_at(at), why: Failure::Dependency, message });
    }
}

impl Record {
    /// Returns those of some jobs that have to succeed (`true`) or to fail, by number.
    fn wanted(&self, others: &BTreeSet<i64>) -> BTreeSet<(i64, bool)> {
        let of = |list: &[i64], success: bool| -> Vec<(i64, bool)> {
            list.iter().filter(|other| others.contains(other)).map(|other| (*other, success)).collect()
        };
        of(&self.after_ok, true).into_iter().chain(of(&self.after_not_ok, false)).collect()
    }

    /// Removes jobs that have ended as required.
    fn remove_dependencies(&mut self, others: &BTreeSet<i64>) {
        for list in [&mut self.after, &mut self.after_ok, &mut self.after_not_ok] {
            list.retain(|other| !others.contains(other));
        }
    }

    fn finished_phase(&self) -> Option<&Phase> {
        match &self.state {
            JobState::Finished(phase) => Some(phase),
            _ => None,
        }
    }
}

/// Returns how a job ended, as the rest of a sentence after its number.
fn end_text(end: Option<&Phase>) -> String {
    let text = match end {
        Some(Phase::Done { exit: Exit::Code(0), .. }) => "succeeded",
        Some(Phase::Done { exit: Exit::Code(code), .. }) => return format!("ended with exit code {code}"),
        Some(Phase::Done { exit: Exit::Signal(signal), .. }) => {
            return format!("was ended by signal {signal}");
        }
        Some(Phase::Killed { by: KilledBy::Time, .. }) => "reached its time limit",
        Some(Phase::Killed { by: KilledBy::User, .. }) => "was cancelled",
        Some(Phase::Killed { by: KilledBy::Shutdown, .. }) => "was ended by a shutdown",
        Some(Phase::Killed { by: KilledBy::Memory, .. }) => "needed more memory than it had requested",
        Some(Phase::Killed { by: KilledBy::Idle, .. }) => "was ended because it was idle",
        Some(Phase::Failed { why: Failure::NotInTime, .. }) => "did not start in time",
        Some(Phase::Failed { .. }) => "could not run",
        Some(Phase::Lost { .. }) => "was lost",
        _ => "ended with an unknown result",
    };
    text.to_owned()
}
