//! Submissions.

use std::sync::Arc;

use miserly_api::model::{Accepted, NoPromise, Problem, ProblemCode, Submission, Submitted, Window};
use miserly_core::{Effect, Refusal, Round, Span, Time};
use miserly_marks::mark;
use miserly_units::duration;

use crate::dependency::expected_ends::ExpectedEnds;
use crate::effects::refusal_message;
use crate::job::unrecorded::UnrecordedJobs;
use crate::request::handler::{Handled, RequestError};
use crate::{Caller, DaemonReply, Engine, JobState, Journal, Launcher, Now, Record};

/// The most waiting jobs of a queue on whose copy it is searched what is possible instead of a refused request.
pub(crate) const SEARCHED_MOST: usize = 500;

impl<L: Launcher, J: Journal> Engine<L, J> {
    pub(crate) fn submit(&mut self, now: Now, caller: &Caller, submission: &Submission) -> Handled {
        let submission = &*Arc::clone(self.setup.shared()).in_whole_cores(submission);
        if self.values.is_draining() {
            let message = "the daemon accepts no new jobs (miserly drain --undo)";
            return Err(Problem::new(ProblemCode::Unavailable, message).into());
        }
        // Due events are played first: a job to depend on may finish then.
        let at = self.fresh(now)?;
        if let Some(submitted) = self.submitted_before(now, caller, submission)? {
            return Ok(DaemonReply::Submitted(submitted));
        }
        let records = self.new_records(now, at, caller, submission)?;
        let numbers: Vec<i64> = records.iter().map(|record| record.number).collect();
        let horizon = self.setup.queue(&records[0].queue).and_then(|queue| queue.policy.horizon());
        // The refusal of a single job, unlike that of an array, comes after it was played.
        let alone = if let [only] = &records[..] { Some(only.clone()) } else { None };
        self.values.reserve_numbers(records.len());
        let mut round = Round::default();
        for record in records {
            self.enter(at, record, &mut round);
        }
        let effects = if round.is_empty() { vec![] } else { self.play(now, at, round)? };
        if let [only] = numbers[..]
            && let Some(why) = refused(&effects, only, &self.unrecorded, horizon)
        {
            mark!("refused: a submission without a window");
            // It was never accepted. The next submission gets its number.
            self.batch.withdraw(only);
            self.values.take_back_number(only);
            self.batch.touch_values();
            let at = self.fresh(now)?;
            return Err(self.with_possible_window(now, at, alone.into_iter().collect(), why).into());
        }
        self.request_ids.add(caller.uid, numbers[0], submission);
        let jobs = numbers.into_iter().filter_map(|number| self.accepted(now, number)).collect();
        Ok(DaemonReply::Submitted(Submitted { jobs }))
    }

    /// Checks a submission and returns the records of its jobs.
    ///
    /// An array is accepted as a whole or not at all, so it is tried on a copy first.
    fn new_records(
        &self,
        now: Now,
        at: Time,
        caller: &Caller,
        submission: &Submission,
    ) -> Result<Vec<Record>, RequestError> {
        let current = self.current();
        let check = |submission: &Submission, name: &str| self.launcher.check(submission, name);
        let records = current.records_of(now, caller, submission, &check, &self.ended_now())?;
        self.check_user_limits(at, caller, &records)?;
        current.check_known_begins(at, &records)?;
        if records.len() > 1 {
            let base = self.jobs.unused_handle();
            let play = |queue, round| self.play_trial(queue, at, round);
            match current.trial(now, at, &records, base, play) {
                Err(RequestError::Refused(problem)) => {
                    mark!("refused: an array without windows");
                    return Err(self.with_possible_window(now, at, records, problem).into());
                }
                trial => trial?,
            };
        }
        Ok(records)
    }

    /// Returns the jobs of an earlier submission of the caller with the same name.
    ///
    /// # Errors
    /// If that submission differs from this one.
    pub(crate) fn submitted_before(
        &self,
        now: Now,
        caller: &Caller,
        submission: &Submission,
    ) -> Result<Option<Submitted>, Problem> {
        let Some(id) = &submission.request_id else { return Ok(None) };
        let Some((first, array)) = self.request_ids.get(caller.uid, id) else { return Ok(None) };
        // A changed job is not what was submitted any more.
        let before = self.jobs.get(first).filter(|record| !record.modified);
        let before = before.map(|record| Arc::clone(&record.submission));
        if before.is_some_and(|before| *before != *submission) || array != submission.array.as_ref() {
            let message = format!("request_id {id:?} was used for another submission, of job {first}");
            let problem = Problem::with_field("request_id", message);
            return Err(Problem { code: ProblemCode::Conflict, job: Some(first), ..problem });
        }
        let indexes: Vec<Option<u32>> = match array {
            None => vec![None],
            Some(array) => array.indexes().into_iter().map(Some).collect(),
        };
        let job = |(number, index)| {
            let over =
                Accepted { number, index, promise: None, no_promise: None, start_by: None, started: true };
            self.accepted(now, number).unwrap_or(over)
        };
        Ok(Some(Submitted { jobs: (first..).zip(indexes).map(job).collect() }))
    }

    fn with_possible_window(&self, now: Now, at: Time, records: Vec<Record>, problem: Problem) -> Problem {
        let queue = records.first().and_then(|record| self.setup.position(&record.queue));
        let waiting = queue.map_or(0, |queue| self.system.queues()[queue].ledger().waiting_count());
        if records.len() + waiting > SEARCHED_MOST {
            return problem;
        }
        let play = |queue, round| self.play_trial(queue, at, round);
        self.current().with_possible_window((now, at), records, problem, self.jobs.unused_handle(), play)
    }

    /// Adds an accepted job: to its queue, or to the deferred jobs. A held job waits for its release.
    pub(crate) fn enter(&mut self, at: Time, record: Record, round: &mut Round) {
        let number = record.number;
        let held = record.state == (JobState::Held);
        let enters = !held && self.enters_at_once(&record, at) && self.dependencies.has_place_for(&record);
        let waits = !held || !record.after.is_empty();
        if waits && !enters {
            self.dependencies.track(&record);
        }
        self.batch.touch(number);
        self.jobs.insert(record);
        self.watch_start(number);
        if enters {
            self.submit_record(at, number, round);
        }
    }

    pub(crate) fn accepted(&self, now: Now, number: i64) -> Option<Accepted> {
        let record = self.jobs.get(number)?;
        let (promise, started) = (record.promise.present(), self.jobs.is_running(number));
        let begun = record.started.filter(|_| started);
        Some(Accepted {
            number,
            index: record.array.map(|array| array.index),
            promise: promise.map(|latest| record.window(now, begun.unwrap_or(latest))),
            start_by: record.start_by.filter(|_| !record.has_run()).map(|at| now.wall_at(at)),
            no_promise: (promise.is_none() && !started).then(|| record.no_promise(now.ticks)),
            started,
        })
    }
}

/// Returns why a policy refused a job, if it did.
pub(crate) fn refused(
    effects: &[(i64, Effect)],
    number: i64,
    unrecorded: &UnrecordedJobs,
    horizon: Option<Span>,
) -> Option<Problem> {
    effects.iter().find_map(|(of, effect)| match effect {
        Effect::Refused { why, .. } if *of == number => {
            let mut message = refusal_message(*why, unrecorded);
            if let Some(horizon) = horizon.filter(|_| *why == Refusal::NoWindow) {
                message.push_str(&format!(", which is {} from now", duration(horizon)));
            }
            Some(Problem::new(ProblemCode::Refused, message))
        }
        _ => None,
    })
}

impl Record {
    /// Returns why the job, which waits, has no promise.
    fn no_promise(&self, at: Time) -> NoPromise {
        match self.state {
            JobState::Held => NoPromise::Held,
            JobState::Deferred if !self.after.is_empty() => NoPromise::After,
            JobState::Deferred if self.begin() > at => NoPromise::Begin,
            JobState::Deferred => NoPromise::Place,
            JobState::Queued | JobState::Finished(_) => NoPromise::Policy,
        }
    }

    /// Returns the window that begins at `start`.
    pub(crate) fn window(&self, now: Now, start: Time) -> Window {
        Window { start: now.wall_at(start), end: now.wall_at(start + self.time) }
    }
}
