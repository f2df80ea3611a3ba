//! Free resources over time, as the backfilling engine uses them.

use std::fmt::Debug;

use miserly_core::{Context, Entry, JobId, Ledger, Machine, Placement, Time, Violation};

use super::reservations::Reservation;
use crate::shared::{Admits, Waiting};

/// The places of capacity freed since jobs were last found unable to start or to move.
///
/// Only freed capacity lets such a job start or move. The default has no place.
pub trait FreedCapacity: Debug + Default + Send {
    /// Returns the value for a first search: capacity may have been freed anywhere, for any time.
    fn anywhere() -> Self;

    /// Returns whether no capacity was freed.
    fn is_nowhere(&self) -> bool;

    /// Returns whether every job has to be examined.
    fn is_anywhere(&self) -> bool;
}

/// Free resources over time, beside the jobs on the machine and the reservations that were taken.
///
/// Two types have it: [`CountPlan`](super::CountPlan) for a machine of identical processors, and
/// [`HostPlan`](crate::shared::HostPlan) for all others. The engine is monomorphised over them.
pub trait Availability: Following + OverTime + Search {}

impl<T: Following + OverTime + Search> Availability for T {}

/// Places of jobs in free resources over time.
pub trait Places: Clone + Debug + Send {
    /// The placement of a job in the plan.
    type Place: Clone + Debug + PartialEq + Send;
    /// The places of freed capacity.
    type Freed: FreedCapacity;

    /// Returns whether the job fits at no time, even on an idle machine without capacity loss.
    fn never_fits(&self, ledger: &Ledger, from: Time, job: &Waiting) -> bool;

    /// Takes a place from `at` on.
    fn take(&mut self, at: Time, job: &Waiting, place: &Self::Place);

    /// Releases a place.
    fn give(&mut self, at: Time, job: &Waiting, place: &Self::Place);

    /// Takes the place of a reservation for the length of a pass.
    fn hold(&mut self, now: Time, reservation: &Reservation<Self::Place>);

    /// Releases the places of all reservations that were [held](Places::hold).
    fn release(&mut self, held: &[Reservation<Self::Place>]);

    /// Adds a place that was freed in `from..until`.
    fn note_freed(
        &self,
        freed: &mut Self::Freed,
        job: &Waiting,
        place: &Self::Place,
        from: Time,
        until: Time,
    );

    /// Adds a place that was freed or taken, for any time.
    fn note_changed(changed: &mut Self::Freed, place: &Self::Place);

    /// Returns the placement of a job that starts in this place.
    fn placement(ledger: &Ledger, job: JobId, place: Self::Place) -> Placement;

    /// Returns the reservation of a job from the ledger. `promised`: its start is the promised one.
    fn kept_start(entry: &Entry, promised: bool) -> Option<(Time, Self::Place)>;

    /// Records the planned start. `promised`: a promise records the same start.
    ///
    /// # Errors
    /// If the job runs.
    fn record_plan(
        context: &mut Context<'_>,
        job: JobId,
        at: Time,
        place: &Self::Place,
        promised: bool,
    ) -> Result<(), Violation>;
}

/// Free resources that follow the jobs on the machine of a ledger.
pub trait Following: Places {
    /// Returns the availability of an idle machine.
    fn idle(machine: &Machine) -> Self;

    /// Returns the availability beside the jobs on the machine of the ledger.
    fn rebuild(now: Time, ledger: &Ledger) -> Self;

    /// Forgets the time before `now`. Adds the resources that became free without an event.
    fn advance(&mut self, now: Time, ledger: &Ledger, freed: &mut Self::Freed);

    /// Removes a job that ended. The ledger still has it.
    fn job_ended(&mut self, now: Time, job: JobId, ledger: &Ledger, freed: &mut Self::Freed);

    /// Records that a job is past its expected end.
    fn job_overdue(&mut self, now: Time, job: JobId, ledger: &Ledger, freed: &mut Self::Freed);

    /// Moves the expected end of a running job from `before` to that in the ledger.
    fn end_moved(&mut self, now: Time, job: JobId, before: Time, ledger: &Ledger);

    /// Records that another policy changed the allocation of a job.
    fn job_changed(&mut self, now: Time, job: JobId, ledger: &Ledger, freed: &mut Self::Freed);

    /// Enters a job that has just started without a reservation in the plan.
    fn job_started(&mut self, now: Time, job: &Waiting, ledger: &Ledger);

    /// Enters a job that has just started in place of its reservation.
    fn reservation_started(
        &mut self,
        now: Time,
        reservation: &Reservation<Self::Place>,
        ledger: &Ledger,
        freed: &mut Self::Freed,
    );
}

/// What changes the free resources as time passes: overdue jobs and the calendar of the machine.
///
/// Overdue jobs hold their resources until the next tick, for any value of `now`. They are in the
/// plan only between [`hold_overdue`](OverTime::hold_overdue) and
/// [`release_overdue`](OverTime::release_overdue).
pub trait OverTime: Places {
    /// Returns whether a job is past its expected end.
    fn any_overdue(&self) -> bool;

    /// Holds the resources of overdue jobs until the next tick, for the length of a pass.
    fn hold_overdue(&mut self, now: Time, ledger: &Ledger);

    /// Reverts [`hold_overdue`](OverTime::hold_overdue).
    fn release_overdue(&mut self, now: Time);

    /// Returns whether the capacity of the machine varies by a calendar, and not only by changes of
    /// jobs.
    fn varies(&self) -> bool;

    /// Returns the next change by the calendar.
    fn next_change(&self, now: Time) -> Option<Time>;

    /// Returns whether a reservation can start even if no overdue job ends before.
    fn is_beside_overdue(&self, reservation: &Reservation<Self::Place>, ledger: &Ledger) -> bool;
}

/// Searches for starts in free resources over time.
pub trait Search: Places {
    /// Returns a bound on the jobs that can start now. A job that it does not admit cannot.
    ///
    /// `freed` limits it to jobs that could not start before that capacity was freed.
    fn room(&self, ledger: &Ledger, freed: Option<&Self::Freed>) -> impl Admits;

    /// Returns the place where a job can start now beside all reservations.
    ///
    /// `freed` limits the search, if the job could not start before.
    fn place_now(
        &self,
        context: &Context<'_>,
        job: &Waiting,
        freed: Option<&Self::Freed>,
    ) -> Option<Self::Place>;

    /// Returns the earliest start from now on, beside the running jobs and the
    /// [held](Places::hold) reservations.
    ///
    /// The start is [`Time::MAX`] if only jobs without end prevent an earlier one.
    fn earliest_start(&mut self, context: &Context<'_>, job: &Waiting) -> Option<(Time, Self::Place)>;

    /// Returns the earliest start, if it follows from the last reservation and the changes since.
    ///
    /// The changes are freed capacity and taken placements.
    fn earliest_start_again(
        &self,
        context: &Context<'_>,
        last: &Reservation<Self::Place>,
        freed: &Self::Freed,
        taken: &Self::Freed,
    ) -> Option<(Time, Self::Place)>;

    /// Returns a start from `from` on and before that of a reservation, which is in the plan.
    ///
    /// The job had no such start before this capacity was freed.
    fn earlier_start(
        &mut self,
        ledger: &Ledger,
        from: Time,
        reservation: &Reservation<Self::Place>,
        freed: &Self::Freed,
    ) -> Option<(Time, Self::Place)>;

    /// Returns the start at `from` in the same place, or else the earliest one in `from..until`.
    ///
    /// `from` may be now or later. Only the plan counts. The start is [`Time::MAX`] if only jobs
    /// without end prevent an earlier one and `until` is [`Time::MAX`].
    fn start_from(
        &self,
        ledger: &Ledger,
        job: &Waiting,
        from: Time,
        until: Time,
        place: Option<&Self::Place>,
    ) -> Option<(Time, Self::Place)>;

    /// Returns the earliest start in `from..until`, as [`start_from`](Search::start_from) without a
    /// place. It may remember what it found out, for the jobs behind.
    fn first_start(
        &mut self,
        ledger: &Ledger,
        job: &Waiting,
        from: Time,
        until: Time,
    ) -> Option<(Time, Self::Place)> {
        self.start_from(ledger, job, from, until, None)
    }

    /// Returns the width of the widest job that can move to freed capacity.
    fn widest(&self, now: Time, freed: &mut Self::Freed) -> u32;
}
