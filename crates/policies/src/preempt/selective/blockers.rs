//! The suspended jobs that cannot resume yet, found without examining all processors again.

use miserly_core::{Entry, JobId, Ledger, PeSet, Span, State, Time};

use super::{Suspension, pe_allocator};

/// For each suspended job that needs its own processors, a running job on them that it may not
/// suspend.
///
/// Only its end or suspension removes that running job. So another one is searched for only in
/// three cases: the job is gone, the suspended job's growing rank may now suspend it, or a
/// protected job is below its limit again.
#[derive(Debug, Default)]
pub(super) struct Blockers(Vec<Option<Blocked>>);

#[derive(Clone, Copy, Debug)]
struct Blocked {
    /// The admission number of the suspended job, because job ids are reused.
    admitted: u64,
    by: (JobId, u64),
    until: Time,
    /// Whether it blocks because it is beyond its limit.
    beyond: bool,
}

impl Blockers {
    /// Returns the earliest time at which a suspended job can resume without an end or a
    /// suspension.
    ///
    /// Returns `None` if no running job is in its way.
    pub(super) fn find(
        &mut self,
        (ledger, now): (&Ledger, Time),
        rules: &Suspension,
        job: JobId,
        running: &[JobId],
    ) -> Option<Time> {
        if let Some(until) = self.remembered((ledger, now), rules, job) {
            return Some(until);
        }
        let entry = ledger.entry(job);
        let found =
            pe_allocator::own(entry).and_then(|own| blocker((ledger, now), rules, entry, own, running));
        if self.0.len() <= job.index() {
            self.0.resize(job.index() + 1, None);
        }
        self.0[job.index()] = found;
        found.map(|blocked| blocked.until)
    }

    fn remembered(&self, (ledger, now): (&Ledger, Time), rules: &Suspension, job: JobId) -> Option<Time> {
        let blocked = (*self.0.get(job.index())?)?;
        let (other, its) = blocked.by;
        let other = ledger.get(other).filter(|entry| entry.admitted == its && runs(entry))?;
        let same = ledger.entry(job).admitted == blocked.admitted;
        let still = blocked.until > now && (!blocked.beyond || is_beyond(now, rules, other));
        (same && still).then_some(blocked.until)
    }

    /// Removes a job that runs again or is gone.
    pub(super) fn forget(&mut self, job: JobId) {
        if let Some(blocked) = self.0.get_mut(job.index()) {
            *blocked = None;
        }
    }
}

/// Returns a protected job on these processors, or else the most urgent one if the job may not
/// suspend it.
fn blocker(
    (ledger, now): (&Ledger, Time),
    rules: &Suspension,
    entry: &Entry,
    own: &PeSet,
    running: &[JobId],
) -> Option<Blocked> {
    let there = |job: &&JobId| {
        let other = ledger.entry(**job);
        runs(other) && pe_allocator::pes(other).is_some_and(|pes| pes.intersects(own))
    };
    let there: Vec<JobId> = running.iter().filter(there).copied().collect();
    let blocked = |by: JobId, until: Time, beyond: bool| {
        Some(Blocked { admitted: entry.admitted, by: (by, ledger.entry(by).admitted), until, beyond })
    };
    if let Some(by) = there.iter().find(|job| is_beyond(now, rules, ledger.entry(**job))) {
        return blocked(*by, Time::MAX, true);
    }
    let criterion = rules.criterion;
    let rank = |job: &JobId| criterion.rank(ledger.entry(*job), now);
    let (bar, by) = there.iter().map(|job| (rank(job), *job)).max_by(|one, other| one.0.cmp(&other.0))?;
    if criterion.entitles(criterion.rank(entry, now), bar) {
        return None;
    }
    let until = criterion.entitled_at(entry, now, bar).map_or(Time::MAX, |at| at.max(now + Span::TICK));
    blocked(by, until, false)
}

/// Returns whether a job is protected from suspension because it is beyond its limit.
fn is_beyond(now: Time, rules: &Suspension, entry: &Entry) -> bool {
    let rank = || rules.criterion.rank(entry, now);
    rules.limits.as_ref().is_some_and(|limits| limits.protect(entry, rank()))
}

/// Returns whether a job keeps its processors for now.
fn runs(entry: &Entry) -> bool {
    matches!(entry.state, State::Running { released: false, .. })
}
