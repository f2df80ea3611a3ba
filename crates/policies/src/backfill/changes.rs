//! The changes since the last pass, which determine the jobs that may start now but could not then.

use miserly_core::{Context, JobId, Time};

use super::availability::{Availability, FreedCapacity};
use super::reservations::Reservation;
use crate::shared::Waiting;

/// Changes since the last pass of a policy that recomputes one reservation at most, that of the
/// head.
///
/// A job that could not start then can start now only in freed capacity, the place of a former
/// reservation included. The head's reservation can differ only where capacity was freed or taken.
#[derive(Debug)]
pub(super) struct ChangeTracker<A: Availability> {
    pub(super) freed: A::Freed,
    /// The places where jobs started since the head's reservation was made.
    taken: A::Freed,
    /// The head's reservation. It is not in the plan between passes.
    head: Option<Reservation<A::Place>>,
}

impl<A: Availability> ChangeTracker<A> {
    /// Returns the tracker before the first pass: everything may have changed.
    pub(super) fn new() -> ChangeTracker<A> {
        ChangeTracker { freed: A::Freed::anywhere(), taken: A::Freed::anywhere(), head: None }
    }

    /// Records a place where a job started.
    pub(super) fn note_taken(&mut self, place: &A::Place) {
        A::note_changed(&mut self.taken, place);
    }

    /// Records that a job left the queue.
    pub(super) fn job_left(&mut self, job: JobId) {
        if self.head.as_ref().is_some_and(|head| head.job.job == job) {
            self.drop_head();
        }
    }

    /// Records that this job is the head. The reservation of a former head is dropped.
    pub(super) fn set_head(&mut self, job: JobId) {
        if self.head.as_ref().is_some_and(|head| head.job.job != job) {
            self.drop_head();
        }
    }

    fn drop_head(&mut self) {
        if let Some(head) = self.head.take() {
            A::note_changed(&mut self.freed, &head.place);
        }
    }

    /// Ends a pass that left this reservation to the head.
    pub(super) fn settle(&mut self, head: Option<&Reservation<A::Place>>) {
        self.freed = A::Freed::default();
        self.head = head.cloned();
        if head.is_none() {
            self.taken = A::Freed::default();
        }
    }

    /// Returns the head's reservation, if it has to be the same as at the last pass.
    pub(super) fn unchanged_head(&self, plan: &A, context: &Context<'_>) -> Option<&Reservation<A::Place>> {
        let head = self.head.as_ref().filter(|_| self.freed.is_nowhere())?;
        let (at, place) = plan.earliest_start_again(context, head, &self.freed, &self.taken)?;
        (at == head.at && place == head.place).then_some(head)
    }

    /// Returns the earliest start of a head that cannot start now.
    pub(super) fn earliest_start(
        &mut self,
        plan: &mut A,
        context: &Context<'_>,
        job: &Waiting,
    ) -> Option<(Time, A::Place)> {
        let last = self.head.as_ref();
        let again = last.and_then(|last| plan.earliest_start_again(context, last, &self.freed, &self.taken));
        let found = again.or_else(|| plan.earliest_start(context, job));
        let same = |(at, place): &(Time, A::Place)| {
            self.head.as_ref().is_some_and(|last| last.at == *at && last.place == *place)
        };
        if !found.as_ref().is_some_and(same) {
            self.drop_head();
        }
        self.taken = A::Freed::default();
        found
    }
}
