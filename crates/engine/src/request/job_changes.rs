//! Requests that change several jobs: cancel, hold and release, each in one round.
//!
//! The policy of a queue plans once after all withdrawals, so the cost is that of one change and of the jobs that change.

use std::collections::{BTreeMap, BTreeSet};

use miserly_api::model::{
    ChangeRequest, JobChange, JobRef, Phase, Problem, ProblemCode, PromiseChangeReason, Selection,
};
use miserly_core::{Effect, JobId, Round, Time};
use miserly_marks::mark;

use crate::dependency::expected_ends::ExpectedEnds;
use crate::request::handler::{Handled, RequestError};
use crate::request::selection::{Refusals, as_one};
use crate::submission::submit::refused;
use crate::{Caller, DaemonReply, Ending, Engine, JobState, Journal, Launcher, Now, Record};

type Changed = Result<Vec<i64>, RequestError>;

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Changes the jobs of a selection. Some may be refused: the reply lists them.
    pub(crate) fn change_jobs(&mut self, now: Now, caller: &Caller, request: &ChangeRequest) -> Handled {
        // What is due is played first: it may be the start of a job.
        let at = self.fresh(now)?;
        let mut selected = self.select(now, caller, &request.select)?;
        let jobs = std::mem::take(&mut selected.jobs);
        let (refused, move_promises) = (&mut selected.refused, request.move_promises);
        let changed = match &request.change {
            JobChange::Cancel => self.cancel_jobs(now, at, caller, &jobs, refused)?,
            JobChange::Hold => self.hold_jobs(now, at, caller, jobs, move_promises, refused)?,
            JobChange::Release => self.release_jobs(now, at, caller, &jobs, refused)?,
            change => self.change_each(now, caller, change, jobs, move_promises, refused)?,
        };
        Ok(DaemonReply::Changed(Box::new(selected.reply(changed))))
    }

    /// Changes one job, or one array, as [`change_jobs`](Engine::change_jobs).
    pub(crate) fn change_one(
        &mut self,
        now: Now,
        caller: &Caller,
        change: JobChange,
        select: Selection,
        move_promises: bool,
    ) -> Handled {
        match self.change_jobs(now, caller, &ChangeRequest { change, select, move_promises })? {
            DaemonReply::Changed(changed) => as_one(*changed),
            other => Ok(other),
        }
    }

    /// Changes each job by itself, where each change needs a plan of its own.
    fn change_each(
        &mut self,
        now: Now,
        caller: &Caller,
        change: &JobChange,
        jobs: BTreeSet<i64>,
        move_promises: bool,
        refused: &mut Refusals,
    ) -> Changed {
        let mut done = vec![];
        for job in jobs {
            let outcome = match change {
                JobChange::Requeue => self.requeue(now, caller, job, move_promises),
                JobChange::Extend(by) => self.extend(now, caller, job, *by),
                JobChange::Modify(changes) => self.modify(now, caller, job, changes, move_promises),
                JobChange::Cancel | JobChange::Hold | JobChange::Release => continue,
            };
            match outcome {
                Ok(_) => done.push(job),
                Err(RequestError::Refused(problem)) => refused.add(job, problem),
                Err(fatal) => return Err(fatal),
            }
        }
        Ok(done)
    }

    /// Ends or withdraws jobs.
    fn cancel_jobs(
        &mut self,
        now: Now,
        at: Time,
        caller: &Caller,
        jobs: &BTreeSet<i64>,
        refused: &mut Refusals,
    ) -> Changed {
        let (mut changed, mut over) = (vec![], vec![]);
        let mut round = Round::default();
        for job in jobs.iter().copied() {
            match self.cancel_unplaced(caller, job) {
                Ok(true) => {}
                Ok(false) => {
                    mark!("a job is cancelled");
                    self.judge_cancel(now, caller.uid, job);
                    if self.jobs.get(job).is_some_and(Record::is_suspended_without_attempt) {
                        over.push((job, self.end_without_attempt(now, at, job, &mut round)));
                    } else if !self.end_run(job, Ending::Cancelled) {
                        mark!("a waiting job is cancelled");
                        over.push((job, Phase::cancelled(now.wall)));
                        round.withdrawn.extend(self.jobs.handle(job));
                    }
                }
                Err(problem) => {
                    refused.add(job, problem);
                    continue;
                }
            }
            changed.push(job);
        }
        self.log_change_of_others(caller, "cancels", &changed);
        if !round.is_empty() {
            self.play(now, at, round)?;
        }
        for (job, phase) in over {
            self.finish(job, phase);
        }
        Ok(changed)
    }

    /// Ends the attempt of a job that is in no ledger: it is set aside or adopted. Returns whether the job is one.
    ///
    /// # Errors
    /// If the caller may not change the job, or if there is no such job.
    fn cancel_unplaced(&mut self, caller: &Caller, job: i64) -> Result<bool, Problem> {
        if self.cancel_aside(caller, job)? || self.cancel_adopted(caller, job)? {
            return Ok(true);
        }
        self.changeable_job(caller, job).map(|_| false)
    }

    /// Holds waiting jobs. They give up their windows.
    ///
    /// Promises to other jobs that wait for them break only with `move_promises`.
    fn hold_jobs(
        &mut self,
        now: Now,
        at: Time,
        caller: &Caller,
        mut jobs: BTreeSet<i64>,
        move_promises: bool,
        refused: &mut Refusals,
    ) -> Changed {
        jobs.retain(|job| {
            let checked = self.changeable_job(caller, *job).and_then(Record::check_can_hold);
            checked.map_err(|problem| refused.add(*job, problem)).is_ok()
        });
        if !move_promises {
            mark!("a hold without a word on promises");
            let kept = self.with_promised_dependents(&jobs);
            jobs.retain(|job| {
                let checked =
                    if kept.contains(job) { self.check_dependents(now, *job, false) } else { Ok(()) };
                checked.map_err(|problem| refused.add(*job, problem)).is_ok()
            });
        }
        let changed: Vec<i64> = jobs.into_iter().collect();
        self.log_change_of_others(caller, "holds", &changed);
        let queued = |job: &&i64| self.jobs.get(**job).is_some_and(Record::is_in_ledger);
        let withdrawn = changed.iter().filter(queued).filter_map(|job| self.jobs.handle(*job));
        let round = Round { withdrawn: withdrawn.collect(), ..Round::default() };
        if !round.is_empty() {
            self.play(now, at, round)?;
        }
        for job in &changed {
            self.set_held(now, caller, *job);
        }
        Ok(changed)
    }

    /// Records that a job that is in no ledger is held.
    fn set_held(&mut self, now: Now, caller: &Caller, job: i64) {
        if let Some(record) = self.jobs.get_mut(job) {
            mark!("a job is held");
            // The hold of an operator outlasts that of the job's user.
            let kept = record.held_by.filter(|_| record.state == JobState::Held && caller.uid == record.uid);
            record.held_by = kept.or(Some(caller.uid));
            record.state = JobState::Held;
            record.entry = None;
            let wall = now.wall;
            if caller.uid == record.uid {
                record.promise.give_up(&mut self.values.promises, job, wall, PromiseChangeReason::Held);
            } else {
                record.promise.move_plan(wall, Time::MAX, PromiseChangeReason::Operator);
            }
        }
        self.dependencies.untrack(job);
        self.dependencies.leave_place(job);
        if let Some(record) = self.jobs.get(job).filter(|record| !record.after.is_empty()) {
            self.dependencies.track(record);
        }
        self.batch.touch(job);
    }

    /// Returns those of some jobs for whose ends other jobs with promises wait, also through others.
    ///
    /// O(n) for n jobs that wait for some of them, and their dependencies.
    fn with_promised_dependents(&self, jobs: &BTreeSet<i64>) -> BTreeSet<i64> {
        let mut next: Vec<i64> = jobs.iter().copied().collect();
        let mut waiting = BTreeSet::new();
        while let Some(job) = next.pop() {
            next.extend(self.dependencies.dependents(job).filter(|number| waiting.insert(*number)));
        }
        let is_promised = |job: &i64| {
            self.entry(*job).is_some_and(|entry| entry.promise.is_some_and(|of| of.best < Time::MAX))
        };
        let mut next: Vec<i64> =
            waiting.iter().copied().filter(|job| !jobs.contains(job) && is_promised(job)).collect();
        let mut found: BTreeSet<i64> = next.iter().copied().collect();
        while let Some(job) = next.pop() {
            let before = self.jobs.get(job).map_or(&[][..], |record| &record.after);
            let before = before.iter().copied().filter(|job| jobs.contains(job) || waiting.contains(job));
            next.extend(before.filter(|number| found.insert(*number)));
        }
        found.retain(|job| jobs.contains(job));
        found
    }

    /// Releases held jobs, as if they were submitted now by their numbers. One that would have no window stays held.
    fn release_jobs(
        &mut self,
        now: Now,
        at: Time,
        caller: &Caller,
        jobs: &BTreeSet<i64>,
        refused: &mut Refusals,
    ) -> Changed {
        let mut by_queue: BTreeMap<usize, Vec<Record>> = BTreeMap::new();
        let mut changed = BTreeSet::new();
        for job in jobs {
            let checked = self.changeable_job(caller, *job);
            let checked = checked.and_then(|record| self.check_can_release(caller, record).map(|()| record));
            match checked {
                Ok(record) => {
                    mark!("a job is released");
                    changed.insert(*job);
                    let queue = self.setup.position(&record.queue).filter(|queue| !self.is_stopped(*queue));
                    if let Some(queue) = queue {
                        by_queue.entry(queue).or_default().push(record.clone().released());
                    }
                }
                Err(problem) => refused.add(*job, problem),
            }
        }
        for (queue, records) in by_queue {
            for (job, problem) in self.refused_entries(at, queue, &records)? {
                changed.remove(&job);
                refused.add(job, problem);
            }
        }
        let changed: Vec<i64> = changed.into_iter().collect();
        self.log_change_of_others(caller, "releases", &changed);
        let mut round = Round::default();
        for job in &changed {
            let Some(record) = self.jobs.remove(*job) else { continue };
            let mut record = record.released();
            record.promise.renew(PromiseChangeReason::Released);
            self.enter(at, record, &mut round);
        }
        if !round.is_empty() {
            self.play(now, at, round)?;
        }
        let (entered, gone): (Vec<i64>, Vec<i64>) =
            changed.into_iter().partition(|job| self.jobs.contains(*job));
        for job in gone {
            mark!("refused: a released job has no window");
            let message = format!("job {job} has no window any more, and is over");
            refused.add(job, Problem::new(ProblemCode::Refused, message));
        }
        Ok(entered)
    }

    /// Tries on a copy of a queue that these jobs enter it. Returns those that its policy would refuse.
    ///
    /// In a pool without changes, without a horizon and without deadlines it refuses none, and nothing is tried. A reservation is
    /// a pool that ends.
    fn refused_entries(
        &self,
        at: Time,
        queue: usize,
        records: &[Record],
    ) -> Result<BTreeMap<i64, Problem>, RequestError> {
        let of_queue = &self.setup.queues[queue];
        let horizon = of_queue.policy.horizon();
        if horizon.is_none()
            && !of_queue.pool.varies()
            && records.iter().all(|record| record.deadline.is_none())
        {
            return Ok(BTreeMap::new());
        }
        let base = self.jobs.unused_handle();
        let mut entered = self.dependencies.with_places(records);
        entered.retain(|record| self.enters_at_once(record, at));
        let submission = |(handle, record): (u32, &&Record)| {
            let request = record.request(&self.setup, 0, at, self.earliest_begin(record, at));
            miserly_core::Submission { job: JobId(handle), request }
        };
        let submitted = (base..).zip(&entered).map(submission).collect();
        let (_, effects) = self.play_trial(queue, at, Round { submitted, ..Round::default() })?;
        let number = |effect: &Effect| {
            let nth = usize::try_from(effect.job().0.checked_sub(base)?).ok()?;
            Some(entered.get(nth)?.number)
        };
        mark!("a release is tried");
        let refusals = effects.into_iter().filter(|effect| matches!(effect, Effect::Refused { .. }));
        let problem = |effect: Effect| {
            let number = number(&effect)?;
            Some((number, refused(&[(number, effect)], number, &self.unrecorded, horizon)?))
        };
        Ok(refusals.filter_map(problem).collect())
    }

    /// Logs that an operator changes jobs of other users: one line for each of these.
    fn log_change_of_others(&self, caller: &Caller, does: &str, jobs: &[i64]) {
        let mut by_user: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
        for record in jobs.iter().filter_map(|job| self.jobs.get(*job)) {
            if record.uid != caller.uid {
                by_user.entry(record.uid).or_default().push(record.number);
            }
        }
        let name = self.info.users.0;
        for (uid, jobs) in by_user {
            let ranges = miserly_api::model::job_ranges(&jobs);
            let ranges = ranges.iter().map(JobRef::to_string).collect::<Vec<_>>().join(", ");
            tracing::info!("operator {} {does} jobs of {}: {ranges}", name(caller.uid), name(uid));
        }
    }
}
