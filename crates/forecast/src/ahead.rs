//! Simulations from the present state until one job starts.

use std::convert::Infallible;
use std::iter;

use miserly_core::{
    Driver, Effect, Entry, EventOrder, JobId, JobNumber, Ledger, Machine, Procs, Span, State, System, Time,
    draw,
};
use miserly_policies::PolicySpec;
use miserly_sim::{Job, Observer, RunError, Simulation};

use crate::RuntimeModel;
use crate::runtimes::Runtimes;

/// The seed of the draws of forecasts.
const FORECASTS: u64 = 0x666f_7265;

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

/// The simulated starts of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// With likely runtimes, one for each draw, ascending. A draw in which the job does not start is left out.
    pub likely: Vec<Time>,
    /// With requested runtimes: the worst case, if no further job is submitted. `None`: it does not start.
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
    /// Returns the starts of a waiting job, with this number of draws.
    pub(crate) fn points(&self, rules: &Rules, job: JobId, model: &[(u64, Runtimes)], draws: u64) -> Points {
        let number = self.ledger.request(job).number;
        let likely =
            |draw_number: u64| self.start(rules, number, |entry| drawn_runtime(model, entry, draw_number));
        let mut starts: Vec<Time> = (0..draws).filter_map(likely).collect();
        starts.sort_unstable();
        let requested = match self.ledger.entry(job).promise {
            Some(promise) => Some(promise.best),
            None => self.start(rules, number, |entry| entry.request.estimate),
        };
        Points { likely: starts, requested }
    }

    /// Returns the likely runtimes of all jobs, by their admission numbers, which ascend.
    pub(crate) fn likely_runtimes(&self, model: &RuntimeModel) -> Vec<(u64, Runtimes)> {
        let ledger = &self.ledger;
        let jobs = ledger.waiting().chain(ledger.running()).chain(ledger.suspended());
        let mut all: Vec<(u64, Runtimes)> = jobs
            .map(|job| ledger.entry(job))
            .map(|entry| (entry.admitted, model.runtimes(entry, self.now)))
            .collect();
        all.sort_unstable_by_key(|(admitted, _)| *admitted);
        all
    }

    fn start(&self, rules: &Rules, number: JobNumber, runtime: impl FnMut(&Entry) -> Span) -> Option<Time> {
        let mut watch = StartWatch { number, start: None };
        self.run(rules, runtime, &mut watch).then_some(watch.start).flatten()
    }

    /// Simulates from this state on, until the watch has enough or nothing happens any more. Returns whether it went well.
    pub(crate) fn run(
        &self,
        rules: &Rules,
        runtime: impl FnMut(&Entry) -> Span,
        watch: &mut dyn Observer,
    ) -> bool {
        let Ok(policy) = rules.policy.build(&rules.machine, rules.seed) else { return false };
        let mut driver = Driver::new(self.ledger.clone(), policy, rules.event_order);
        driver.resume(self.now, self.wake);
        let procs: Procs = rules.machine.capacity().cpus_count();
        let future = Simulation::continuing(System::new(vec![driver]), procs, self.now, runtime);
        let Ok(mut future) = future else { return false };
        let jobs: &mut dyn Iterator<Item = Result<Job, Infallible>> = &mut iter::empty();
        matches!(future.run(jobs, &mut [watch]), Ok(()) | Err(RunError::Stuck { .. }))
    }

    /// Returns the handle of a job with this number that waits.
    pub(crate) fn waiting(ledger: &Ledger, number: JobNumber) -> Option<JobId> {
        ledger.waiting().find(|job| {
            let entry = ledger.entry(*job);
            entry.request.number == number && entry.state == State::Waiting
        })
    }
}

/// Returns the runtime of a job in the draw of this number: one of its likely ones, or else its estimate.
pub(crate) fn drawn_runtime(model: &[(u64, Runtimes)], entry: &Entry, draw_number: u64) -> Span {
    let found = model.binary_search_by_key(&entry.admitted, |(admitted, _)| *admitted).ok();
    let random = draw(FORECASTS, entry.request.number, draw_number);
    found.and_then(|at| model[at].1.pick(random)).unwrap_or(entry.request.estimate)
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
