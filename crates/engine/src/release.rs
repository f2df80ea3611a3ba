//! Release of jobs that wait for other jobs or for an instant.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{Amendment, Change, Fault, Round, Span, State, Submission, Time};

use crate::expected_ends::{ExpectedEnds, promised_end};
use crate::late_start::LONGEST_DELAY;
use crate::rounds::limit_end;
use crate::{Engine, EngineError, JobState, Journal, JournalError, Launcher, Now, Record, Setup};

/// The latest ends of jobs, by number, as far as they are known.
type Ends = BTreeMap<i64, Option<Time>>;

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Adjusts the earliest starts of dependent jobs until they agree with the expected ends of the jobs that they wait for.
    ///
    /// Promises that break have the cause of `fault`, if those ends moved because of one.
    ///
    /// A chain of n jobs takes n steps. After the first one, only jobs behind an end that moved are looked at.
    pub(crate) fn settle_dependencies(&mut self, now: Now, fault: Option<Fault>) -> Result<(), EngineError> {
        // Each step releases a job or adjusts its start, so there are at most as many steps as tracked jobs.
        let mut seen = None;
        for _ in 0..=self.dependencies.jobs().len() {
            let at = self.fresh(now)?;
            let mut round = Round::default();
            self.resolve_dependencies(now, at, &mut round)?;
            let ends = self.ends_of_required(at);
            let jobs = self.behind_moved_ends(seen.replace(ends.clone()).filter(|_| round.is_empty()), &ends);
            self.adjust_begins(jobs, at, &mut round);
            self.submit_due(at, &mut round);
            if round.is_empty() {
                return Ok(());
            }
            round.fault = fault;
            self.play(now, at, round)?;
        }
        Ok(())
    }

    /// Removes finished jobs from all dependencies. Adds to the round the jobs that can never run, and those with a changed
    /// earliest start.
    ///
    /// # Errors
    /// If the end of a job cannot be read.
    pub(crate) fn update_dependencies(
        &mut self,
        now: Now,
        at: Time,
        round: &mut Round,
    ) -> Result<(), JournalError> {
        self.resolve_dependencies(now, at, round)?;
        self.adjust_begins(self.dependencies.jobs(), at, round);
        Ok(())
    }

    /// Returns the latest ends of the jobs that others wait for.
    fn ends_of_required(&self, at: Time) -> Ends {
        self.dependencies.required().map(|number| (number, self.latest_end(number, at))).collect()
    }

    /// Returns the tracked jobs behind an end that has moved since the last look; all of them without one, or if a job is gone.
    fn behind_moved_ends(&self, before: Option<Ends>, ends: &Ends) -> Vec<i64> {
        let Some(before) = before.filter(|before| before.keys().all(|number| ends.contains_key(number)))
        else {
            return self.dependencies.jobs();
        };
        let mut behind = BTreeSet::new();
        for (number, end) in ends {
            let earlier = before.get(number).copied().flatten();
            if before.contains_key(number) && earlier == *end {
                continue;
            }
            let jobs = self.dependencies.dependents(*number);
            behind.extend(jobs.filter(|job| self.may_move(*job, earlier, *end)));
        }
        behind.into_iter().collect()
    }

    /// Returns whether another end of a job that this one waits for may change its earliest start, which is the latest of all ends.
    fn may_move(&self, number: i64, before: Option<Time>, end: Option<Time>) -> bool {
        let begin = self.entry(number).and_then(|entry| entry.request.constraints.begin);
        match (begin, before, end) {
            (Some(begin), Some(before), Some(end)) => before >= begin || end > begin,
            _ => true,
        }
    }

    /// Adds to the round the changed earliest starts of these tracked jobs, and those of them that can be planned now.
    fn adjust_begins(&mut self, jobs: Vec<i64>, at: Time, round: &mut Round) {
        for number in jobs {
            let Some(record) = self.jobs.get(number) else { continue };
            if record.is_in_ledger() {
                let depends = !record.after.is_empty();
                round.amended.extend(self.begin_amendment(record, at));
                if !depends {
                    self.dependencies.untrack(number);
                }
            } else if self.dependencies.is_blocked(number)
                && self.is_begin_known(record, at)
                && self.dependencies.has_place_for(record)
            {
                self.submit_record(at, number, round);
            }
        }
    }

    /// Submits the deferred jobs that are due.
    pub(crate) fn submit_due(&mut self, at: Time, round: &mut Round) {
        for number in self.dependencies.due(at) {
            self.submit_record(at, number, round);
        }
    }

    /// Submits a deferred job to its queue.
    pub(crate) fn submit_record(&mut self, at: Time, number: i64, round: &mut Round) {
        let Some(record) = self.jobs.get(number) else { return };
        let begin = self.earliest_begin(record, at);
        // A setup contains the queues of all jobs.
        let Some(queue) = self.setup.position(&record.queue) else { return };
        let job = self.jobs.handles_mut().assign(number);
        let Some(record) = self.jobs.get_mut(number) else { return };
        record.state = JobState::Queued;
        record.cleanup_time = Some(self.setup.cleanup_time.ticks());
        let request = record.request(&self.setup, queue, at, begin);
        self.dependencies.untrack(number);
        self.dependencies.take_place(record);
        if !record.after.is_empty() {
            self.dependencies.track(record);
        }
        self.batch.touch(number);
        round.submitted.push(Submission { job, request });
    }

    /// Returns the amendment of the earliest start of a queued job, if it changes.
    ///
    /// Behind an overdue job all plans move with each instant. A small delay is therefore no change before the start is due.
    fn begin_amendment(&self, record: &Record, at: Time) -> Option<Amendment> {
        let begin = self.earliest_begin(record, at);
        let job = self.jobs.handle(record.number)?;
        let entry = self.entry(record.number)?;
        let before = entry.request.constraints.begin;
        let is_small = |(before, begin): (Time, Time)| {
            before > at && (Span::ZERO..=LONGEST_DELAY).contains(&(begin - before))
        };
        let stays = before == begin || before.zip(begin).is_some_and(is_small);
        (entry.state == State::Waiting && !stays).then_some(Amendment { job, change: Change::Begin(begin) })
    }
}

impl<L: Launcher, J: Journal> ExpectedEnds for Engine<L, J> {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn is_unfinished(&self, number: i64) -> bool {
        self.jobs.contains(number) || self.unrecorded.contains(number)
    }

    fn expected_end(&self, number: i64) -> Option<Time> {
        limit_end(self.entry(number)?)
    }

    fn promised_end(&self, number: i64) -> Option<Time> {
        promised_end(self.entry(number)?)
    }
}
