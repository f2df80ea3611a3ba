//! Reconfiguration with running jobs.

use miserly_api::model::{Problem, ProblemCode};
use miserly_core::{Effect, Entry, Fault, JobId, Kind, Ledger, Round, State, System, Time};
use miserly_marks::mark;
use miserly_policies::Promises;

use crate::dependency::tracker::DependencyTracker;
use crate::queue::compatibility::Compatibility;
use crate::queue::reservations::excess;
use crate::{
    Engine, EngineError, Journal, JournalError, JournalLine, Launcher, Now, Queue, Record, RequestError,
    Setup,
};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Replaces the setup by that of a configuration, and commits it. Reservations stay.
    ///
    /// # Errors
    /// [`RequestError::Refused`] if the setup stays as it was. Otherwise as [`process_batch`](Engine::process_batch).
    pub fn reconfigure(&mut self, now: Now, setup: Setup) -> Result<(), RequestError> {
        self.catch_up(now)?;
        let setup = setup.with_reservations(&self.setup.reservations)?;
        match self.replace_setup(now, setup) {
            Err(RequestError::Fatal(error @ EngineError::Violation(_))) => {
                mark!("a new setup breaks a rule");
                let message = format!("it does not fit the jobs that are there: {error}");
                self.set_aside(now, error)?;
                self.settle_left_out(now)?;
                self.commit_setup(now)?;
                Err(Problem::new(ProblemCode::Conflict, message).into())
            }
            replaced => {
                replaced?;
                self.commit_setup(now)
            }
        }
    }

    /// Applies what was due until now, and the facts that a failed commit left: a new setup is tried on the present state.
    fn catch_up(&mut self, now: Now) -> Result<(), RequestError> {
        mark!("a reload");
        let is_due = self.next_wakeup().is_some_and(|due| due <= now.ticks);
        if is_due || self.retry.at().is_some() {
            mark!("a reload catches up");
            self.process_batch(now, vec![])?;
        }
        let message = "the ends of jobs are not stored yet, because there is no room";
        self.retry.at().map_or(Ok(()), |_| {
            mark!("refused: no room for the ends of jobs");
            Err(Problem::new(ProblemCode::Storage, message).into())
        })
    }

    /// Replaces the setup in this batch, if that affects no running job and breaks no promise. A trial on a copy decides.
    ///
    /// # Errors
    /// [`RequestError::Refused`] if the setup stays as it was. Otherwise as [`process_batch`](Engine::process_batch).
    pub(crate) fn replace_setup(&mut self, now: Now, setup: Setup) -> Result<(), RequestError> {
        // Compatibility first: a trial needs it.
        self.check_compatibility(&setup)?;
        let trial = self.system_over(&setup)?;
        self.try_setup(now, &setup, trial)?;
        mark!("a new setup");
        self.stopped.clear();
        self.system = self.system_over(&setup)?;
        // Without predictions, the planned ends are others.
        self.save_entries();
        self.cpus = self.cpus.anew(&setup);
        for run in self.jobs.records().filter_map(|record| record.run.as_ref()) {
            self.cpus.take_these(&run.cpus);
        }
        self.setup.replace(setup);
        self.dependencies = DependencyTracker::new(&self.setup.user_limits, self.jobs.records());
        // The start of a daemon may have left some steps.
        self.dependencies.set_settled(false);
        self.batch.has_setup = true;
        let began = JournalLine::began(now.ticks, now.wall, &self.setup);
        self.batch.line(&began);
        let round = Round { fault: Some(Fault::Away), ..Round::default() };
        self.play_now(now, round)?;
        self.fit_pools(now)?;
        self.withdraw_shims();
        self.add_planned_windows();
        Ok(())
    }

    /// Puts the jobs under the configured setup, after the start of a daemon.
    ///
    /// Where that would break a promise or move a running job, the setup of the last daemon stays.
    pub(crate) fn apply_configuration(&mut self, now: Now) -> Result<(), EngineError> {
        let Some(setup) = self.setup.take_configured() else { return Ok(()) };
        mark!("another configuration at the start");
        match self.reconfigure(now, setup) {
            Ok(()) => Ok(()),
            Err(RequestError::Refused(problem)) => {
                mark!("refused: the configuration at the start");
                tracing::error!("the configuration stays as it was under the last daemon: {problem}");
                self.setup.set_problem(Some(problem.message));
                self.publish();
                Ok(())
            }
            Err(RequestError::Fatal(error)) => Err(error),
        }
    }

    /// Commits a setup and dispatches its consequences. Without space the setup is as it was before.
    fn commit_setup(&mut self, now: Now) -> Result<(), RequestError> {
        match self.commit(now) {
            Ok(()) => {
                self.setup.set_problem(None);
                self.publish();
                self.dispatch(now);
                self.send_slot_schedules();
                Ok(())
            }
            Err(error @ JournalError::Full(_)) => {
                mark!("refused: no room for the setup");
                let facts = self.retry.take_facts();
                self.rollback(now, &error, facts)?;
                Err(Problem::new(ProblemCode::Storage, error.to_string()).into())
            }
            Err(error) => Err(EngineError::from(error).into()),
        }
    }

    /// Checks that all jobs can keep their placements.
    fn check_compatibility(&self, setup: &Setup) -> Result<(), Problem> {
        let compatibility = Compatibility::new(setup, self.queue_states());
        let conflict = |record: &Record| {
            let conflict = compatibility.conflict(record).or_else(|| self.breaks_cores(setup, record))?;
            Some((record.number, conflict))
        };
        self.jobs.records().find_map(conflict).map_or(Ok(()), |(number, conflict)| {
            mark!("refused: placements that conflict");
            Err(conflict_of(number, format!("job {number} {conflict}")))
        })
    }

    /// Finds a job without whole cores under a setup that newly gives whole cores, or cores of another size. Others could not
    /// have theirs.
    fn breaks_cores(&self, setup: &Setup, record: &Record) -> Option<String> {
        let (granule, cpus) = (setup.granule(), record.submission.cpus);
        if !setup.whole_cores || granule == self.setup.granule() {
            return None;
        }
        if !cpus.is_multiple_of(granule) {
            return Some(format!(
                "requests {cpus} cpus, which are no whole cores of {granule} (whole-cores)"
            ));
        }
        let run = record.run.as_ref().filter(|run| !setup.are_whole_cores(&run.cpus))?;
        Some(format!("runs on the cpus {:?}, which are no whole cores (whole-cores)", run.cpus))
    }

    /// Checks on a copy of the jobs that no promise would break.
    fn try_setup(&self, now: Now, setup: &Setup, mut trial: System) -> Result<(), RequestError> {
        let mut effects = vec![];
        let mut round = Round { fault: Some(Fault::Away), ..Round::default() };
        let at = self.values.last_instant().max(now.ticks);
        let breaks = |job: i64| {
            mark!("refused: a setup would break a promise");
            let message = format!("the promise to job {job} would break");
            Problem { job: Some(job), ..Problem::new(ProblemCode::Refused, message) }
        };
        // No policy that promises less moves such a promise.
        if let Some(job) = self.missed_promise(at, setup, &trial) {
            return Err(breaks(job).into());
        }
        trial.round(at, &mut round, &mut effects).map_err(|violation| {
            mark!("refused: a setup does not fit the jobs");
            Problem::new(
                ProblemCode::Conflict,
                format!("it does not fit the jobs that are there: {violation}"),
            )
        })?;
        let suffers = |effect: &Effect| match effect {
            Effect::PromiseBroken { job, .. } | Effect::Refused { job, .. } => Some(self.number(*job)),
            _ => None,
        };
        let unheeded = || {
            let mut queues = trial.queues().iter().zip(&setup.queues);
            queues.find_map(|(queue, setup)| self.unheeded_promise(queue.ledger(), setup.policy.promises()))
        };
        self.check_reserved(at, setup, &trial)?;
        effects.iter().find_map(suffers).or_else(unheeded).map_or(Ok(()), |job| Err(breaks(job).into()))
    }

    /// Returns a job that waits past its promise in a queue whose new policy promises less than every job.
    fn missed_promise(&self, at: Time, setup: &Setup, trial: &System) -> Option<i64> {
        let queues = trial.queues().iter().zip(&setup.queues);
        let less = queues.filter(|(_, queue)| queue.policy.promises() != Promises::EveryJob);
        let waiting =
            less.flat_map(|(driver, _)| driver.ledger().waiting().map(|job| (driver.ledger(), job)));
        let mut missed = waiting.filter(|(ledger, job)| ledger.entry(*job).has_missed_promise(at));
        missed.next().map(|(_, job)| self.number(job))
    }

    /// Checks that running and promised jobs leave each reservation its part of the pool.
    fn check_reserved(&self, at: Time, setup: &Setup, trial: &System) -> Result<(), Problem> {
        for (queue, driver) in setup.queues.iter().zip(trial.queues()) {
            let Some((lack, _)) = excess(at, driver.ledger(), &queue.pool) else { continue };
            let is_reserved = queue.pool.exceptions().iter().any(|one| one.from <= lack && lack < one.to);
            let present = self.setup.queue(&queue.name).zip(self.ledger_called(&queue.name));
            let had_lack = present.is_some_and(|(before, ledger)| excess(at, ledger, &before.pool).is_some());
            if is_reserved && !had_lack {
                mark!("refused: too little beside a reservation");
                let message =
                    format!("queue {} would have too little for its jobs during a reservation", queue.name);
                return Err(Problem::new(ProblemCode::Refused, message));
            }
        }
        Ok(())
    }

    /// Returns a waiting job with a promise that a policy does not heed because it promises less.
    fn unheeded_promise(&self, ledger: &Ledger, promises: Promises) -> Option<i64> {
        let heeded = match promises {
            Promises::Nothing => 0,
            Promises::Head => 1,
            Promises::EveryJob => return None,
        };
        let waiting = ledger.waiting().filter(|job| ledger.entry(*job).promise.is_some());
        mark!("promises under a policy that heeds fewer");
        waiting.map(|job| self.number(job)).nth(heeded)
    }

    /// Returns whether a job waits in a queue for an instant, or for the end of another job.
    fn waits_for_begin(&self, number: i64) -> bool {
        self.entry(number).is_some_and(|entry| {
            let begin = entry.request.constraints.begin;
            entry.state == State::Waiting && begin.is_some_and(|begin| begin > self.values.last_instant())
        })
    }

    /// Returns the present jobs in the queues of a setup.
    fn system_over(&self, setup: &Setup) -> Result<System, Problem> {
        let mut entries: Vec<Vec<(JobId, Entry)>> = setup.queues.iter().map(|_| vec![]).collect();
        for record in self.jobs.records() {
            let number = record.number;
            let queue = setup.position(&record.queue).ok_or_else(|| {
                mark!("refused: the queue of a job is gone");
                conflict_of(number, format!("job {number} is in queue {:?}, which is gone", record.queue))
            })?;
            let (before, of) = (self.setup.queue(&record.queue), &setup.queues[queue]);
            if let (Some(entry), Some(job)) = (record.entry_in(setup, queue), self.jobs.handle(number)) {
                let same_gpus = before.is_some_and(|before| before.gpus == of.gpus);
                let entry = if same_gpus { Ok(entry) } else { record.entry_with_gpus(entry, of) };
                let conflict = |conflict| {
                    mark!("refused: other GPUs than those of a job");
                    conflict_of(number, format!("job {number} {conflict}"))
                };
                entries[queue].push((job, entry.map_err(conflict)?));
            }
            let waits_for_gpus =
                || before.is_some_and(|before| before.device_demand(&record.submission).is_ok());
            let lacks_gpus = || of.device_demand(&record.submission).err();
            if let Some(problem) = Some(record)
                .filter(|record| !record.is_finished() && record.run.is_none() && waits_for_gpus())
                .and_then(|_| lacks_gpus())
            {
                mark!("refused: no GPUs of the type of a job");
                return Err(conflict_of(number, format!("job {number} could not run: {}", problem.message)));
            }
            let has_fit = before.is_some_and(|before| fits(record, before));
            if has_fit && !fits(record, of) {
                mark!("refused: a pool too small for a job");
                let message =
                    format!("job {number} needs more than queue {} would have at any time", record.queue);
                return Err(conflict_of(number, message));
            }
            if !of.knows_begin() && self.waits_for_begin(number) {
                mark!("refused: a policy without earliest starts");
                let message = format!(
                    "job {number} has an earliest start, which queue {} would not heed",
                    record.queue
                );
                return Err(conflict_of(number, message));
            }
            let has_gone = |cpu: &u32| !setup.cpus.contains(cpu);
            if record.run.as_ref().is_some_and(|run| run.cpus.iter().any(has_gone)) {
                mark!("refused: processors in use are gone");
                return Err(conflict_of(number, format!("job {number} runs on processors that are gone")));
            }
        }
        setup.system(entries, self.queue_states()).map_err(|queue| {
            mark!("refused: a pool too small for what runs");
            let message = format!("the jobs that run in queue {} hold more than it would have", queue.name);
            Problem::new(ProblemCode::Conflict, message)
        })
    }
}

/// Returns whether a queue ever has what a job needs.
fn fits(record: &Record, queue: &Queue) -> bool {
    let most = queue.pool.most();
    let memory = most.get(Kind::Memory);
    record.submission.cpus <= most.cpus_count().get()
        && record.submission.gpus.unwrap_or(0) <= most.get(Kind::Gpus)
        && (memory == 0 || record.memory.kilobytes() <= memory)
}

fn conflict_of(job: i64, message: String) -> Problem {
    Problem { job: Some(job), ..Problem::new(ProblemCode::Conflict, message) }
}
