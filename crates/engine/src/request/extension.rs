//! Extension of time limits.

use miserly_api::model::{Possible, Problem, ProblemCode};
use miserly_core::{Amendment, Change, JobId, Round, Span, Time};
use miserly_marks::mark;
use miserly_units::duration;

use crate::dependency::expected_ends::ExpectedEnds;
use crate::queue::reservations::excess;
use crate::request::handler::{Handled, RequestError};
use crate::request::problems::no_job;
use crate::request::trial::TriedRound;
use crate::submission::check::{longest_time, span_from_secs};
use crate::submission::submit::SEARCHED_MOST;
use crate::{Action, Caller, DaemonReply, Engine, Journal, Launcher, Now, Record};

/// The most trials of a search.
const SEARCH_STEPS: u32 = 32;

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Extends the time limit of a job, unless a promise would break. That is tried first, on a copy.
    pub(crate) fn extend(&mut self, now: Now, caller: &Caller, job: i64, by: f64) -> Handled {
        let at = self.fresh(now)?;
        let record = self.owned_job(caller, job)?;
        let longer = extension(by)?;
        let time = record.time + longer;
        self.tried_extension(at, record, longer)?;
        mark!("a window is longer");
        let Some(handle) = self.jobs.handle(job) else {
            self.set_time_limit(job, time);
            return Ok(self.view_of(now, job)?);
        };
        let mut round = Round::default();
        round.amended.push(self.longer(handle, job, longer)?);
        self.play(now, at, round)?;
        self.set_time_limit(job, time);
        Ok(self.view_of(now, job)?)
    }

    /// Tries an extension. Returns the copy of the queue with it, if the job is in a queue.
    pub(crate) fn tried_extension(
        &self,
        at: Time,
        record: &Record,
        longer: Span,
    ) -> Result<Option<TriedRound>, RequestError> {
        match self.check_extension(at, record, longer) {
            Err(error) => Err(self.with_possible_extension(at, record, longer, error)?),
            tried => tried,
        }
    }

    /// Checks an extension. If its job is in a queue, it is tried on a copy, which is returned.
    fn check_extension(
        &self,
        at: Time,
        record: &Record,
        longer: Span,
    ) -> Result<Option<TriedRound>, RequestError> {
        self.check_limits(at, record, longer)?;
        let longest = Record { time: record.time + longer, ..record.clone() };
        self.check_changed_usage(at, record, &longest)?;
        let Some(handle) = self.jobs.handle(record.number) else { return Ok(None) };
        let tried = self.try_amendment(at, record.number, self.longer(handle, record.number, longer)?)?;
        if let Some(tried) = &tried {
            self.check_pool(at, record, tried)?;
        }
        Ok(tried)
    }

    /// Checks that an extension does not last into a time at which the pool has less than its jobs hold.
    pub(crate) fn check_pool(&self, at: Time, record: &Record, tried: &TriedRound) -> Result<(), Problem> {
        let Some(queue) = self.setup.queue(&record.queue).filter(|queue| queue.pool.varies()) else {
            return Ok(());
        };
        let present = self.system.queues().get(tried.queue).map(miserly_core::Driver::ledger);
        let was_short = present.is_some_and(|ledger| excess(at, ledger, &queue.pool).is_some());
        if was_short || excess(at, tried.ledger(), &queue.pool).is_none() {
            return Ok(());
        }
        mark!("refused: a longer window lasts into a reservation");
        let message = format!(
            "job {} would last into a time at which queue {} has less, by its calendar or a reservation",
            record.number, queue.name
        );
        Err(Problem::new(ProblemCode::Refused, message))
    }

    /// Returns the amendment that extends a job.
    ///
    /// It has not the time limit: of a window that began without a daemon, the ledger has what was left then.
    fn longer(&self, handle: JobId, job: i64, longer: Span) -> Result<Amendment, Problem> {
        let ledger = self.system.ledger_of(handle).ok_or_else(|| no_job(job))?;
        let planned = ledger.request(handle).estimate;
        Ok(Amendment { job: handle, change: Change::Estimate(planned + longer) })
    }

    /// Adds to a refusal which extension is possible, unless its search is too much work.
    fn with_possible_extension(
        &self,
        at: Time,
        record: &Record,
        longer: Span,
        error: RequestError,
    ) -> Result<RequestError, RequestError> {
        let RequestError::Refused(problem) = error else { return Err(error) };
        let queued = self.jobs.handle(record.number).and_then(|handle| self.system.ledger_of(handle));
        if queued.is_some_and(|ledger| ledger.waiting_count() > SEARCHED_MOST) {
            return Ok(problem.into());
        }
        let whole = |span: Span| u64::try_from(span.secs()).unwrap_or(0);
        let room = self.room(at, record).map_or(u64::MAX, whole);
        let (mut possible, mut refused) = (0, whole(longer).min(room).saturating_add(1));
        for _ in 0..SEARCH_STEPS {
            let middle = possible + (refused - possible) / 2;
            if middle == possible {
                break;
            }
            let Some(span) = i64::try_from(middle).ok().and_then(Span::from_secs) else { break };
            match self.check_extension(at, record, span) {
                Ok(_) => possible = middle,
                Err(RequestError::Refused(_)) => refused = middle,
                Err(fatal) => return Err(fatal),
            }
        }
        Ok(Problem { possible: Some(Possible::Extension(possible)), ..problem }.into())
    }

    /// Returns how much longer a job may be by the time limit of its queue and the horizon of its policy.
    fn room(&self, at: Time, record: &Record) -> Option<Span> {
        let queue = self.setup.queue(&record.queue)?;
        let by_limit = longest_time(queue) - record.time;
        let end = self.latest_end(record.number, at).unwrap_or(at);
        let by_horizon = queue.policy.horizon().map_or(Span::MAX, |horizon| (at + horizon) - end);
        let by_deadline = record.deadline.map_or(Span::MAX, |deadline| deadline - end);
        Some(by_limit.min(by_horizon).min(by_deadline).max(Span::ZERO))
    }

    /// Checks an extension against the time limit of the queue and the horizon of its policy.
    fn check_limits(&self, at: Time, record: &Record, longer: Span) -> Result<(), Problem> {
        let Some(queue) = self.setup.queue(&record.queue) else { return Ok(()) };
        let (job, time, longest) = (record.number, record.time + longer, longest_time(queue));
        if time > longest {
            let message = format!(
                "job {job} would run for {}: its queue allows at most {}",
                duration(time),
                duration(longest)
            );
            return Err(Problem::new(ProblemCode::Refused, message));
        }
        let end = self.latest_end(job, at).unwrap_or(at) + longer;
        if record.deadline.is_some_and(|deadline| end > deadline) {
            mark!("refused: a longer window passes the deadline");
            let message = format!("job {job} would end after its deadline");
            return Err(Problem::new(ProblemCode::Refused, message));
        }
        match queue.policy.horizon().filter(|horizon| end > at + *horizon) {
            None => Ok(()),
            Some(horizon) => {
                let message = format!(
                    "job {job} would end beyond the horizon of its queue, {} from now",
                    duration(horizon)
                );
                Err(Problem::new(ProblemCode::Refused, message))
            }
        }
    }

    /// Plays an amendment on a copy of the queue. Returns a problem if a promise breaks.
    fn try_amendment(
        &self,
        at: Time,
        job: i64,
        amendment: Amendment,
    ) -> Result<Option<TriedRound>, RequestError> {
        let Some(queue) = self.system.queue_of(amendment.job) else { return Ok(None) };
        let round = Round { amended: vec![amendment], ..Round::default() };
        let trial = self.try_round(queue, at, round)?;
        let Some(other) = trial.broken else { return Ok(Some(trial)) };
        mark!("refused: a longer window would break a promise");
        let message =
            format!("job {job} cannot have a longer window: the promise to job {other} would break");
        Err(Problem { job: Some(other), ..Problem::new(ProblemCode::Refused, message) }.into())
    }

    /// Sets the time limit of a job and informs its attempt.
    fn set_time_limit(&mut self, job: i64, time: Span) {
        let end = self.window_end(job);
        let gang = self.jobs.get(job).is_some_and(|record| self.is_gang(&record.queue));
        self.jobs.set_time_limit(job, time);
        let Some(record) = self.jobs.get(job) else { return };
        self.batch.touch(job);
        let action = if gang { Some(Action::RunFor(record.limit())) } else { end.map(Action::EndAt) };
        if let (Some(action), Some(attempt)) = (action, record.attempt()) {
            self.batch.act(attempt, action);
        }
    }

    fn view_of(&self, now: Now, job: i64) -> Result<DaemonReply, Problem> {
        let record = self.jobs.get(job).ok_or_else(|| no_job(job))?;
        Ok(DaemonReply::Job(Box::new(self.current().view(now, record))))
    }
}

/// Returns the added time of an extension.
pub(crate) fn extension(by: f64) -> Result<Span, Problem> {
    span_from_secs(by)
        .filter(|longer| *longer > Span::ZERO)
        .ok_or_else(|| Problem::with_field("by", "a window is made longer by a number of seconds above 0"))
}
