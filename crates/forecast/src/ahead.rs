//! Simulations from the present state until one job starts.

use std::convert::Infallible;
use std::iter;

use miserly_core::{
    Driver, Effect, Entry, EventOrder, JobId, JobNumber, Ledger, Machine, Procs, Span, State, System, Time,
};
use miserly_policies::PolicySpec;
use miserly_sim::{Job, Observer, RunError, Simulation};

use crate::RuntimeModel;

/// A copy of the state of a system with one queue.
#[derive(Clone, Debug)]
pub struct SystemCopy {
    /// The instant of the copy, after all decisions.
    pub now: Time,
    /// The ledger.
    pub ledger: Ledger,
    /// The wake-up that the policy requested.
    pub wake: Option<Time>,
}

/// The starts of a job under two assumptions. `None`: it does not start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// With likely runtimes.
    pub likely: Option<Time>,
    /// With requested runtimes: the worst case, if no further job is submitted.
    pub requested: Option<Time>,
}

/// The rules of the simulations: those of the system itself.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) policy: PolicySpec,
    pub(crate) machine: Machine,
    pub(crate) seed: u64,
    pub(crate) event_order: EventOrder,
}

impl SystemCopy {
    /// Returns the starts of a waiting job.
    pub(crate) fn points(&self, rules: &Rules, job: JobId, model: &[(JobId, Span)]) -> Points {
        let number = self.ledger.request(job).number;
        let likely = |entry: &Entry| {
            let found =
                model.binary_search_by_key(&entry.admitted, |(id, _)| self.ledger.entry(*id).admitted);
            found.map_or(entry.request.estimate, |at| model[at].1)
        };
        Points {
            likely: self.start(rules, number, likely),
            requested: match self.ledger.entry(job).promise {
                Some(promise) => Some(promise.best),
                None => self.start(rules, number, |entry| entry.request.estimate),
            },
        }
    }

    /// Returns the likely runtimes of all jobs, in the order of their admission.
    pub(crate) fn likely_runtimes(&self, model: &RuntimeModel) -> Vec<(JobId, Span)> {
        let ledger = &self.ledger;
        let mut jobs: Vec<JobId> =
            ledger.waiting().chain(ledger.running()).chain(ledger.suspended()).collect();
        jobs.sort_unstable_by_key(|job| ledger.entry(*job).admitted);
        jobs.into_iter().map(|job| (job, model.runtime(ledger.entry(job), self.now))).collect()
    }

    fn start(&self, rules: &Rules, number: JobNumber, runtime: impl FnMut(&Entry) -> Span) -> Option<Time> {
        let policy = rules.policy.build(&rules.machine, rules.seed).ok()?;
        let mut driver = Driver::new(self.ledger.clone(), policy, rules.event_order);
        driver.resume(self.now, self.wake);
        let procs: Procs = rules.machine.capacity().cpus_count();
        let mut future = Simulation::continuing(System::new(vec![driver]), procs, self.now, runtime).ok()?;
        let mut watch = StartWatch { number, start: None };
        let jobs: &mut dyn Iterator<Item = Result<Job, Infallible>> = &mut iter::empty();
        match future.run(jobs, &mut [&mut watch]) {
            Ok(()) | Err(RunError::Stuck { .. }) => watch.start,
            Err(_) => None,
        }
    }

    /// Returns the handle of a job with this number that waits.
    pub(crate) fn waiting(ledger: &Ledger, number: JobNumber) -> Option<JobId> {
        ledger.waiting().find(|job| {
            let entry = ledger.entry(*job);
            entry.request.number == number && entry.state == State::Waiting
        })
    }
}

/// Waits for the start of one job.
struct StartWatch {
    number: JobNumber,
    start: Option<Time>,
}

impl Observer for StartWatch {
    fn effect(&mut self, now: Time, job: JobNumber, effect: &Effect) {
        if job == self.number && matches!(effect, Effect::Started { .. }) {
            self.start.get_or_insert(now);
        }
    }

    fn has_enough(&self) -> bool {
        self.start.is_some()
    }
}
