//! Runs past a time limit: a job runs on while no other job needs its place.

use miserly_core::{Amendment, Change, JobId, Ledger, Round, Span, State, Time};
use miserly_marks::mark;

use crate::request::handler::RequestError;
use crate::submission::check::span_from_secs;
use crate::{Action, Engine, EngineError, JobState, Journal, Launcher, Now, Record};

/// The longest step by which a window grows. A new job waits at most so much longer because of it, and the lead.
const LONGEST_STEP: Span = Span::from_ticks(60_000_000);
/// The shortest step.
const SHORTEST_STEP: Span = Span::from_ticks(1_000_000);
/// The share of the time limit that a step is.
const STEPS_OF_LIMIT: i64 = 8;
/// The number of decisions in the last half step of a window.
const TRIES: i64 = 4;

/// A window that grows.
struct Grant {
    /// The position of the queue.
    queue: usize,
    number: i64,
    job: JobId,
    /// The time for which its resources are planned then.
    estimate: Span,
    longer: Span,
}

impl Grant {
    fn amendment(&self) -> Amendment {
        Amendment { job: self.job, change: Change::Estimate(self.estimate) }
    }
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Sets the instant at which it is decided whether a job runs on past its window.
    ///
    /// It is early enough that neither the early signal nor the grace period has begun.
    pub(crate) fn watch_overrun(&mut self, number: i64) {
        let stays = |queue: &str| self.setup.queue(queue).is_some_and(|queue| !queue.takes_processors());
        let at = self.jobs.get(number);
        let at = at.filter(|record| record.submission.overrun_if_idle && stays(&record.queue));
        let at = at.and_then(|record| Some(self.window_end(number)? - self.overrun_lead(record)));
        self.overruns.set(number, at);
    }

    /// Returns the time before the end of its window at which it is first decided whether a job runs on.
    fn overrun_lead(&self, record: &Record) -> Span {
        Span::from_ticks(record.overrun_step().ticks() / 2) + self.warned_before(record)
    }

    /// Returns the time before the end of its window from which on a job is told that it ends.
    fn warned_before(&self, record: &Record) -> Span {
        let signal = record.submission.signal.and_then(|signal| span_from_secs(signal.before));
        record.grace(self.setup.grace) + signal.unwrap_or_default()
    }

    /// Decides which of the jobs near the ends of their windows run on.
    ///
    /// The windows of all of them grow together in one round, if the plan of no waiting job is later then.
    pub(crate) fn decide_overruns(&mut self, now: Now) -> Result<(), EngineError> {
        if self.overruns.next().is_none_or(|next| next > now.ticks) {
            return Ok(());
        }
        let at = self.fresh(now)?;
        let mut granted: Vec<Grant> = vec![];
        for number in self.overruns.due(at) {
            let runs = |record: &&Record| {
                record.run.as_ref().is_some_and(|run| run.ending.is_none() && run.in_window)
            };
            let record = self.jobs.get(number).filter(runs);
            let (Some(record), Some(end)) = (record, self.window_end(number)) else { continue };
            let (step, lead) = (record.overrun_step(), self.overrun_lead(record));
            let longer = at + step + lead - end;
            if end <= at || longer <= Span::ZERO {
                mark!("a window has an end for which no decision is due");
                self.overruns.set(number, (end > at).then(|| (end - lead).max(at + Span::TICK)));
                continue;
            }
            let last = end - self.warned_before(record);
            if at >= last {
                // The job has been told that it ends, as after a stall.
                self.overruns.set(number, None);
                continue;
            }
            match self.longer_window(at, record, longer, &granted) {
                Ok(Some(grant)) => granted.push(grant),
                Ok(None) | Err(RequestError::Refused(_)) => {
                    mark!("a place is needed, so its job ends in time");
                    let again = at + Span::from_ticks((step.ticks() / 2 / TRIES).max(1));
                    self.overruns.set(number, (again < last).then_some(again));
                }
                Err(RequestError::Fatal(error)) => return Err(error),
            }
        }
        if granted.is_empty() {
            return Ok(());
        }
        mark!("a job runs on past its time limit");
        let amended = granted.iter().map(Grant::amendment).collect();
        self.play(now, at, Round { amended, ..Round::default() })?;
        for Grant { number, longer, .. } in granted {
            self.lengthen_window(number, longer);
        }
        Ok(())
    }

    /// Returns the longer window of a job, beside others that were granted, if no other job waits longer because of it.
    fn longer_window(
        &self,
        at: Time,
        record: &Record,
        longer: Span,
        granted: &[Grant],
    ) -> Result<Option<Grant>, RequestError> {
        let number = record.number;
        let Some(job) = self.jobs.handle(number) else { return Ok(None) };
        let (Some(queue), Some(end)) = (self.system.queue_of(job), self.window_end(number)) else {
            return Ok(None);
        };
        let passes_deadline = record.deadline.is_some_and(|deadline| end + longer > deadline);
        if passes_deadline
            || self.dependencies.dependents(number).next().is_some()
            || self.is_place_awaited(at)
        {
            return Ok(None);
        }
        self.check_changed_usage(at, record, &Record { time: record.time + longer, ..record.clone() })?;
        let present = self.system.queues()[queue].ledger();
        let grant = Grant { queue, number, job, estimate: present.request(job).estimate + longer, longer };
        let others = granted.iter().filter(|grant| grant.queue == queue);
        let amended = others.chain([&grant]).map(Grant::amendment).collect();
        let tried = self.try_round(queue, at, Round { amended, ..Round::default() })?;
        if tried.broken.is_some() || !keeps_plans(present, tried.ledger()) {
            return Ok(None);
        }
        self.check_pool(at, record, &tried)?;
        Ok(Some(grant))
    }

    /// Returns whether a job could enter its queue now and waits only for a place under a limit: the end of a job may free it.
    ///
    /// O(n) for n unfinished jobs.
    fn is_place_awaited(&self, at: Time) -> bool {
        self.jobs.records().any(|record| {
            record.state == JobState::Deferred && record.after.is_empty() && record.begin() <= at
        })
    }

    /// Lengthens the window of a job that its ledger plans for longer.
    fn lengthen_window(&mut self, number: i64, longer: Span) {
        let Some(record) = self.jobs.get_mut(number) else { return };
        *record.overrun.get_or_insert_default() += longer;
        let time = record.time + longer;
        self.jobs.set_time_limit(number, time);
        self.batch.touch(number);
        let attempt = self.jobs.get(number).and_then(Record::attempt);
        if let (Some(attempt), Some(end)) = (attempt, self.window_end(number)) {
            self.batch.act(attempt, Action::EndAt(end));
        }
    }

    /// Takes back what a job was given past its time limit, since it runs again.
    pub(crate) fn take_overrun_back(&mut self, number: i64) {
        let Some(record) = self.jobs.get_mut(number) else { return };
        let own = record.own_limit();
        if record.overrun.take().is_some() {
            self.jobs.set_time_limit(number, own);
        }
    }
}

impl Record {
    /// Returns the step by which the window of the job grows past its time limit.
    fn overrun_step(&self) -> Span {
        Span::from_ticks(self.own_limit().ticks() / STEPS_OF_LIMIT).clamp(SHORTEST_STEP, LONGEST_STEP)
    }
}

/// Returns whether no job waits longer on a copy of a ledger. Of a job without a plan that is not known.
fn keeps_plans(present: &Ledger, copy: &Ledger) -> bool {
    if present.suspended().next().is_some() {
        return false;
    }
    present.waiting().all(|job| {
        let Some(before) = plan(present, job) else { return false };
        let has_started = copy.get(job).is_some_and(|entry| entry.state != State::Waiting);
        has_started || plan(copy, job).is_some_and(|after| after <= before)
    })
}

/// Returns the start that is planned for a waiting job.
fn plan(ledger: &Ledger, job: JobId) -> Option<Time> {
    let entry = ledger.get(job)?;
    entry.planned.or(entry.promise.map(|promise| promise.best)).filter(|at| *at < Time::MAX)
}
