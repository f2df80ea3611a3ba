//! Quotes: the promises that a submission would get, from a trial on a copy of its queue.

use std::collections::BTreeMap;

use miserly_api::model::{Possible, Problem, ProblemCode, Quote, Submission, Window};
use miserly_core::{Driver, Effect, Entry, JobId, Ledger, Round, Span, System, Time};
use miserly_policies::PolicySpec;

use crate::dependency::expected_ends::ExpectedEnds;
use crate::limits::places::Distribution;
use crate::request::handler::RequestError;
use crate::request::problems::refused_field;
use crate::request::trial::play_on;
use crate::submission::submit::refused;
use crate::view::snapshot::QueueSnapshot;
use crate::{Caller, EndedJobs, JobState, Now, Queue, QueueState, Record, Snapshot};

/// New jobs on a copy of their queue.
pub(crate) struct Trial {
    /// The windows that they would get.
    pub(crate) windows: Vec<Option<Window>>,
    /// The copy; `None` if they did not enter it.
    system: Option<System>,
}

/// A copy of a queue at an instant.
#[derive(Clone)]
pub struct QueueCopy {
    /// The policy.
    pub policy: PolicySpec,
    /// The instant.
    pub at: Time,
    /// The jobs.
    pub ledger: Ledger,
}

impl QueueCopy {
    pub(crate) fn new(policy: PolicySpec, at: Time, driver: &Driver) -> QueueCopy {
        QueueCopy { policy, at, ledger: driver.ledger().clone() }
    }
}

/// Returns the policy of a queue over jobs, as [`Queue::driver`] does, or the problem that they contradict its pool.
pub(crate) fn checked_driver(
    queue: &Queue,
    jobs: Vec<(JobId, Entry)>,
    state: &QueueState,
) -> Result<Driver, Problem> {
    queue.driver(jobs, state).map_err(|rule| {
        let message = format!("the jobs of queue {} contradict its pool: {rule}", queue.name);
        Problem::new(ProblemCode::Internal, message)
    })
}

impl Snapshot {
    /// Returns the promises that a submission would get now.
    ///
    /// `ended` has the finished jobs. It also returns the copy of the queue with the new jobs, and the number of the first of them, unless they wait for
    /// an instant or for other jobs.
    /// O(n log n) for the n jobs of its queue: its ledger and its policy are made anew from the records.
    ///
    /// # Errors
    /// As of the submission.
    pub fn quote(
        &self,
        now: Now,
        caller: &Caller,
        submission: &Submission,
        launchable: &dyn Fn(&Submission, &str) -> Result<(), Problem>,
        ended: &dyn EndedJobs,
    ) -> Result<(Quote, Option<(QueueCopy, i64)>), Problem> {
        let submission = &*self.setup.in_whole_cores(submission);
        let at = self.instant(now);
        let records = self.records_of(now, caller, submission, launchable, ended)?;
        self.check_known_begins(at, &records)?;
        let entries = self.entries_of(&records[0].queue);
        let base = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        let play = |queue, round| self.play_copy(queue, at, entries, round);
        let Trial { windows, system } = match self.trial(now, at, &records, base, play) {
            Ok(trial) => trial,
            Err(RequestError::Refused(problem)) => {
                let again = self.entries_of(&records[0].queue);
                let play = |queue, round| self.play_copy(queue, at, again, round);
                return Err(self.with_possible_window((now, at), records, problem, base, play));
            }
            Err(RequestError::Fatal(error)) => {
                return Err(Problem::new(ProblemCode::Internal, error.to_string()));
            }
        };
        let copy = system.and_then(|system| {
            let policy = self.setup.queue(&records[0].queue)?.policy.clone();
            Some((QueueCopy::new(policy, at, &system.queues()[0]), records[0].number))
        });
        Ok((Quote { windows, forecast: None }, copy))
    }

    /// Returns the instant of a trial: now, or the last one before an event that is due and not yet played.
    pub(crate) fn instant(&self, now: Now) -> Time {
        let before_due = self.next_due.map_or(now.ticks, |due| now.ticks.min(due - Span::TICK));
        self.values.next_instant(before_due)
    }

    /// Returns the jobs in the ledger of a queue.
    pub(crate) fn entries_of(&self, queue: &str) -> Vec<(JobId, Entry)> {
        self.entries_where(queue, |_| true)
    }

    /// Returns the jobs in the ledger of a queue that meet a condition.
    pub(crate) fn entries_where(&self, queue: &str, keep: impl Fn(&Record) -> bool) -> Vec<(JobId, Entry)> {
        let records = self.jobs.iter().filter(|record| *record.queue == *queue && keep(record));
        (0..).map(JobId).zip(records.filter_map(Record::ledger_entry)).collect()
    }

    /// Plays a round on a copy of a queue. Returns the copy, and the effects.
    fn play_copy(
        &self,
        queue: usize,
        at: Time,
        entries: Vec<(JobId, Entry)>,
        round: Round,
    ) -> Result<(System, Vec<Effect>), RequestError> {
        let setup = &self.setup.queues[queue];
        self.stopped.check(&setup.name)?;
        let driver = checked_driver(setup, entries, &self.queues[queue].state)?;
        play_on(driver, queue, at, round)
    }

    /// Returns copies of the queues in which jobs wait, at an instant at which nothing is due.
    ///
    /// O(n log n) for n jobs. A stopped queue, or one whose jobs contradict its pool, is left out.
    pub fn waiting_queues(&self, now: Now) -> Vec<QueueCopy> {
        let at = self.instant(now);
        let copy = |(setup, kept): (&Queue, &QueueSnapshot)| {
            if kept.jobs <= kept.running || self.stopped.contains(&setup.name) {
                return None;
            }
            let driver = setup.driver(self.entries_of(&setup.name), &kept.state).ok()?;
            Some(QueueCopy::new(setup.policy.clone(), at, &driver))
        };
        self.setup.queues.iter().zip(&self.queues).filter_map(copy).collect()
    }

    /// Returns the cleanup time, which the estimates of jobs include.
    pub fn cleanup_time(&self) -> Span {
        self.setup.cleanup_time
    }

    /// Returns the highest number that a job ever had.
    pub fn highest_job(&self) -> i64 {
        self.values.next_number() - 1
    }

    /// Returns the unfinished jobs by number: whether each of them waits in its queue.
    pub fn unfinished(&self) -> impl Iterator<Item = (i64, bool)> {
        self.jobs.iter().map(|record| {
            let waits = record.state == JobState::Queued && record.started.is_none() && record.run.is_none();
            (record.number, waits)
        })
    }

    /// Checks that new jobs with a deadline get windows now.
    pub(crate) fn check_known_begins(&self, at: Time, records: &[Record]) -> Result<(), Problem> {
        if records.iter().any(|record| record.deadline.is_some()) {
            self.check_new_places(at, records)?;
        }
        records.iter().try_for_each(|record| self.check_known_begin(at, record))
    }

    /// Checks that all new jobs that are not held get places now.
    fn check_new_places(&self, at: Time, records: &[Record]) -> Result<(), Problem> {
        let limits = &self.setup.user_limits;
        let mut places = self.distribution(at, records.first());
        let is_new =
            |record: &&Record| record.state != JobState::Held && self.jobs.get(record.number).is_none();
        let (all, given) = records.iter().filter(is_new).fold((0, 0), |(all, given), record| {
            (all + 1, given + usize::from(places.admit(&limits.place_request(record))))
        });
        let Some(first) = records.first().filter(|_| given < all) else { return Ok(()) };
        let array = first.array_limit().map(|_| "the limit of the array".to_owned());
        let names: Vec<String> = array.into_iter().chain(limits.place_names(first)).collect();
        let message = format!(
            "only {given} jobs of {all} get their windows now ({}), so no end by a deadline can be promised to the others",
            names.join(", ")
        );
        Err(refused_field("deadline", message))
    }

    /// Returns the distribution of places to new jobs like one: those that wait for a place come first.
    ///
    /// O(n) for n unfinished jobs, if there are limits on places.
    fn distribution(&self, at: Time, like: Option<&Record>) -> Distribution<'_> {
        let mut places = Distribution::new(&self.taken);
        let limits = &self.setup.user_limits;
        if like.is_some_and(|record| limits.limits_places() && !limits.place_request(record).is_unlimited()) {
            let waits = |record: &&Record| {
                record.state == JobState::Deferred && record.after.is_empty() && record.begin() <= at
            };
            for record in self.jobs.iter().filter(waits) {
                places.admit(&limits.place_request(record));
            }
        }
        places
    }

    /// Checks that a job with a deadline gets a window now. A held one gets it at its release.
    fn check_known_begin(&self, at: Time, record: &Record) -> Result<(), Problem> {
        if record.deadline.is_none() || record.state == JobState::Held || self.enters_at_once(record, at) {
            return Ok(());
        }
        let unknown = record.after.iter().find(|other| self.latest_end(**other, at).is_none());
        let other = unknown.map_or_else(|| "a job".to_owned(), |other| format!("job {other}"));
        let message =
            format!("it waits for {other}, whose end is not known, so no end by a deadline can be promised");
        Err(refused_field("deadline", message))
    }

    /// Adds to the refusal of new jobs which window they would get without their deadline.
    ///
    /// Of several windows, it is the one that ends last. The parameters are those of [`Snapshot::trial`].
    pub(crate) fn with_possible_window(
        &self,
        (now, at): (Now, Time),
        mut records: Vec<Record>,
        problem: Problem,
        base: u32,
        play: impl FnOnce(usize, Round) -> Result<(System, Vec<Effect>), RequestError>,
    ) -> Problem {
        if problem.code != ProblemCode::Refused || records.iter().all(|record| record.deadline.is_none()) {
            return problem;
        }
        for record in &mut records {
            record.deadline = None;
        }
        let Ok(Trial { windows, .. }) = self.trial(now, at, &records, base, play) else { return problem };
        let last = windows.into_iter().flatten().max_by_key(|window| window.end);
        Problem { possible: last.map(Possible::Window), ..problem }
    }

    /// Plays the submission of new jobs on a copy of their queue.
    ///
    /// `base` is the lowest of the handles that they have on the copy. `play` plays a round there.
    pub(crate) fn trial(
        &self,
        now: Now,
        at: Time,
        records: &[Record],
        base: u32,
        play: impl FnOnce(usize, Round) -> Result<(System, Vec<Effect>), RequestError>,
    ) -> Result<Trial, RequestError> {
        let Some(queue) = self.setup.position(&records[0].queue) else {
            return Ok(Trial { windows: vec![], system: None });
        };
        // A deferred job has no window.
        let mut places = self.distribution(at, records.first());
        let mut has_place = |record: &&Record| places.admit(&self.setup.user_limits.place_request(record));
        let enter = records.iter().filter(|record| self.enters_at_once(record, at));
        let enter: Vec<&Record> = enter.filter(&mut has_place).collect();
        if enter.is_empty() {
            return Ok(Trial { windows: vec![None; records.len()], system: None });
        }
        let mut round = Round::default();
        for (handle, record) in (base..).zip(&enter) {
            let begin = self.earliest_begin(record, at);
            let request = record.request(&self.setup, 0, at, begin);
            round.submitted.push(miserly_core::Submission { job: JobId(handle), request });
        }
        let (trial, effects) = play(queue, round)?;
        let numbered = |effect: Effect| {
            let nth = usize::try_from(effect.job().0.checked_sub(base)?).ok()?;
            Some((enter.get(nth)?.number, effect))
        };
        let effects: Vec<_> = effects.into_iter().filter_map(numbered).collect();
        let horizon = self.setup.queues[queue].policy.horizon();
        let refusal = |record: &Record| refused(&effects, record.number, &self.unrecorded, horizon);
        if let Some(problem) = records.iter().find_map(refusal) {
            return Err(problem.into());
        }
        let ledger = trial.queues()[0].ledger();
        let window = |(handle, record): (u32, &&Record)| {
            let promise = ledger.get(JobId(handle))?.promise?;
            Some((record.number, record.window(now, promise.best + self.setup.promise_slack(&record.queue))))
        };
        let promised: BTreeMap<i64, Window> = (base..).zip(&enter).filter_map(window).collect();
        let windows = records.iter().map(|record| promised.get(&record.number).copied()).collect();
        Ok(Trial { windows, system: Some(trial) })
    }
}
