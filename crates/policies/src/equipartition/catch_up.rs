//! The processing time that a job missed while it waited for memory.

use miserly_core::{Desk, Entry, Memo, Procs, State, Time, Violation, work};

use super::Rules;
use super::host::Host;

impl Host {
    /// Brings what its jobs are to catch up to this instant. Call it before shares or processors change. O(n).
    ///
    /// # Errors
    /// If a job of the host is not in the ledger.
    pub(super) fn count(&self, desk: &mut Desk<'_>, rules: &Rules) -> Result<(), Violation> {
        for assigned in &self.jobs {
            let entry = desk.ledger().entry(assigned.job);
            if let Some(memo) = counted(entry, assigned.fair, desk.now(), rules) {
                desk.remember(assigned.job, memo)?;
            }
        }
        Ok(())
    }
}

/// What a job that is assigned to a host is to catch up by now, if that has changed.
///
/// It catches up with the processors that it has beyond its equal share. In a quantum whose work will be lost it catches
/// up nothing, and misses its equal share as if it waited.
fn counted(entry: &Entry, fair: Procs, now: Time, rules: &Rules) -> Option<Memo> {
    let memo = entry.memo;
    let (start, lost) = match entry.state {
        State::Running { start, quantum, .. } => (start, quantum.is_some() && !rules.keep_work),
        _ => (now, false),
    };
    if memo.owed == 0 && !lost {
        return None;
    }
    let since = now - memo.owed_at.unwrap_or(start);
    let owed = if lost {
        memo.owed + work(since, fair)
    } else {
        memo.owed.saturating_sub(work(since, entry.working().saturating_sub(fair)))
    };
    Some(Memo { owed, owed_at: Some(now), ..memo })
}

/// What a job in the queue is to catch up by now, if it would have had `share` processors all the time.
pub(super) fn missed(memo: Memo, share: Procs, now: Time) -> Memo {
    let since = now - memo.owed_at.unwrap_or(now);
    Memo { owed: memo.owed + work(since, share), owed_at: Some(now), ..memo }
}
