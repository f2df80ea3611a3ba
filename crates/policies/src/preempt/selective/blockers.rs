//! The suspended jobs that cannot resume yet, found without examining all processors again.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{Entry, JobId, Ledger, PeSet, Span, State, Time};

use super::job_sets::Known;
use super::rank::Rank;
use super::{Suspension, pe_allocator};

/// For each suspended job that needs its own processors, a running job on them that it may not
/// suspend.
///
/// Only its end or suspension removes that running job. So another one is searched for only in
/// three cases: the job is gone, the suspended job's growing rank may now suspend it, or a
/// protected job is below its limit again.
#[derive(Debug, Default)]
pub(super) struct Blockers {
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
    /// Forgets what no longer blocks a job.
    ///
    /// O(jobs that block, and jobs that are no longer blocked).
    pub(super) fn refresh(&mut self, (ledger, now): (&Ledger, Time), rules: &Suspension) {
        let blocks = |blocker: &Blocker| {
            let entry =
                ledger.get(blocker.job).filter(|entry| entry.admitted == blocker.admitted && runs(entry));
            entry.is_some_and(|entry| !blocker.beyond || is_beyond(now, rules, entry))
        };
        for job in self.by.extract_if(.., |blocker, _| !blocks(blocker)).flat_map(|(_, jobs)| jobs) {
            if let Some(blocked) = self.blocked[job.index()].take() {
                self.due.remove(&(blocked.until, job));
            }
        }
        while let Some((_, job)) = self.due.first().copied().filter(|(until, _)| *until <= now) {
            self.forget(job);
        }
    }

    /// Returns whether a job was blocked at the last look.
    pub(super) fn holds(&self, job: JobId) -> bool {
        self.blocked.get(job.index()).is_some_and(Option::is_some)
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
        running: &[Known],
    ) -> bool {
        let entry = ledger.entry(job);
        let own = pe_allocator::own(entry);
        let Some(blocked) = own.and_then(|own| blocker((ledger, now), rules, entry, own, running)) else {
            return false;
        };
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

    /// Removes a job that runs again or is gone.
    pub(super) fn forget(&mut self, job: JobId) {
        let Some(blocked) = self.blocked.get_mut(job.index()).and_then(Option::take) else { return };
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
    running: &[Known],
) -> Option<Blocked> {
    let there = |known: &&Known| {
        let other = ledger.entry(known.job);
        runs(other) && pe_allocator::pes(other).is_some_and(|pes| pes.intersects(own))
    };
    let blocked = |by: &Known, until: Time, beyond: bool| {
        let by = Blocker { job: by.job, admitted: by.admitted, beyond };
        Some(Blocked { by, until })
    };
    let criterion = rules.criterion;
    let mut most_urgent: Option<(Rank, &Known)> = None;
    for known in running.iter().filter(there) {
        let rank = known.rank(criterion, now);
        if rules.limits.as_ref().is_some_and(|limits| limits.protect(ledger.entry(known.job), rank)) {
            return blocked(known, Time::MAX, true);
        }
        if most_urgent.is_none_or(|(most, _)| rank >= most) {
            most_urgent = Some((rank, known));
        }
    }
    let (bar, by) = most_urgent?;
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
