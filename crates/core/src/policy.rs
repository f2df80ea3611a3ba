//! What a scheduling policy is.

use crate::{Context, Event, HostId, Ledger, Slicing, Time, Violation};

/// A scheduling policy: a deterministic state machine that is told events and decides when asked.
///
/// # The contract
/// - **No clock.** A policy never asks what time it is. Time reaches it as the `now` of a call; to be called
///   later it asks for a wake-up ([`Context::wake_at`]), and it has no other way to wait.
/// - **No I/O, no hash order, no global state.** A random draw is a pure function of (seed, job, draw number).
/// - **No actual runtimes.** It knows requests and what has happened; [`ActualRuntime`](crate::ActualRuntime)
///   is in no type that it can reach.
/// - **No count of its own of what is free now.** Decisions are applied at once, so the ledger always tells.
/// - **Nothing that cannot be rebuilt.** Whatever a policy keeps is derived from the ledger: thrown away at
///   any moment and made anew by [`rebuild`](Policy::rebuild), it goes on with the same decisions.
///
/// # The calls
/// For each event of an instant the driver calls [`event`](Policy::event), and then, once per round,
/// [`pass`](Policy::pass). What the order of the events is, and whether a round holds one event or all of
/// the instant, is the convention of the run ([`EventOrder`](crate::EventOrder)); a policy is right under both.
pub trait Policy: Send {
    /// The name in the registry, for messages.
    fn name(&self) -> &str;

    /// Whether it decides on which processors a job runs: the ledger then names them ([`Ledger::name_pes`]).
    fn names_pes(&self) -> bool {
        false
    }

    /// How it slices the time of the processors of its only host, if it does: the ledger then keeps a matrix of rows
    /// ([`Ledger::slice_time`]) and names processors.
    fn slices_time(&self) -> Option<Slicing> {
        None
    }

    /// Returns the hosts that the policy keeps idle for waiting jobs, for the metrics of a run. A host may be listed twice.
    fn kept_hosts(&self, _ledger: &Ledger) -> Vec<HostId> {
        Vec::new()
    }

    /// Forgets everything and derives it again from the ledger, as of `now`.
    ///
    /// Called between rounds. A new policy is rebuilt once, on an empty ledger or on one that a former
    /// policy left; waiting jobs may or may not have promises.
    fn rebuild(&mut self, now: Time, ledger: &Ledger);

    /// Notes what happened. Updates caches, decides nothing; O(log n).
    fn event(&mut self, now: Time, event: Event, ledger: &Ledger);

    /// Decides. Every decision goes through `context`, which checks and applies it at once.
    ///
    /// # Errors
    /// Hands on the refusal of a decision; the run ends there.
    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation>;
}
