//! Reconfiguration with running jobs.

use std::collections::BTreeMap;

use miserly_api::model::{Problem, ProblemCode};
use miserly_core::{Effect, Entry, Fault, JobId, Round, State, System};

use crate::compatibility::Compatibility;
use crate::engine::problem;
use crate::{
    Engine, EngineError, Journal, JournalError, JournalLine, Launcher, Now, Queue, Record, SavedEntry, Setup,
};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Replaces the setup, if that affects no running job and breaks no promise. A trial on a copy decides.
    ///
    /// # Errors
    /// As [`process_batch`](Engine::process_batch). The inner error is the reason why the setup is refused.
    pub fn reconfigure(&mut self, now: Now, setup: Setup) -> Result<Result<(), Problem>, EngineError> {
        // Compatibility first: a trial needs it.
        if let Err(problem) = self.system_of(&setup).and_then(|_| self.check_compatibility(&setup)) {
            return Ok(Err(problem));
        }
        if let Err(problem) = self.tried_setup(now, &setup)? {
            return Ok(Err(problem));
        }
        let system = match self.system_of(&setup) {
            Ok(system) => system,
            Err(problem) => return Ok(Err(problem)),
        };
        self.system = system;
        self.cpus = self.cpus.anew(&setup);
        for run in self.jobs.records().filter_map(|record| record.run.as_ref()) {
            self.cpus.take_these(&run.cpus);
        }
        let before = std::mem::replace(&mut self.setup, setup);
        let began = JournalLine::began(now.ticks, now.wall.as_microsecond(), &self.setup);
        self.batch.line(&began);
        let round = Round { fault: Some(Fault::Away), ..Round::default() };
        self.play_now(now, round)?;
        self.fit_pools(now)?;
        self.send_planned_windows();
        self.commit_setup(now, before)
    }

    /// Commits a setup and dispatches its consequences. Without space the setup is as it was before.
    fn commit_setup(&mut self, now: Now, before: Setup) -> Result<Result<(), Problem>, EngineError> {
        match self.commit(now) {
            Ok(()) => {
                self.dispatch(now);
                self.send_slot_schedules();
                Ok(Ok(()))
            }
            Err(error @ JournalError::Full(_)) => {
                self.setup = before;
                let facts = self.retry.take_facts();
                self.rollback(now, &error, facts)?;
                Ok(Err(problem(ProblemCode::Storage, error.to_string())))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that all jobs can keep their placements.
    fn check_compatibility(&self, setup: &Setup) -> Result<(), Problem> {
        let compatibility = Compatibility::new(setup, self.kept());
        let conflict = |record: &Record| Some((record.number, compatibility.conflict(record)?));
        self.jobs.records().find_map(conflict).map_or(Ok(()), |(number, conflict)| {
            let message = format!("job {number} {conflict}");
            Err(Problem { job: Some(number), ..problem(ProblemCode::Conflict, message) })
        })
    }

    /// Returns a problem if a promise would break, from a trial on a copy.
    fn tried_setup(&self, now: Now, setup: &Setup) -> Result<Result<(), Problem>, EngineError> {
        let mut trial = match self.system_of(setup) {
            Ok(system) => system,
            Err(problem) => return Ok(Err(problem)),
        };
        let mut effects = vec![];
        let mut round = Round { fault: Some(Fault::Away), ..Round::default() };
        trial.round(self.values.last.max(now.ticks), &mut round, &mut effects)?;
        let suffers = |effect: &Effect| match effect {
            Effect::PromiseBroken { job, .. } | Effect::Refused { job, .. } => Some(self.number(*job)),
            _ => None,
        };
        let promised = |number: i64| {
            let entry = self.jobs.get(number)?.entry.as_ref()?.entry();
            entry.promise.filter(|_| entry.state == State::Waiting)
        };
        let lost = trial.queues().iter().zip(&setup.queues).find_map(|(queue, setup)| {
            use miserly_policies::Promises;
            let silent = setup.policy.promises() == Promises::Nothing;
            queue
                .ledger()
                .waiting()
                .map(|job| self.number(job))
                .find(|number| silent && promised(*number).is_some())
        });
        Ok(match effects.iter().find_map(suffers).or(lost) {
            None => Ok(()),
            Some(job) => {
                let message = format!("the promise to job {job} would break");
                Err(Problem { job: Some(job), ..problem(ProblemCode::Refused, message) })
            }
        })
    }

    /// Returns the present jobs in the queues of a setup.
    fn system_of(&self, setup: &Setup) -> Result<System, Problem> {
        let place: BTreeMap<&str, usize> =
            setup.queues.iter().enumerate().map(|(place, queue)| (queue.name.as_str(), place)).collect();
        let mut entries: Vec<Vec<(JobId, Entry)>> = setup.queues.iter().map(|_| vec![]).collect();
        for record in self.jobs.records() {
            let queue = place.get(record.queue.as_str()).ok_or_else(|| {
                let message = format!("job {} is in queue {:?}, which is gone", record.number, record.queue);
                Problem { job: Some(record.number), ..problem(ProblemCode::Conflict, message) }
            })?;
            let entry = record.entry.as_ref().filter(|_| record.is_in_ledger()).map(SavedEntry::entry);
            if let (Some(entry), Some(job)) = (entry, self.jobs.handle(record.number)) {
                let request = miserly_core::Request { queue: u32::try_from(*queue).ok(), ..entry.request };
                entries[*queue].push((job, Entry { request, ..entry }));
            }
            let runs_elsewhere =
                record.run.as_ref().is_some_and(|run| run.cpus.iter().any(|cpu| !setup.cpus.contains(cpu)));
            if runs_elsewhere {
                let message = format!("job {} runs on processors that are gone", record.number);
                return Err(Problem { job: Some(record.number), ..problem(ProblemCode::Conflict, message) });
            }
        }
        let kept = self.kept();
        let driver = |(queue, entries): (&Queue, Vec<(JobId, Entry)>)| {
            let message = format!("the jobs that run in queue {} hold more than it would have", queue.name);
            let kept = kept.get(&queue.name).cloned().unwrap_or_default().over(queue);
            queue.driver(entries, &kept).map_err(|_| problem(ProblemCode::Conflict, message))
        };
        let queues: Result<Vec<_>, Problem> = setup.queues.iter().zip(entries).map(driver).collect();
        Ok(setup.system_of(queues?))
    }
}
