//! The jobs that hold processors while a job waits.

use std::collections::BTreeMap;

use miserly_core::{Effect, JobNumber, Ledger, Procs, StartReason, State, Time};
use miserly_sim::Finished;

/// The jobs that hold processors in the queue of a job, between its submission and its start.
#[derive(Default)]
pub(super) struct Held {
    /// The start reasons of the running jobs.
    reasons: BTreeMap<JobNumber, StartReason>,
    jobs: BTreeMap<JobNumber, Holding>,
}

/// A job that holds processors.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Holding {
    pub(super) job: JobNumber,
    /// The most processors that it holds.
    pub(super) procs: Procs,
    pub(super) reason: Option<StartReason>,
    /// The uninterrupted runs, ascending. The last one has no end if the job still runs.
    pub(super) runs: Vec<(Time, Option<Time>)>,
}

impl Held {
    /// Returns the jobs in the order of their numbers.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &Holding> {
        self.jobs.values()
    }

    #[cfg(test)]
    pub(super) fn from_jobs(jobs: Vec<Holding>) -> Held {
        let jobs = jobs.into_iter().map(|holding| (holding.job, holding)).collect();
        Held { jobs, ..Held::default() }
    }

    /// Notes an effect on any job of the log.
    pub(super) fn effect(&mut self, job: JobNumber, effect: &Effect) {
        if let Effect::Started { reason, .. } = effect {
            self.reasons.insert(job, *reason);
        }
    }

    /// Notes the end of any job of the log.
    pub(super) fn finished(&mut self, job: &Finished) {
        self.reasons.remove(&job.request.number);
        if let Some(holding) = self.jobs.get_mut(&job.request.number) {
            holding.stop(job.end);
        }
    }

    /// Notes the running jobs of a ledger after a round. `waits` is whether the job still waits.
    pub(super) fn round(&mut self, now: Time, ledger: &Ledger, waits: bool) {
        let mut running = BTreeMap::new();
        for entry in ledger.running().map(|job| ledger.entry(job)) {
            if let State::Running { since, .. } = entry.state {
                running.insert(entry.request.number, (since, entry.working()));
            }
        }
        for holding in self.jobs.values_mut().filter(|holding| !running.contains_key(&holding.job)) {
            holding.stop(now);
        }
        for (job, (since, procs)) in running {
            let known = self.jobs.contains_key(&job);
            if known || waits {
                let reason = self.reasons.get(&job).copied();
                let new = || Holding { job, procs, reason, runs: vec![] };
                self.jobs.entry(job).or_insert_with(new).runs_since(since, procs);
            }
        }
    }
}

impl Holding {
    fn runs_since(&mut self, since: Time, procs: Procs) {
        self.procs = self.procs.max(procs);
        if self.runs.last().is_none_or(|(_, end)| end.is_some()) {
            self.runs.push((since, None));
        }
    }

    fn stop(&mut self, now: Time) {
        if let Some((_, end @ None)) = self.runs.last_mut() {
            *end = Some(now);
        }
    }
}
