//! A guard around the policy of a queue: a panic of the policy stops its queue and not the daemon.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use miserly_core::{
    Context, Culprit, Event, HostId, JobId, Ledger, Policy, Rule, Slicing, Span, Time, UsageWeights,
    Violation,
};

/// A policy whose panic is a violation.
///
/// After a panic it makes no decision until the engine replaces it.
pub(crate) struct GuardedPolicy {
    policy: Box<dyn Policy>,
    has_panicked: bool,
}

impl GuardedPolicy {
    pub(crate) fn new(policy: Box<dyn Policy>) -> GuardedPolicy {
        GuardedPolicy { policy, has_panicked: false }
    }

    /// Returns the result of a call; `None` if the policy panics in it, or has panicked before.
    fn guard<T>(&mut self, call: impl FnOnce(&mut dyn Policy) -> T) -> Option<T> {
        if self.has_panicked {
            return None;
        }
        // What the policy leaves behind is dropped with it, and the ledger is loaded again.
        let result = catch_unwind(AssertUnwindSafe(|| call(&mut *self.policy)));
        self.has_panicked = result.is_err();
        result.ok()
    }
}

impl Policy for GuardedPolicy {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn names_pes(&self) -> bool {
        self.policy.names_pes()
    }

    fn predicts(&self) -> bool {
        self.policy.predicts()
    }

    fn gives_quanta(&self) -> bool {
        self.policy.gives_quanta()
    }

    fn slices_time(&self) -> Option<Slicing> {
        self.policy.slices_time()
    }

    fn usage_half_life(&self) -> Option<Span> {
        self.policy.usage_half_life()
    }

    fn usage_weights(&self) -> Option<Arc<UsageWeights>> {
        self.policy.usage_weights()
    }

    fn kept_hosts(&self, ledger: &Ledger) -> Vec<HostId> {
        self.policy.kept_hosts(ledger)
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        self.guard(|policy| policy.rebuild(now, ledger));
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        self.guard(|policy| policy.event(now, event, ledger));
    }

    fn withdraw(&mut self, now: Time, job: JobId, ledger: &Ledger) -> bool {
        self.guard(|policy| policy.withdraw(now, job, ledger)).unwrap_or_default()
    }

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        let panicked = || Violation {
            queue: 0,
            policy: String::new(),
            culprit: Culprit::Policy,
            job: None,
            now,
            rule: Rule::Panicked,
        };
        self.guard(|policy| policy.pass(context)).unwrap_or_else(|| Err(panicked()))
    }
}
