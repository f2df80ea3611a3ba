//! Release of jobs that wait for other jobs or for an instant.

use std::collections::BTreeSet;

use miserly_core::{Amendment, Change, Fault, Round, Span, State, Submission, Time};
use miserly_marks::mark;

use crate::attempt::late_start::LONGEST_DELAY;
use crate::dependency::expected_ends::{ExpectedEnds, limit_end, promised_end};
use crate::{Engine, EngineError, JobState, Journal, JournalError, Launcher, Now, Record, Setup};

/// The most steps of one look at dependencies. Requests are handled before the next steps.
const STEPS: usize = 32;

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Adjusts the earliest starts of dependent jobs until they agree with the expected ends of the jobs that they wait for.
    ///
    /// Promises that break have the cause of `fault`, if those ends moved because of one.
    ///
    /// A chain of n jobs takes n steps. If all its ends move to earlier instants, some of the steps are left to the next batches:
    /// until then the plans behind are late, and promises made from them hold. The first step looks at the ends of all jobs that
    /// others wait for, the next ones only at those that have moved.
    pub(crate) fn settle_dependencies(&mut self, now: Now, fault: Option<Fault>) -> Result<(), EngineError> {
        self.dependencies.set_settled(true);
        let mut required: BTreeSet<i64> = self.dependencies.required().collect();
        let mut only_earlier = fault.is_none();
        // Each step releases a job or adjusts its start, so there are at most as many steps as tracked jobs.
        for step in 0..=self.dependencies.count() {
            if only_earlier && step == STEPS {
                self.dependencies.set_settled(false);
                return Ok(());
            }
            let at = self.fresh(now)?;
            let mut round = Round::default();
            self.resolve_dependencies(now, at, &mut round)?;
            only_earlier &= self.adjust_begins(required, at, &mut round);
            self.submit_due(at, &mut round);
            if round.is_empty() {
                return Ok(());
            }
            round.fault = fault;
            self.play(now, at, round)?;
            required = self.dependencies.take_changed();
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
        self.adjust_begins(self.dependencies.required().collect(), at, round);
        Ok(())
    }

    /// Returns the tracked jobs that need a look: those behind an end that has moved, and those that changed themselves.
    fn behind_moved_ends(&mut self, required: BTreeSet<i64>, at: Time) -> BTreeSet<i64> {
        let mut behind = self.dependencies.take_unseen();
        for number in required {
            let end = self.latest_end(number, at).unwrap_or(Time::MAX);
            let before = self.dependencies.set_end(number, end);
            if before != Some(end) {
                let jobs = self.dependencies.dependents(number);
                behind.extend(jobs.filter(|job| self.may_move(*job, before, end)));
            }
        }
        behind
    }

    /// Returns whether another end of a job that this one waits for may change its earliest start, which is the latest of all ends.
    fn may_move(&self, number: i64, before: Option<Time>, end: Time) -> bool {
        let begin = self.entry(number).and_then(|entry| entry.request.constraints.begin);
        begin.zip(before).is_none_or(|(begin, before)| before >= begin || end > begin)
    }

    /// Adds to the round the earliest starts that change with the ends of these jobs, and the jobs that can be planned now.
    /// Returns whether all those starts change to earlier instants.
    fn adjust_begins(&mut self, required: BTreeSet<i64>, at: Time, round: &mut Round) -> bool {
        let mut only_earlier = true;
        for number in self.behind_moved_ends(required, at) {
            let Some(record) = self.jobs.get(number) else { continue };
            if record.is_in_ledger() {
                let depends = !record.after.is_empty();
                match self.begin_change(record, at) {
                    BeginChange::None => {}
                    BeginChange::Later => self.dependencies.look_again(number),
                    BeginChange::Now { amendment, is_earlier } => {
                        only_earlier &= is_earlier;
                        round.amended.push(amendment);
                    }
                }
                if !depends {
                    self.dependencies.untrack(number);
                }
            } else if self.dependencies.is_blocked(number) && self.is_begin_known(record, at) {
                if self.dependencies.has_place_for(record) && self.fits_pool(record) {
                    self.submit_record(at, number, round);
                } else {
                    self.dependencies.look_again(number);
                }
            }
        }
        debug_assert!(self.dependencies.count() > 100 || self.has_settled_begins(at, round));
        only_earlier
    }

    /// Returns whether the earliest start of each tracked job agrees with the ends of the jobs that it waits for.
    fn has_settled_begins(&self, at: Time, round: &Round) -> bool {
        let amends = |job| round.amended.iter().any(|amended| Some(amended.job) == job);
        self.dependencies.jobs().filter_map(|number| self.jobs.get(number)).all(|record| {
            let changes = || matches!(self.begin_change(record, at), BeginChange::Now { .. });
            !record.is_in_ledger() || !changes() || amends(self.jobs.handle(record.number))
        })
    }

    /// Submits the deferred jobs that are due. One that is larger than what its pool has now waits: its policy would refuse it.
    pub(crate) fn submit_due(&mut self, at: Time, round: &mut Round) {
        for number in self.dependencies.due(at) {
            if self.jobs.get(number).is_some_and(|record| self.fits_pool(record)) {
                self.submit_record(at, number, round);
            } else {
                mark!("a deferred job is larger than its pool now");
                self.dependencies.park(number);
            }
        }
    }

    /// Lets the deferred jobs try again that were larger than their pools.
    pub(crate) fn unpark(&mut self) {
        for number in self.dependencies.take_parked() {
            if let Some(record) = self.jobs.get(number) {
                self.dependencies.track(record);
            }
        }
    }

    /// Returns whether the pool of a job has at some time what it needs, without the processors that are lost now.
    pub(crate) fn fits_pool(&self, record: &Record) -> bool {
        let ledger = self.ledger_called(&record.queue);
        ledger.is_some_and(|ledger| record.demand().fits_in(&ledger.machine().capacity()))
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
        record.cleanup_time = Some(self.setup.cleanup_time);
        let request = record.request(&self.setup, queue, at, begin);
        self.dependencies.untrack(number);
        self.dependencies.take_place(record);
        if !record.after.is_empty() {
            self.dependencies.track(record);
        }
        self.batch.touch(number);
        round.submitted.push(Submission { job, request });
    }

    /// Returns how the earliest start of a queued job changes.
    ///
    /// Behind an overdue job all plans move with each instant. A small delay is therefore no change before the start is due.
    fn begin_change(&self, record: &Record, at: Time) -> BeginChange {
        let (Some(job), Some(entry)) = (self.jobs.handle(record.number), self.entry(record.number)) else {
            return BeginChange::None;
        };
        let begin = self.earliest_begin(record, at);
        let before = entry.request.constraints.begin;
        if entry.state != State::Waiting || before == begin {
            return BeginChange::None;
        }
        let is_small = |(before, begin): (Time, Time)| {
            before > at && (Span::ZERO..=LONGEST_DELAY).contains(&(begin - before))
        };
        if before.zip(begin).is_some_and(is_small) {
            return BeginChange::Later;
        }
        let is_earlier = begin.is_none_or(|begin| before.is_some_and(|before| begin < before));
        BeginChange::Now { amendment: Amendment { job, change: Change::Begin(begin) }, is_earlier }
    }
}

/// How the earliest start of a job changes.
enum BeginChange {
    /// It stays.
    None,
    /// It changes at the latest when the job is due.
    Later,
    /// It changes now.
    Now { amendment: Amendment, is_earlier: bool },
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
