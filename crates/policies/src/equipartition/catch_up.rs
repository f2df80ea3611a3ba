//! The processing time that a job missed while it waited for memory.

use miserly_core::{Context, Entry, Procs, State, Time, Violation, work};

use super::host::Host;
use super::{MissedWork, Rules};

impl Host {
    /// Updates the missed work of the host's jobs to this instant. Call it before shares or
    /// processors change. O(n).
    ///
    /// # Errors
    /// If a job of the host is not in the ledger.
    pub(super) fn count(&self, context: &mut Context<'_>, rules: &Rules) -> Result<(), Violation> {
        for assigned in self.jobs.iter().filter(|assigned| assigned.special) {
            let entry = context.ledger().entry(assigned.job);
            if let Some(missed) = counted(entry, assigned.fair, context.now(), rules) {
                context.set_job_state(assigned.job, &missed)?;
            }
        }
        Ok(())
    }
}

/// Returns the remaining missed work of a job on a host, if it has changed.
///
/// A job catches up with the processors that it has beyond its equal share. In a quantum whose work
/// will be lost it catches up nothing, and misses its equal share as if it waited.
fn counted(entry: &Entry, fair: Procs, now: Time, rules: &Rules) -> Option<MissedWork> {
    let MissedWork { work: missed, counted } = entry.policy_state.get();
    let (start, lost) = match entry.state {
        State::Running { start, quantum, .. } => (start, quantum.is_some() && !rules.keep_work),
        _ => (now, false),
    };
    if missed == 0 && !lost {
        return None;
    }
    let since = now - counted.unwrap_or(start);
    let owed = if lost {
        missed + work(since, fair)
    } else {
        missed.saturating_sub(work(since, entry.working().saturating_sub(fair)))
    };
    Some(MissedWork { work: owed, counted: Some(now) })
}

/// Returns the missed work of a job in the queue, if it would have had `share` processors all the
/// time.
pub(super) fn missed(entry: &Entry, share: Procs, now: Time) -> MissedWork {
    let MissedWork { work: missed, counted } = entry.policy_state.get();
    let since = now - counted.unwrap_or(now);
    MissedWork { work: missed + work(since, share), counted: Some(now) }
}
