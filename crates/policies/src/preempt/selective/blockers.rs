//! The idle jobs: those that a running job blocks, and the others.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{Entry, JobId, Ledger, PeSet, Span, Time};

use super::Suspension;
use super::pe_allocator::{self, keeps};
use super::rank::Rank;
use super::running::Running;

/// For each suspended job that needs its own processors, a running job on them that it may not
/// suspend.
///
/// Only its end or suspension removes that running job. So another one is searched for only in
/// three cases: the job is gone, the suspended job's growing rank may now suspend it, or a
/// protected job is below its limit again. The cost of a pass does not depend on blocked jobs.
#[derive(Debug, Default)]
pub(super) struct Blockers {
    /// The idle jobs that were not blocked at the last look, in no order.
    open: Vec<JobId>,
    /// By the suspended job.
    blocked: Vec<Option<Blocked>>,
    /// The suspended jobs, by what blocks them.
    by: BTreeMap<Blocker, Vec<JobId>>,
    /// The blocked jobs whose rank will suffice, by the time of that.
    due: BTreeSet<(Time, JobId)>,
}

/// A running job that blocks others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Blocker {
    job: JobId,
    /// Its admission number, because job ids are reused.
    admitted: u64,
    /// Whether it blocks because it is beyond its limit.
    beyond: bool,
}

#[derive(Clone, Copy, Debug)]
struct Blocked {
    by: Blocker,
    until: Time,
}

impl Blockers {
    /// Adds a job that is idle now.
    pub(super) fn insert(&mut self, job: JobId) {
        self.open.push(job);
    }

    /// Forgets what no longer blocks a job.
    ///
    /// O(jobs that block, and jobs that are no longer blocked).
    pub(super) fn refresh(&mut self, (ledger, now): (&Ledger, Time), rules: &Suspension) {
        let blocks = |blocker: &Blocker| {
            let entry =
                ledger.get(blocker.job).filter(|entry| entry.admitted == blocker.admitted && keeps(entry));
            entry.is_some_and(|entry| !blocker.beyond || is_beyond(now, rules, entry))
        };
        for job in self.by.extract_if(.., |blocker, _| !blocks(blocker)).flat_map(|(_, jobs)| jobs) {
            if let Some(blocked) = self.blocked[job.index()].take() {
                self.due.remove(&(blocked.until, job));
                self.open.push(job);
            }
        }
        while let Some((_, job)) = self.due.first().copied().filter(|(until, _)| *until <= now) {
            self.forget(job);
            self.open.push(job);
        }
    }

    /// Returns the idle jobs that were not blocked at the last look.
    pub(super) fn open(&self) -> &[JobId] {
        &self.open
    }

    /// Returns the blocked jobs whose rank will suffice, by the time of that.
    pub(super) fn due(&self) -> impl Iterator<Item = (Time, JobId)> {
        self.due.iter().copied()
    }

    /// Looks for a running job in the way of a suspended job, which was not blocked at the last look.
    ///
    /// Returns whether there is one.
    pub(super) fn find(
        &mut self,
        (ledger, now): (&Ledger, Time),
        rules: &Suspension,
        job: JobId,
        running: &Running,
    ) -> bool {
        let entry = ledger.entry(job);
        let own = pe_allocator::own(entry);
        let Some(blocked) = own.and_then(|own| blocker((ledger, now), rules, entry, own, running)) else {
            return false;
        };
        self.close(job);
        if self.blocked.len() <= job.index() {
            self.blocked.resize(job.index() + 1, None);
        }
        self.blocked[job.index()] = Some(blocked);
        self.by.entry(blocked.by).or_default().push(job);
        if blocked.until < Time::MAX {
            self.due.insert((blocked.until, job));
        }
        true
    }

    fn close(&mut self, job: JobId) {
        if let Some(at) = self.open.iter().position(|other| *other == job) {
            self.open.swap_remove(at);
        }
    }

    /// Removes a job that runs again or is gone.
    pub(super) fn forget(&mut self, job: JobId) {
        let Some(blocked) = self.blocked.get_mut(job.index()).and_then(Option::take) else {
            return self.close(job);
        };
        self.due.remove(&(blocked.until, job));
        if let Some(jobs) = self.by.get_mut(&blocked.by) {
            jobs.retain(|other| *other != job);
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
    running: &Running,
) -> Option<Blocked> {
    let criterion = rules.criterion;
    let mut most_urgent: Option<(Rank, u64, JobId)> = None;
    let mut last = None;
    for job in running.on(ledger, own).filter(|job| last.replace(*job) != Some(*job)) {
        let other = ledger.entry(job);
        let Some(rank) = running.rank(criterion, now, job) else { continue };
        let by = (rank, other.admitted, job);
        if rules.limits.as_ref().is_some_and(|limits| limits.protect(other, rank)) {
            let by = Blocker { job, admitted: other.admitted, beyond: true };
            return Some(Blocked { by, until: Time::MAX });
        }
        most_urgent = most_urgent.max(Some(by));
    }
    let (bar, admitted, job) = most_urgent?;
    if criterion.entitles(criterion.rank(entry, now), bar) {
        return None;
    }
    let until = criterion.entitled_at(entry, now, bar).map_or(Time::MAX, |at| at.max(now + Span::TICK));
    Some(Blocked { by: Blocker { job, admitted, beyond: false }, until })
}

/// Returns whether a job is protected from suspension because it is beyond its limit.
fn is_beyond(now: Time, rules: &Suspension, entry: &Entry) -> bool {
    let rank = || rules.criterion.rank(entry, now);
    rules.limits.as_ref().is_some_and(|limits| limits.protect(entry, rank()))
}
