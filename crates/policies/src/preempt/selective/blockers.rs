//! Which suspended jobs cannot come back yet, without looking at all processors again.

use miserly_core::{Entry, JobId, Ledger, PeSet, Span, State, Time};

use super::floor;
use super::rank::Criterion;

/// For each suspended job that has to come back to its processors, a running job on them that it may not suspend.
///
/// Nothing but an end or a suspension moves that job; and until it moves, its rank only grows. So it is looked for anew only when it
/// is gone, or when the suspended job has waited for long enough to suspend it.
#[derive(Debug, Default)]
pub(super) struct Blockers(Vec<Option<Blocked>>);

#[derive(Clone, Copy, Debug)]
struct Blocked {
    /// The admission of the suspended job: handles are used again.
    admitted: u64,
    by: (JobId, u64),
    until: Time,
}

impl Blockers {
    /// Until when a suspended job cannot come back at least, unless somebody ends or is suspended. `None` if none of those who run is
    /// in its way.
    pub(super) fn find(
        &mut self,
        (ledger, now): (&Ledger, Time),
        criterion: Criterion,
        job: JobId,
        running: &[JobId],
    ) -> Option<Time> {
        if let Some(until) = self.known(ledger, now, job) {
            return Some(until);
        }
        let entry = ledger.entry(job);
        let found = floor::own(entry).and_then(|own| blocker((ledger, now), criterion, entry, own, running));
        if self.0.len() <= job.index() {
            self.0.resize(job.index() + 1, None);
        }
        self.0[job.index()] = found;
        found.map(|blocked| blocked.until)
    }

    fn known(&self, ledger: &Ledger, now: Time, job: JobId) -> Option<Time> {
        let blocked = (*self.0.get(job.index())?)?;
        let (other, its) = blocked.by;
        let there = ledger.get(other).is_some_and(|entry| entry.admitted == its && runs(entry));
        let same = ledger.entry(job).admitted == blocked.admitted;
        (there && same && blocked.until > now).then_some(blocked.until)
    }

    /// A job runs again, or is gone.
    pub(super) fn forget(&mut self, job: JobId) {
        if let Some(blocked) = self.0.get_mut(job.index()) {
            *blocked = None;
        }
    }
}

/// Who is on these processors and the most urgent of those, if the job may not suspend it.
fn blocker(
    (ledger, now): (&Ledger, Time),
    criterion: Criterion,
    entry: &Entry,
    own: &PeSet,
    running: &[JobId],
) -> Option<Blocked> {
    let there = running.iter().filter(|job| {
        let other = ledger.entry(**job);
        runs(other) && floor::pes(other).is_some_and(|pes| pes.meets(own))
    });
    let rank = |job: &JobId| criterion.rank(ledger.entry(*job), now);
    let (bar, by) = there.map(|job| (rank(job), *job)).max_by(|one, other| one.0.cmp(&other.0))?;
    if criterion.entitles(criterion.rank(entry, now), bar) {
        return None;
    }
    let until = criterion.entitled_at(entry, now, bar).map_or(Time::MAX, |at| at.max(now + Span::TICK));
    Some(Blocked { admitted: entry.admitted, by: (by, ledger.entry(by).admitted), until })
}

/// Whether a job keeps its processors for now.
fn runs(entry: &Entry) -> bool {
    matches!(entry.state, State::Running { released: false, .. })
}
