//! Queues whose policy made a mistake: they are stopped, and the others go on.

use std::collections::BTreeMap;

use miserly_api::model::{Problem, ProblemCode};
use miserly_core::{
    Context, Driver, Effect, Event, Fault, JobId, Ledger, Policy, Round, Slicing, Span, System, Time,
    Violation,
};

use crate::request::handler::RequestError;
use crate::{Engine, EngineError, Journal, Launcher, Now};

/// The stopped queues, and the mistake of each.
pub(crate) type StoppedQueues = BTreeMap<String, String>;

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Breaks the promises of stopped queues. Nothing keeps them.
    pub(crate) fn break_stopped_promises(&mut self, now: Now) -> Result<(), EngineError> {
        if self.stopped.is_empty() {
            return Ok(());
        }
        let at = now.ticks.max(self.values.last_instant + Span::TICK);
        self.play(now, at, Round { fault: Some(Fault::Away), ..Round::default() })?;
        Ok(())
    }

    /// Replaces the policies of stopped queues.
    pub(crate) fn stop_policies(&self, system: &mut System) {
        for (queue, driver) in self.setup.queues.iter().zip(system.queues_mut()) {
            if self.stopped.contains_key(&queue.name) {
                let policy = queue.policy.build(driver.ledger().machine(), 0);
                driver.replace(Box::new(StoppedPolicy::in_place_of(policy.ok().as_deref())));
            }
        }
    }

    /// Returns whether the queue at a position is stopped: it plans nothing.
    pub(crate) fn is_stopped(&self, queue: usize) -> bool {
        self.stopped.contains_key(&self.setup.queues[queue].name)
    }

    /// Plays a round on a copy of a queue. Returns the copy, and the effects.
    pub(crate) fn play_trial(
        &self,
        queue: usize,
        at: Time,
        round: Round,
    ) -> Result<(System, Vec<Effect>), RequestError> {
        if let Some(problem) = stopped_problem(&self.stopped, &self.setup.queues[queue].name) {
            return Err(problem.into());
        }
        let ledger = self.system.queues()[queue].ledger().clone();
        play_on(self.setup.queues[queue].driver_over(ledger), queue, at, round)
    }
}

/// Plays a round on the copy of a queue. Returns the copy, and the effects.
pub(crate) fn play_on(
    copy: Driver,
    queue: usize,
    at: Time,
    mut round: Round,
) -> Result<(System, Vec<Effect>), RequestError> {
    let mut trial = System::new(vec![copy]);
    let mut effects = vec![];
    let played = trial.round(at, &mut round, &mut effects);
    played.map_err(|violation| EngineError::Violation(Violation { queue, ..violation }))?;
    Ok((trial, effects))
}

/// Returns the problem of a request for a job of a queue, if the queue is stopped.
pub(crate) fn stopped_problem(stopped: &StoppedQueues, queue: &str) -> Option<Problem> {
    let mistake = stopped.get(queue)?;
    let message =
        format!("queue {queue} is stopped: {mistake}; a reload of the configuration tries it again");
    Some(Problem::new(ProblemCode::Unavailable, message))
}

/// The policy of a stopped queue. It starts nothing, and takes all promises back.
struct StoppedPolicy {
    names_pes: bool,
    slicing: Option<Slicing>,
    usage_half_life: Option<Span>,
}

impl StoppedPolicy {
    /// Returns the policy over a ledger as another one keeps it.
    fn in_place_of(policy: Option<&dyn Policy>) -> StoppedPolicy {
        StoppedPolicy {
            names_pes: policy.is_some_and(Policy::names_pes),
            slicing: policy.and_then(Policy::slices_time),
            usage_half_life: policy.and_then(Policy::usage_half_life),
        }
    }
}

impl Policy for StoppedPolicy {
    fn name(&self) -> &'static str {
        "stopped"
    }

    fn names_pes(&self) -> bool {
        self.names_pes
    }

    fn slices_time(&self) -> Option<Slicing> {
        self.slicing
    }

    fn usage_half_life(&self) -> Option<Span> {
        self.usage_half_life
    }

    fn rebuild(&mut self, _now: Time, _ledger: &Ledger) {}

    fn event(&mut self, _now: Time, _event: Event, _ledger: &Ledger) {}

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let promised = |job: &JobId| {
            context.ledger().entry(*job).promise.is_some_and(|promise| promise.best < Time::MAX)
        };
        let jobs: Vec<JobId> = context.ledger().waiting().filter(promised).collect();
        for job in jobs {
            // Without a cause they break at the next one. Nothing starts anyway.
            let _ = context.break_promise(job, Time::MAX);
        }
        Ok(())
    }
}
