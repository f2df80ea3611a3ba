//! Queues whose policy made a mistake: they are stopped, and the others go on.

use std::collections::BTreeMap;
use std::sync::Arc;

use miserly_api::model::{Problem, ProblemCode};
use miserly_core::{
    Context, Event, JobId, Ledger, Policy, Slicing, Span, System, Time, UsageWeights, Violation,
};

use crate::Queue;

/// The stopped queues, and the mistake of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoppedQueues {
    mistakes: BTreeMap<String, String>,
}

impl StoppedQueues {
    /// Stops a queue because of a mistake of its policy.
    pub(crate) fn stop(&mut self, queue: String, mistake: String) {
        self.mistakes.insert(queue, mistake);
    }

    /// Lets all queues go on.
    pub(crate) fn clear(&mut self) {
        self.mistakes.clear();
    }

    /// Returns the first stopped queue.
    pub(crate) fn first(&self) -> Option<&String> {
        self.mistakes.keys().next()
    }

    /// Returns whether a queue is stopped.
    pub(crate) fn contains(&self, queue: &str) -> bool {
        self.mistakes.contains_key(queue)
    }

    /// Returns the mistake of the policy of a stopped queue.
    pub(crate) fn mistake(&self, queue: &str) -> Option<&String> {
        self.mistakes.get(queue)
    }

    /// Checks that the queue of a job that is requested is not stopped.
    pub(crate) fn check(&self, queue: &str) -> Result<(), Problem> {
        let Some(mistake) = self.mistake(queue) else { return Ok(()) };
        let message =
            format!("queue {queue} is stopped: {mistake}; a reload of the configuration tries it again");
        Err(Problem::new(ProblemCode::Unavailable, message))
    }

    /// Replaces the policies of stopped queues.
    pub(crate) fn replace_policies(&self, queues: &[Queue], system: &mut System) {
        for (queue, driver) in queues.iter().zip(system.queues_mut()) {
            if self.contains(&queue.name) {
                let policy = queue.policy.build(driver.ledger().machine(), 0);
                driver.replace(Box::new(StoppedPolicy::in_place_of(policy.ok().as_deref())));
            }
        }
    }
}

/// The policy of a stopped queue. It starts nothing, and takes all promises back.
struct StoppedPolicy {
    names_pes: bool,
    slicing: Option<Slicing>,
    usage_half_life: Option<Span>,
    usage_weights: Option<Arc<UsageWeights>>,
}

impl StoppedPolicy {
    /// Returns the policy over a ledger as another one keeps it.
    fn in_place_of(policy: Option<&dyn Policy>) -> StoppedPolicy {
        StoppedPolicy {
            names_pes: policy.is_some_and(Policy::names_pes),
            slicing: policy.and_then(Policy::slices_time),
            usage_half_life: policy.and_then(Policy::usage_half_life),
            usage_weights: policy.and_then(Policy::usage_weights),
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

    fn usage_weights(&self) -> Option<Arc<UsageWeights>> {
        self.usage_weights.clone()
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
