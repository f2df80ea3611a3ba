//! The promises that a change of a job moves, from a trial on a copy of its queue.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use miserly_api::model::{JobChange, MovedPromise, Moves, Window};
use miserly_core::{EndHow, Ended, JobId, Round, Time};

use crate::request::extension::extension;
use crate::request::handler::{Handled, RequestError};
use crate::request::modify::CheckedChange;
use crate::request::trial::{TriedRound, latest_start};
use crate::{Caller, DaemonReply, Engine, Journal, Launcher, Now, Record};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Computes which promises a change of a job would move. Nothing changes.
    pub(crate) fn preview(&mut self, now: Now, caller: &Caller, job: i64, change: &JobChange) -> Handled {
        let at = self.fresh(now)?;
        let moves = match change {
            JobChange::Cancel => self.moves_of_cancel(now, at, caller, job)?,
            JobChange::Hold => self.moves_of_hold(now, at, caller, job)?,
            JobChange::Release => self.moves_of_release(now, at, caller, job)?,
            JobChange::Requeue => self.moves_of_requeue(now, at, caller, job)?,
            JobChange::Extend(by) => self.moves_of_extension(now, at, caller, job, *by)?,
            JobChange::Modify(changes) => {
                let checked = self.checked_change(now, at, caller, job, changes)?;
                let trial = self.try_change(at, &checked)?;
                let mut moves = self.moves_of_change(now, job, &checked, trial.as_ref());
                for number in self.moving_later(now, &checked, trial.as_ref()) {
                    self.add_dependents(now, &mut moves, number);
                }
                moves
            }
        };
        Ok(DaemonReply::Moves(Box::new(moves)))
    }

    fn moves_of_hold(&self, now: Now, at: Time, caller: &Caller, job: i64) -> Result<Moves, RequestError> {
        self.changeable_job(caller, job)?.check_can_hold()?;
        let withdrawing = |handle| Round { withdrawn: vec![handle], ..Round::default() };
        let mut moves = self.moves_without(now, at, job, &[], withdrawing)?;
        self.add_dependents(now, &mut moves, job);
        Ok(moves)
    }

    fn moves_of_cancel(&self, now: Now, at: Time, caller: &Caller, job: i64) -> Result<Moves, RequestError> {
        if self.adopted_attempt(caller, job)?.is_some() {
            return Ok(Moves { job, ..Moves::default() });
        }
        self.changeable_job(caller, job)?;
        let (waits, over) = (self.is_waiting(job), self.needing_success(job));
        let queue = self.place_of(job).map(|(_, queue)| queue);
        let leaving = over.iter().filter_map(|other| self.place_of(*other));
        let leaving = leaving.filter(|(_, of)| Some(*of) == queue).map(|(handle, _)| handle);
        let mut round = Round { withdrawn: leaving.collect(), ..Round::default() };
        let leave = |handle| {
            if waits {
                round.withdrawn.push(handle);
            } else {
                round.ended.push(Ended { job: handle, how: EndHow::Cancelled });
            }
            round
        };
        let moves = self.moves_without(now, at, job, &over, leave)?;
        Ok(Moves { over, ..moves })
    }

    /// Returns the jobs that can never run if a job does not succeed: those that wait for its success, and for theirs.
    fn needing_success(&self, job: i64) -> Vec<i64> {
        let mut found = BTreeSet::new();
        let mut next = vec![job];
        while let Some(other) = next.pop() {
            let needs =
                |number: &i64| self.jobs.get(*number).is_some_and(|record| record.after_ok.contains(&other));
            next.extend(
                self.dependencies.dependents(other).filter(needs).filter(|number| found.insert(*number)),
            );
        }
        found.into_iter().collect()
    }

    fn moves_of_release(&self, now: Now, at: Time, caller: &Caller, job: i64) -> Result<Moves, RequestError> {
        let record = self.changeable_job(caller, job)?;
        self.check_can_release(caller, record)?;
        let mut moves = Moves { job, ..Moves::default() };
        if let Some(trial) = self.try_release(at, record)? {
            moves.after = self.start_on(&trial, record).map(|start| record.window(now, start));
            self.add_moved(now, &mut moves, &trial, &[job]);
        }
        Ok(moves)
    }

    /// Returns the promises to other jobs than `over` that move if a job leaves its queue by a round. A stopped queue moves none.
    fn moves_without(
        &self,
        now: Now,
        at: Time,
        job: i64,
        over: &[i64],
        leave: impl FnOnce(JobId) -> Round,
    ) -> Result<Moves, RequestError> {
        let mut moves = Moves { job, before: self.present_window(now, job), ..Moves::default() };
        if let Some((handle, queue)) = self.place_of(job).filter(|(_, queue)| !self.is_stopped(*queue)) {
            let trial = self.try_round(queue, at, leave(handle))?;
            self.add_moved(now, &mut moves, &trial, over);
        }
        Ok(moves)
    }

    fn moves_of_requeue(&self, now: Now, at: Time, caller: &Caller, job: i64) -> Result<Moves, RequestError> {
        let record = self.changeable_job(caller, job)?;
        record.check_can_requeue()?;
        let before = self.present_window(now, job);
        if self.is_waiting(job) {
            // It keeps its window.
            return Ok(Moves { job, before, after: before, ..Moves::default() });
        }
        let mut moves = Moves { job, before, ..Moves::default() };
        if let Some(trial) = self.try_again(at, job)? {
            moves.after = self.start_on(&trial, record).map(|start| record.window(now, start));
            self.add_moved(now, &mut moves, &trial, &[job]);
        }
        self.add_dependents(now, &mut moves, job);
        Ok(moves)
    }

    fn moves_of_extension(
        &self,
        now: Now,
        at: Time,
        caller: &Caller,
        job: i64,
        by: f64,
    ) -> Result<Moves, RequestError> {
        let record = self.changeable_job(caller, job)?;
        let longer = extension(by)?;
        let before = self.present_window(now, job);
        let trial = self.tried_extension(at, record, longer)?;
        let added = SignedDuration::from_micros(longer.ticks());
        let extended = |window: Window| Window {
            end: window.end.checked_add(added).unwrap_or(Timestamp::MAX),
            ..window
        };
        let mut moves = Moves { job, before, after: before.map(extended), ..Moves::default() };
        if let Some(trial) = trial {
            self.add_moved(now, &mut moves, &trial, &[job]);
        }
        Ok(moves)
    }

    /// Returns the promises that a checked change moves. `trial` is its result on a copy.
    pub(crate) fn moves_of_change(
        &self,
        now: Now,
        job: i64,
        checked: &CheckedChange,
        trial: Option<&TriedRound>,
    ) -> Moves {
        let before = self.present_window(now, job);
        let mut moves = Moves { job, before, ..Moves::default() };
        let Some(trial) = trial else {
            moves.after = before;
            return moves;
        };
        let changed = checked.records();
        for record in &changed {
            let start = self.start_on(trial, record);
            if record.number == job {
                moves.after = start.map(|start| record.window(now, start));
            } else if let Some(before) = self.present_window(now, record.number) {
                add(&mut moves, record.number, before.start, start.map(|start| now.wall_at(start)));
            }
        }
        let changed: Vec<i64> = changed.iter().map(|record| record.number).collect();
        self.add_moved(now, &mut moves, trial, &changed);
        moves
    }

    /// Adds the promises to other jobs of a queue that differ on a copy of it.
    fn add_moved(&self, now: Now, moves: &mut Moves, trial: &TriedRound, changed: &[i64]) {
        let (present, copy) = (self.system.queues()[trial.queue].ledger(), trial.ledger());
        let starts = present.waiting().filter_map(|job| {
            let slack = self.slack_of(self.number(job));
            Some((job, slack, latest_start(present, job, slack)?))
        });
        let mut differences = BTreeMap::new();
        for (job, slack, before) in starts {
            let (number, after) = (self.number(job), latest_start(copy, job, slack));
            if after != Some(before) && number != moves.job && !changed.contains(&number) {
                differences.insert(number, (before, after));
            }
        }
        for (number, (before, after)) in differences {
            add(moves, number, now.wall_at(before), after.map(|after| now.wall_at(after)));
        }
    }

    /// Returns the changed jobs whose promised ends are later on the copy, or unknown.
    pub(crate) fn moving_later(
        &self,
        now: Now,
        checked: &CheckedChange,
        trial: Option<&TriedRound>,
    ) -> Vec<i64> {
        let Some(trial) = trial else { return vec![] };
        let is_later = |record: &&Record| {
            let before = self.present_window(now, record.number);
            let after = self.start_on(trial, record).map(|start| record.window(now, start));
            before.is_some_and(|before| after.is_none_or(|after| after.end > before.end))
        };
        checked.records().into_iter().filter(is_later).map(|record| record.number).collect()
    }

    /// Adds the jobs with promises that wait for the end of a job, which is later or unknown then.
    fn add_dependents(&self, now: Now, moves: &mut Moves, job: i64) {
        for number in self.dependents(job) {
            let promise = self.entry(number).and_then(|entry| entry.promise);
            if let Some(promise) = promise.filter(|promise| promise.best < Time::MAX) {
                add(moves, number, now.wall_at(promise.best + self.slack_of(number)), None);
            }
        }
    }

    /// Returns the window of a job that is promised now, or that has begun.
    fn present_window(&self, now: Now, job: i64) -> Option<Window> {
        let (handle, queue) = self.place_of(job)?;
        let start = latest_start(self.system.queues()[queue].ledger(), handle, self.slack_of(job))?;
        Some(self.jobs.get(job)?.window(now, start))
    }

    /// Returns the latest start of a changed job on a copy. The new promise has the slack of its queue.
    fn start_on(&self, trial: &TriedRound, record: &Record) -> Option<Time> {
        trial.start_of(record.number, self.setup.promise_slack(&record.queue))
    }

    /// Returns the handle of a job, and the position of its queue.
    fn place_of(&self, job: i64) -> Option<(JobId, usize)> {
        let handle = self.jobs.handle(job)?;
        Some((handle, self.system.queue_of(handle)?))
    }
}

/// Adds a moved promise to those of a reply, or replaces it there.
fn add(moves: &mut Moves, job: i64, before: Timestamp, after: Option<Timestamp>) {
    if after == Some(before) || job == moves.job {
        return;
    }
    match moves.moved.binary_search_by_key(&job, |moved| moved.job) {
        Ok(at) => moves.moved[at].after = after,
        Err(_) if moves.moved.len() >= Moves::SHOWN => moves.count += 1,
        Err(at) => {
            moves.count += 1;
            moves.moved.insert(at, MovedPromise { job, before, after });
        }
    }
}
