//! Release of jobs that wait for other jobs or for an instant.

use miserly_core::{Amendment, Change, Round, State, Submission, Time};

use crate::{Engine, EngineError, JobState, Journal, Launcher, Now, Queue, Record};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Adjusts the earliest starts of dependent jobs until they agree with the expected ends of the jobs that they wait for.
    pub(crate) fn settle_dependencies(&mut self, now: Now) -> Result<(), EngineError> {
        // Each step releases a job or adjusts its start, so there are at most as many steps as tracked jobs.
        for _ in 0..=self.dependencies.jobs().len() {
            let at = self.fresh(now)?;
            let mut round = Round::default();
            self.update_dependencies(at, &mut round);
            self.submit_due(at, &mut round);
            if round.is_empty() {
                return Ok(());
            }
            self.play(now, at, round)?;
        }
        Ok(())
    }

    /// Removes finished jobs from all dependencies. Adds to the round the jobs with a changed earliest start.
    pub(crate) fn update_dependencies(&mut self, at: Time, round: &mut Round) {
        for (number, after) in self.dependencies.remove_finished(|job| self.jobs.contains(job)) {
            if let Some(record) = self.jobs.get_mut(number) {
                record.after = after;
                self.batch.touch(number);
            }
        }
        for number in self.dependencies.jobs() {
            let Some(record) = self.jobs.get(number) else { continue };
            if record.is_in_ledger() {
                let depends = !record.after.is_empty();
                round.amended.extend(self.begin_amendment(record, at));
                if !depends {
                    self.dependencies.untrack(number);
                }
            } else if self.dependencies.is_blocked(number) && self.is_begin_known(record, at) {
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
        if !record.after.is_empty() {
            self.dependencies.track(record);
        }
        self.batch.touch(number);
        round.submitted.push(Submission { job, request });
    }

    /// Returns whether the queue's policy takes a job into account now, although the job may start only later.
    pub(crate) fn enters_at_once(&self, record: &Record, at: Time) -> bool {
        let due = record.own_begin().is_some_and(|begin| begin <= at || self.knows_begin(record));
        due || (!record.after.is_empty() && self.is_begin_known(record, at))
    }

    /// Returns the amendment of the earliest start of a queued job, if it changes.
    fn begin_amendment(&self, record: &Record, at: Time) -> Option<Amendment> {
        let begin = self.earliest_begin(record, at);
        let job = self.jobs.handle(record.number)?;
        let entry = self.entry(record.number)?;
        let changes = entry.state == State::Waiting && entry.request.constraints.begin != begin;
        changes.then_some(Amendment { job, change: Change::Begin(begin) })
    }

    /// Returns whether the policy supports earliest starts and the ends of all dependencies are known.
    fn is_begin_known(&self, record: &Record, at: Time) -> bool {
        self.knows_begin(record) && record.after.iter().all(|other| self.latest_end(*other, at).is_some())
    }

    fn knows_begin(&self, record: &Record) -> bool {
        self.setup.queue(&record.queue).is_some_and(Queue::knows_begin)
    }

    /// Returns the earliest start of a job: the user's, or the latest end of its dependencies.
    ///
    /// It is [`Time::MAX`] while the end of a dependency is unknown.
    pub(crate) fn earliest_begin(&self, record: &Record, at: Time) -> Option<Time> {
        let unfinished = record.after.iter().filter(|other| self.jobs.contains(**other));
        let ends = unfinished.map(|other| self.latest_end(*other, at).unwrap_or(Time::MAX));
        ends.chain(record.begin.map(Time::from_ticks)).max()
    }

    /// Returns the latest end of an unfinished job, if it is known. The end of an overdue job is unknown.
    pub(crate) fn latest_end(&self, number: i64, at: Time) -> Option<Time> {
        let end = self.expected_end(number).or_else(|| self.promised_end(number));
        end.filter(|end| *end > at && *end < Time::MAX)
    }

    /// Returns the end of the promised window of a waiting job.
    fn promised_end(&self, number: i64) -> Option<Time> {
        let entry = self.entry(number)?;
        let waits = entry.state == State::Waiting;
        entry.promise.filter(|_| waits).map(|promise| promise.best + entry.request.planned())
    }
}

impl Record {
    /// Returns the earliest start of a job that depends on no other job. Without `--begin` it is the beginning of time.
    fn own_begin(&self) -> Option<Time> {
        self.after.is_empty().then(|| Time::from_ticks(self.begin.unwrap_or(i64::MIN)))
    }
}
