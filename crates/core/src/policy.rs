//! The interface of a scheduling policy.

use std::sync::Arc;

use crate::{Context, Event, HostId, JobId, Ledger, Slicing, Span, Time, UsageWeights, Violation};

/// A scheduling policy: a deterministic state machine that receives events and decides in passes.
///
/// # The contract
/// - **No clock.** A policy never reads a clock. Time reaches it as the `now` of a call. It
///   requests a later call with a wake-up ([`Context::wake_at`]) and has no other way to wait.
/// - **No I/O, no hash order, no global state.** A random draw is a pure function of (seed, job,
///   draw number).
/// - **No actual runtimes.** A policy sees requests and past events. No type that it can reach
///   contains [`ActualRuntime`](crate::ActualRuntime).
/// - **No count of free resources.** Keep no count of free resources: ask
///   [`ledger()`](crate::Context::ledger), which has every decision made so far.
/// - **No state that cannot be rebuilt.** All state of a policy is derived from the ledger. It can
///   be dropped at any moment and derived again by [`rebuild`](Policy::rebuild). The decisions stay
///   the same.
///
/// # The calls
/// For each event of an instant the driver calls [`event`](Policy::event). Once per round it calls
/// [`pass`](Policy::pass). The convention of the run ([`EventOrder`](crate::EventOrder)) determines
/// the order of the events. It also determines whether a round holds one event or all events of the
/// instant. A policy is correct under both conventions.
pub trait Policy: Send {
    /// Returns the name in the registry, for messages.
    fn name(&self) -> &str;

    /// Returns whether the policy chooses the processors of a job. The ledger then names them
    /// ([`Ledger::name_pes`]).
    fn names_pes(&self) -> bool {
        false
    }

    /// Returns whether the policy predicts runtimes ([`Context::predict`]). The ledger drops the
    /// predictions of an earlier policy if not.
    fn predicts(&self) -> bool {
        false
    }

    /// Returns whether the policy starts jobs for a quantum ([`Context::start_for_quantum`]). If not, the jobs of an earlier policy
    /// that run for one have their whole time.
    ///
    /// [`Context::start_for_quantum`]: crate::Context::start_for_quantum
    fn gives_quanta(&self) -> bool {
        false
    }

    /// Returns the time slicing of the processors of the only host, if the policy slices time.
    ///
    /// The ledger then keeps a matrix of slots ([`Ledger::slice_time`]) and names processors.
    fn slices_time(&self) -> Option<Slicing> {
        None
    }

    /// Returns the half-life of the usage of each user, if the policy reads it ([`Ledger::usage`]).
    ///
    /// [`Span::MAX`]: usage does not decay. The ledger drops the usage of an
    /// earlier policy if there is none.
    fn usage_half_life(&self) -> Option<Span> {
        None
    }

    /// Returns the weights of resources in the usage; none: it counts processors.
    fn usage_weights(&self) -> Option<Arc<UsageWeights>> {
        None
    }

    /// Returns the hosts that the policy keeps idle for waiting jobs, for the metrics of a run. A
    /// host may be listed twice.
    fn kept_hosts(&self, _ledger: &Ledger) -> Vec<HostId> {
        Vec::new()
    }

    /// Drops all state and derives it again from the ledger, as of `now`.
    ///
    /// Called between rounds. A new policy is rebuilt once, on an empty ledger or on the ledger of
    /// a former policy. Waiting jobs may or may not have promises.
    fn rebuild(&mut self, now: Time, ledger: &Ledger);

    /// Records an event. Updates caches and makes no decision. O(log n).
    fn event(&mut self, now: Time, event: Event, ledger: &Ledger);

    /// Removes a waiting job that leaves the ledger next without a start. Returns whether it did: a
    /// policy that does not is rebuilt.
    fn withdraw(&mut self, _now: Time, _job: JobId, _ledger: &Ledger) -> bool {
        false
    }

    /// Makes decisions. Every decision goes through the context, which checks and applies it at
    /// once.
    ///
    /// # Errors
    /// Returns the refusal of a decision. The run ends there.
    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation>;
}
