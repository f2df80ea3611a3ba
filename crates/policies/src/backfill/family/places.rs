//! Which job is to start when, and where.

use std::collections::BTreeSet;

use miserly_core::{HostId, JobId, Placement, Span, Time};

use crate::shared::Key;

/// A job's reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) at: Time,
    pub(super) span: Span,
    pub(super) placement: Placement,
    /// By submission: the order among those who start at one time.
    pub(super) arrival: Key,
}

/// The reservations, by the handles of their jobs and by their starts.
#[derive(Debug, Default)]
pub(super) struct Places {
    of: Vec<Option<Place>>,
    /// Of the jobs in the queue.
    starts: BTreeSet<(Time, JobId)>,
    /// Of the jobs that were lent a quantum.
    lent: BTreeSet<(Time, JobId)>,
}

impl Places {
    pub(super) fn get(&self, job: JobId) -> Option<&Place> {
        self.of.get(job.index())?.as_ref()
    }

    /// Enters the reservation of a job that is in the queue, or was lent a quantum.
    pub(super) fn insert(&mut self, job: JobId, place: Place, waits: bool) {
        if self.of.len() <= job.index() {
            self.of.resize_with(job.index() + 1, || None);
        }
        let at = place.at;
        self.of[job.index()] = Some(place);
        self.enter(job, at, waits);
    }

    fn enter(&mut self, job: JobId, at: Time, waits: bool) {
        let (to, from) =
            if waits { (&mut self.starts, &mut self.lent) } else { (&mut self.lent, &mut self.starts) };
        from.remove(&(at, job));
        to.insert((at, job));
    }

    /// Says whether a job is in the queue; whether it has a reservation.
    pub(super) fn set_waiting(&mut self, job: JobId, waits: bool) -> bool {
        let Some(at) = self.get(job).map(|place| place.at) else { return false };
        self.enter(job, at, waits);
        true
    }

    /// Moves the reservation of a job in the queue.
    pub(super) fn set(&mut self, job: JobId, at: Time, placement: Placement) {
        let Some(place) = self.of.get_mut(job.index()).and_then(Option::as_mut) else { return };
        self.starts.remove(&(place.at, job));
        self.starts.insert((at, job));
        place.at = at;
        place.placement = placement;
    }

    pub(super) fn remove(&mut self, job: JobId) -> Option<Place> {
        let place = self.of.get_mut(job.index())?.take()?;
        self.starts.remove(&(place.at, job));
        self.lent.remove(&(place.at, job));
        Some(place)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Place> {
        self.of.iter().flatten()
    }

    /// The hosts of the reservations that have begun by `now`.
    pub(super) fn due(&self, now: Time) -> Vec<HostId> {
        let begun = |starts: &BTreeSet<(Time, JobId)>| {
            let jobs = starts.iter().take_while(|(at, _)| *at <= now).filter_map(|(_, job)| self.get(*job));
            jobs.flat_map(|place| place.placement.shares()).map(|share| share.host).collect::<Vec<_>>()
        };
        [begun(&self.starts), begun(&self.lent)].concat()
    }

    /// The starts of the jobs in the queue, and the jobs, earliest first.
    pub(super) fn starts(&self) -> impl DoubleEndedIterator<Item = (Time, JobId)> + '_ {
        self.starts.iter().copied()
    }
}
