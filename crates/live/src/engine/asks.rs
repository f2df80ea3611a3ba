//! Answers.

use miserly_core::{Amendment, Change, Round, State, Time};

use super::{Answer, Engine, EngineError, Hands, Record, Stands, problem};
use crate::clock::Now;
use crate::model::{JobView, Problem, ProblemCode};
use crate::service::{Caller, Filter, Question, Reply};
use crate::store::EndedFilter;

/// Of jobs that have ended at most so many are shown at once: they are read while nothing else is done.
const ENDED_MOST: u32 = 10_000;

/// What a question came to, or why the engine cannot go on.
pub(super) type Asked = Result<Result<Reply, Problem>, EngineError>;

impl<H: Hands> Engine<H> {
    /// Sees to a question. The answer is given when what it says is on disk.
    pub(super) fn answer(
        &mut self,
        now: Now,
        caller: Caller,
        question: Question,
        answer: Answer,
    ) -> Result<(), EngineError> {
        if let Question::Wait(job) = question
            && self.is_to_end(job)
        {
            self.waiting.push((job, caller, answer));
            return Ok(());
        }
        let reply = self.reply(now, caller, question)?;
        self.turn.answers.push((answer, reply));
        Ok(())
    }

    /// Whether a job has still to end, on disk: one that ended in this very turn runs on there.
    fn is_to_end(&self, job: i64) -> bool {
        self.records.contains_key(&job) || self.turn.over.contains_key(&job)
    }

    fn reply(&mut self, now: Now, caller: Caller, question: Question) -> Asked {
        match question {
            Question::Submit(submission) => self.submit(now, caller, &submission),
            Question::Quote(submission) => self.quote(now, caller, &submission),
            Question::Cancel { job, array } => self.cancel(now, caller, job, array),
            Question::Hold(job) => self.hold(now, caller, job),
            Question::Release(job) => self.release(now, caller, job),
            Question::Requeue(job) => Ok(self.requeue(caller, job)),
            Question::Extend { job, by } => self.extend(now, caller, job, by),
            Question::Drain(on) => Ok(self.drain(caller, on)),
            Question::Jobs(filter) => Ok(self.jobs(now, &filter)),
            Question::Job(job) | Question::Wait(job) => Ok(self.job(now, job)),
            Question::Pools => Ok(Ok(Reply::Pools(self.pools(now)))),
            Question::Status => Ok(Ok(Reply::Status(Box::new(self.status(now))))),
        }
    }

    /// The job, if it is the caller's to change.
    pub(super) fn own(&self, caller: Caller, job: i64) -> Result<&Record, Problem> {
        let Some(record) = self.records.get(&job) else {
            let over = self.store.job(job).ok().flatten().is_some();
            return Err(if over {
                problem(ProblemCode::Conflict, format!("job {job} is over"))
            } else {
                no_job(job)
            });
        };
        if caller.uid != 0 && caller.uid != record.uid && caller.uid != self.owner {
            return Err(problem(ProblemCode::Forbidden, format!("job {job} is another user's")));
        }
        Ok(record)
    }

    fn job(&self, now: Now, job: i64) -> Result<Reply, Problem> {
        if let Some(record) = self.records.get(&job) {
            return Ok(Reply::Job(Box::new(self.view(now, record))));
        }
        let row = self.store.job(job).map_err(|error| problem(ProblemCode::Storage, error.to_string()))?;
        let row = row.ok_or_else(|| no_job(job))?;
        Ok(Reply::Job(Box::new(self.view(now, &super::start::record(&row)?))))
    }

    fn jobs(&self, now: Now, filter: &Filter) -> Result<Reply, Problem> {
        let wanted = |record: &&Record| {
            filter.uid.is_none_or(|uid| record.uid == uid)
                && filter.queue.as_ref().is_none_or(|queue| record.queue == *queue)
                && filter
                    .array
                    .is_none_or(|array| record.array.map_or(record.number, |(first, _)| first) == array)
        };
        let mut views: Vec<JobView> = Vec::new();
        if filter.all {
            let ended = EndedFilter {
                uid: filter.uid,
                queue: filter.queue.clone(),
                array: filter.array,
                limit: Some(filter.limit.unwrap_or(1000).min(ENDED_MOST)),
            };
            let rows = self
                .store
                .jobs(Some(&ended))
                .map_err(|error| problem(ProblemCode::Storage, error.to_string()))?;
            for row in rows {
                views.push(self.view(now, &super::start::record(&row)?));
            }
        }
        views.extend(self.records.values().filter(wanted).map(|record| self.view(now, record)));
        if views.is_empty() {
            self.exists(filter)?;
        }
        Ok(Reply::Jobs(views))
    }

    /// Whether there is what a filter names: that nobody is in it is another thing.
    fn exists(&self, filter: &Filter) -> Result<(), Problem> {
        if let Some(name) = &filter.queue {
            self.queue_called(name)?;
        }
        let Some(array) = filter.array.filter(|array| !self.is_to_end(*array)) else { return Ok(()) };
        let row = self.store.job(array).map_err(|error| problem(ProblemCode::Storage, error.to_string()))?;
        row.map_or(Err(no_job(array)), |_| Ok(()))
    }

    fn drain(&mut self, caller: Caller, on: bool) -> Result<Reply, Problem> {
        if caller.uid != 0 && caller.uid != self.owner {
            return Err(problem(
                ProblemCode::Forbidden,
                "only whoever runs the daemon, or root, can drain it",
            ));
        }
        self.draining = on;
        self.turn.meta_changed = true;
        Ok(Reply::Handed(crate::model::Handed { jobs: vec![] }))
    }

    /// Brings the earliest starts of jobs that wait for others up to what is known of those now.
    pub(super) fn retie(&mut self, now: Now) -> Result<(), EngineError> {
        // Each time a job is tied closer or let go, at most as often as there are ties.
        for _ in 0..=self.tied.len() {
            let at = self.fresh(now)?;
            let mut round = Round::default();
            self.loosen(at, &mut round);
            self.bring_in(at, &mut round);
            if round.is_empty() {
                return Ok(());
            }
            self.play(now, at, round)?;
        }
        Ok(())
    }

    /// Lets jobs go that need not wait for others any more, and ties those closer that wait for what is not known yet.
    pub(super) fn loosen(&mut self, at: Time, round: &mut Round) {
        for number in self.tied.clone() {
            self.forget_gone(number);
            let Some(record) = self.records.get(&number) else { continue };
            let back = record.stands == Stands::Back { held: false };
            let loose = record.after.is_empty();
            if record.is_in() {
                round.amended.extend(self.new_begin(record, at));
                if loose {
                    self.tied.remove(&number);
                }
            } else if back && !loose && self.knows_ends_before(record, at) {
                self.submit_record(at, number, round);
            }
        }
    }

    /// A job waits no longer for those that are over.
    fn forget_gone(&mut self, number: i64) {
        let Some(record) = self.records.get(&number) else { return };
        let is_left = |other: &i64| self.records.contains_key(other);
        let left: Vec<i64> = record.after.iter().copied().filter(is_left).collect();
        if let Some(record) = self.records.get_mut(&number).filter(|record| record.after != left) {
            record.after = left;
            self.turn.touched.insert(number);
        }
    }

    /// How the earliest start of a job that waits in the ledger has to be amended, if it has to.
    fn new_begin(&self, record: &Record, at: Time) -> Option<Amendment> {
        let begin = self.begin_of(record, at);
        let job = *self.handles.get(&record.number)?;
        let entry = self.system.ledger_of(job)?.entry(job);
        let changes = entry.state == State::Waiting && entry.request.terms.begin != begin;
        changes.then_some(Amendment { job, change: Change::Begin(begin) })
    }

    /// Whether its policy knows of earliest starts, and the ends of all that it waits for are known.
    pub(super) fn knows_ends_before(&self, record: &Record, at: Time) -> bool {
        let knows = self.setup.queues.iter().any(|queue| queue.name == record.queue && queue.knows_begin());
        knows && record.after.iter().all(|other| self.end_of(*other, at).is_some())
    }

    /// The earliest start of a job, as of now: what its user said, and the ends of what it waits for. Never, while one of these is
    /// not known.
    pub(super) fn begin_of(&self, record: &Record, at: Time) -> Option<Time> {
        let left = record.after.iter().filter(|other| self.records.contains_key(other));
        let ends = left.map(|other| self.end_of(*other, at).unwrap_or(Time::MAX));
        ends.chain(record.begin.map(Time::from_ticks)).max()
    }

    /// When a job that is not over will be gone at the latest, if that is known. One that should be gone by now is late, and nobody
    /// knows for how long.
    pub(super) fn end_of(&self, number: i64, at: Time) -> Option<Time> {
        let end = self.expected_end(number).or_else(|| self.promised_end(number));
        end.filter(|end| *end > at && *end < Time::MAX)
    }

    /// The end of the window that a waiting job was promised.
    fn promised_end(&self, number: i64) -> Option<Time> {
        let job = self.handles.get(&number)?;
        let entry = self.system.ledger_of(*job)?.entry(*job);
        let waits = entry.state == State::Waiting;
        entry.promise.filter(|_| waits).map(|promise| promise.best + entry.request.planned())
    }
}

pub(super) fn no_job(job: i64) -> Problem {
    problem(ProblemCode::NotFound, format!("there is no job {job}; `miserly queue --all` lists them"))
}
