//! Extension of time limits.

use miserly_api::model::{Problem, ProblemCode};
use miserly_core::{Amendment, Change, Effect, Round, Span, Time};
use miserly_units::duration;

use crate::expected_ends::ExpectedEnds;
use crate::requests::{Handled, RequestError, no_job};
use crate::submission_check::{longest_time, span_from_secs};
use crate::{Action, Caller, DaemonReply, Engine, Journal, Launcher, Now, Record};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Extends the time limit of a job, unless a promise would break. That is tried first, on a copy.
    pub(crate) fn extend(&mut self, now: Now, caller: &Caller, job: i64, by: f64) -> Handled {
        let at = self.fresh(now)?;
        let record = self.owned_job(caller, job)?;
        let Some(longer) = span_from_secs(by).filter(|longer| *longer > Span::ZERO) else {
            let message = "a window is made longer by a number of seconds above 0";
            return Err(Problem::with_field("by", message).into());
        };
        let time = Span::from_ticks(record.time) + longer;
        self.check_extension(at, record, longer)?;
        let Some(handle) = self.jobs.handle(job) else {
            self.set_time_limit(job, time);
            return Ok(self.view_of(now, job)?);
        };
        // Not the time limit: of a window that began without a daemon, the ledger has what was left then.
        let ledger = self.system.ledger_of(handle).ok_or_else(|| no_job(job))?;
        let planned = ledger.request(handle).estimate;
        let amendment = Amendment { job: handle, change: Change::Estimate(planned + longer) };
        self.try_amendment(at, job, amendment)?;
        let mut round = Round::default();
        round.amended.push(amendment);
        self.play(now, at, round)?;
        self.set_time_limit(job, time);
        Ok(self.view_of(now, job)?)
    }

    /// Checks an extension against the time limit of the queue and the horizon of its policy.
    fn check_extension(&self, at: Time, record: &Record, longer: Span) -> Result<(), Problem> {
        let Some(queue) = self.setup.queue(&record.queue) else { return Ok(()) };
        let (job, time, longest) =
            (record.number, Span::from_ticks(record.time) + longer, longest_time(queue));
        if time > longest {
            let message = format!(
                "job {job} would run for {}: its queue allows at most {}",
                duration(time),
                duration(longest)
            );
            return Err(Problem::new(ProblemCode::Refused, message));
        }
        let end = self.latest_end(job, at).unwrap_or(at) + longer;
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
    fn try_amendment(&self, at: Time, job: i64, amendment: Amendment) -> Result<(), RequestError> {
        let Some(queue) = self.system.queue_of(amendment.job) else { return Ok(()) };
        let mut round = Round::default();
        round.amended.push(amendment);
        let (_, effects) = self.play_trial(queue, at, round)?;
        let broken = effects.iter().find_map(|effect| match effect {
            Effect::PromiseBroken { job, .. } => Some(self.number(*job)),
            _ => None,
        });
        let Some(other) = broken else { return Ok(()) };
        let message =
            format!("job {job} cannot have a longer window: the promise to job {other} would break");
        Err(Problem { job: Some(other), ..Problem::new(ProblemCode::Refused, message) }.into())
    }

    /// Sets the time limit of a job and informs its attempt.
    fn set_time_limit(&mut self, job: i64, time: Span) {
        let end = self.window_end(job);
        let gang = self.jobs.get(job).is_some_and(|record| self.is_gang(&record.queue));
        self.jobs.set_time_limit(job, time.ticks());
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
