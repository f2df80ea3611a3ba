//! The reservations that are kept, by job and by start.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use miserly_core::{JobId, Time};

use crate::shared::Waiting;

/// A reservation: a place in the future for a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Reservation<P> {
    /// The job. Its key is that of the order of arrival.
    pub job: Waiting,
    /// The reserved start.
    pub at: Time,
    /// The reserved place.
    pub place: P,
    /// The promised start: the reserved one, unless the policy promises a later one.
    pub deadline: Time,
    /// The earliest start that the user allows.
    pub begin: Time,
}

impl<P> Reservation<P> {
    /// Returns a reservation that is recomputed at each pass. Its start is the promised one.
    pub(super) fn recomputed(job: Waiting, at: Time, place: P) -> Reservation<P> {
        Reservation { job, at, place, deadline: at, begin: Time::ZERO }
    }

    /// Returns the planned end.
    pub fn end(&self) -> Time {
        self.at + self.job.span
    }
}

/// The kept reservations.
///
/// Those of waiting jobs are indexed by start. A job in a quantum of another policy keeps its
/// reservation, but does not start from it.
#[derive(Debug)]
pub struct Reservations<P> {
    by_job: Vec<Option<Reservation<P>>>,
    /// The number of reservations in `by_job`.
    len: usize,
    /// Starts later than now, earliest first.
    ///
    /// An entry that differs from `by_job` is outdated. It is dropped when it reaches the front, or
    /// when there are too many of them.
    later: BinaryHeap<Reverse<(Time, JobId)>>,
    /// Jobs with reservations that have begun. Some entries may be outdated.
    begun: Vec<JobId>,
    lent: Vec<JobId>,
    now: Time,
}

impl<P> Default for Reservations<P> {
    fn default() -> Reservations<P> {
        Reservations {
            by_job: Vec::new(),
            len: 0,
            later: BinaryHeap::new(),
            begun: Vec::new(),
            lent: Vec::new(),
            now: Time::from_ticks(i64::MIN),
        }
    }
}

impl<P> Reservations<P> {
    pub(super) fn get(&self, job: JobId) -> Option<&Reservation<P>> {
        self.by_job.get(job.index())?.as_ref()
    }

    /// Inserts the reservation of a job that waits, or that is in a quantum of another policy.
    pub(super) fn insert(&mut self, reservation: Reservation<P>, waits: bool) {
        let (job, at) = (reservation.job.job, reservation.at);
        if self.by_job.len() <= job.index() {
            self.by_job.resize_with(job.index() + 1, || None);
        }
        self.len += usize::from(self.by_job[job.index()].replace(reservation).is_none());
        if waits { self.index(job, at) } else { self.lent.push(job) }
    }

    fn index(&mut self, job: JobId, at: Time) {
        if at <= self.now {
            self.begun.push(job);
            return;
        }
        self.later.push(Reverse((at, job)));
        if self.later.len() > 4 * self.len + 64 {
            self.drop_outdated();
        }
    }

    /// Rebuilds the index with one entry per job.
    ///
    /// It has as many outdated entries as were pushed since the last time, so the amortized cost is
    /// constant.
    fn drop_outdated(&mut self) {
        let Reservations { by_job, lent, now, .. } = self;
        let waiting = by_job.iter().flatten().filter(|held| held.at > *now && !lent.contains(&held.job.job));
        self.later = waiting.map(|held| Reverse((held.at, held.job.job))).collect();
    }

    /// Records whether a job waits. Returns whether it has a reservation.
    pub(super) fn set_waiting(&mut self, job: JobId, waits: bool) -> bool {
        let Some(at) = self.get(job).map(|held| held.at) else { return false };
        let lent = self.lent.contains(&job);
        if waits && lent {
            self.lent.retain(|other| *other != job);
            self.index(job, at);
        } else if !waits && !lent {
            self.lent.push(job);
        }
        true
    }

    /// Moves the reservation of a waiting job.
    pub(super) fn set(&mut self, job: JobId, at: Time, place: P, deadline: Time) {
        let Some(held) = self.by_job.get_mut(job.index()).and_then(Option::as_mut) else { return };
        let moved = held.at != at;
        (held.at, held.place, held.deadline) = (at, place, deadline);
        if moved {
            self.index(job, at);
        }
    }

    pub(super) fn remove(&mut self, job: JobId) -> Option<Reservation<P>> {
        let held = self.by_job.get_mut(job.index())?.take()?;
        self.len -= 1;
        self.lent.retain(|other| *other != job);
        Some(held)
    }

    /// Returns all reservations, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Reservation<P>> {
        self.by_job.iter().flatten()
    }

    /// Returns the reservations of the jobs in a quantum of another policy.
    pub(super) fn lent(&self) -> impl Iterator<Item = &Reservation<P>> {
        self.lent.iter().filter_map(|job| self.get(*job))
    }

    /// Moves the time to `now`.
    pub(super) fn advance(&mut self, now: Time) {
        self.now = now;
        while let Some(&Reverse((at, job))) = self.later.peek().filter(|Reverse((at, _))| *at <= now) {
            self.later.pop();
            if self.is_current(at, job) {
                self.begun.push(job);
            }
        }
    }

    fn is_current(&self, at: Time, job: JobId) -> bool {
        self.get(job).is_some_and(|held| held.at == at) && !self.lent.contains(&job)
    }

    fn has_begun(&self, job: JobId) -> bool {
        self.get(job).is_some_and(|held| held.at <= self.now)
    }

    /// Drops the outdated entries among the begun ones.
    fn drop_outdated_begun(&mut self) {
        let mut begun = std::mem::take(&mut self.begun);
        begun.retain(|job| self.has_begun(*job) && !self.lent.contains(job));
        self.begun = begun;
    }

    /// Returns whether the reserved start of a waiting job was missed.
    ///
    /// O(1) amortized for each entry, since it drops those that are outdated.
    pub(super) fn any_missed(&mut self) -> bool {
        self.drop_outdated_begun();
        self.begun.iter().any(|job| self.get(*job).is_some_and(|held| held.at < self.now))
    }

    /// Removes the waiting jobs with begun reservations from the index, and returns each once.
    pub(super) fn take_begun(&mut self) -> Vec<JobId> {
        self.drop_outdated_begun();
        let mut begun = std::mem::take(&mut self.begun);
        begun.sort_unstable();
        begun.dedup();
        begun
    }

    /// Returns the next reserved start of a waiting job after now.
    pub(super) fn next_start(&mut self) -> Option<Time> {
        while let Some(&Reverse((at, job))) = self.later.peek() {
            if self.is_current(at, job) {
                return Some(at);
            }
            self.later.pop();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{Entry, Request, Resources, Span};

    use super::*;
    use crate::shared::Key;

    #[test]
    fn outdated_entries_do_not_pile_up() {
        let reservation = |job: u32| {
            let request = Request::new(job.into(), Time::ZERO, Span::TICK, Resources::cpus(1));
            let entry = Entry::waiting(request, job.into());
            let job = Waiting { key: Key::arrival(&entry), job: JobId(job), procs: 1, span: Span::TICK };
            Reservation { job, at: Time::MAX, place: (), deadline: Time::MAX, begin: Time::ZERO }
        };
        let mut reservations = Reservations::default();
        (0..10).for_each(|job| reservations.insert(reservation(job), true));
        for round in 0..1000 {
            for job in 0..10 {
                // Moves away, back, and to the same place.
                for at in [round % 2, round % 3, round % 3] {
                    reservations.set(JobId(job), Time::from_ticks(at), (), Time::MAX);
                }
            }
            assert!(reservations.later.len() <= 4 * 10 + 64, "{} entries", reservations.later.len());
        }
        assert_eq!(reservations.next_start(), Some(Time::ZERO));
        reservations.advance(Time::ZERO);
        // Jobs that start in another way than from the list leave it too.
        let begun = reservations.begun.len();
        for round in 0..1000 {
            let job = 10 + round % 7;
            reservations.insert(Reservation { at: Time::ZERO, ..reservation(job) }, true);
            assert!(!reservations.any_missed());
            reservations.remove(JobId(job));
        }
        assert!(reservations.begun.len() <= begun + 1, "{} entries", reservations.begun.len());
        assert_eq!(reservations.take_begun(), (0..10).map(JobId).collect::<Vec<_>>());
    }
}
