//! The plan of a cycle: the machine over time, beside the reservations of the cycle.

use std::fmt::Debug;

use fixedbitset::FixedBitSet;
use miserly_core::{Context, Event, JobId, Ledger, Machine, Placement, Resources, Span, Time, Violation};

use super::SlurmRules;
use super::round_up;
use crate::backfill::availability::Availability;
use crate::backfill::reservations::Reservation;
use crate::shared::Waiting;

/// The place of a job in the plan of a cycle.
pub enum Planned<P> {
    /// It starts now.
    Now(P),
    /// It has a reservation for a later start.
    Later(Time, P),
    /// Its start is beyond the window.
    Beyond,
    /// The machine without its running jobs could not hold it.
    Never,
}

/// The machine over time, as the main loop and the cycles see it.
pub trait CyclePlan: Debug + Send {
    /// The placement of a job in the plan.
    type Place: Clone;

    /// Whether a cycle that started no job can be repeated later with another result, though nothing happened.
    const VARIES_WITH_TIME: bool;

    /// Returns the plan of an idle machine.
    fn idle(machine: &Machine) -> Self;

    /// Returns the plan beside the jobs on the machine of the ledger.
    fn rebuild(now: Time, ledger: &Ledger) -> Self;

    /// Takes in an event. [`Event::Changed`] is a rebuild.
    fn event(&mut self, now: Time, event: &Event, ledger: &Ledger);

    /// Begins a pass.
    fn begin_pass(&mut self, now: Time, ledger: &Ledger);

    /// Ends a pass.
    fn end_pass(&mut self, now: Time);

    /// Returns whether a job is past its expected end, or the capacity varies.
    fn is_unsteady(&self) -> bool;

    /// Returns the hosts for the main loop, if it may pass a job that does not fit.
    fn all_open(&self, ledger: &Ledger) -> FixedBitSet;

    /// Closes the hosts that a job could have to the main loop: none behind it starts there. Returns whether others are open.
    fn close(&self, now: Time, ledger: &Ledger, job: &Waiting, open: &mut FixedBitSet) -> bool;

    /// Returns the place where a job can start now beside the running jobs, on open hosts.
    fn place_now(&self, context: &Context<'_>, job: &Waiting, open: &FixedBitSet) -> Option<Self::Place>;

    /// Begins a cycle.
    fn begin_cycle(&mut self, now: Time, ledger: &Ledger, rules: &SlurmRules);

    /// Plans a job beside the running jobs and the reservations of this cycle, and holds its reservation.
    fn plan(&mut self, context: &Context<'_>, job: &Waiting, rules: &SlurmRules) -> Planned<Self::Place>;

    /// Returns the hosts that have no reservation of the cycle from now until the limit of a job.
    fn open_now(&self, now: Time, ledger: &Ledger, job: &Waiting) -> FixedBitSet;

    /// Takes in that running jobs have left the machine, or leave it earlier. None is left out of account any more.
    fn jobs_left(&mut self, now: Time, ledger: &Ledger);

    /// Leaves running jobs out of account in a cycle. Returns whether the plan can.
    fn leave_out(&mut self, _now: Time, _ledger: &Ledger, _jobs: &[JobId]) -> bool {
        false
    }

    /// Reserves the hosts of a place for a job from now on.
    fn reserve_now(&mut self, _now: Time, _job: &Waiting, _place: &Self::Place, _rules: &SlurmRules) {}

    /// Closes the hosts on which preempted jobs end.
    fn set_completing(&mut self, _hosts: &FixedBitSet) {}

    /// Returns the place where a job can start on open hosts with these free resources, if the plan has hosts.
    fn place_in(
        &self,
        _context: &Context<'_>,
        _job: &Waiting,
        _open: &FixedBitSet,
        _free: &[Resources],
    ) -> Option<Self::Place> {
        None
    }

    /// Releases the reservations of the cycle.
    fn end_cycle(&mut self);

    /// Enters a job that has just started.
    fn job_started(&mut self, now: Time, job: &Waiting, ledger: &Ledger);

    /// Returns whether the job fits at no time, even on an idle machine without capacity loss.
    fn never_fits(&self, now: Time, job: &Waiting, ledger: &Ledger) -> bool;

    /// Returns the placement of a job that starts in this place.
    fn placement(ledger: &Ledger, job: JobId, place: Self::Place) -> Placement;

    /// Records the planned start of a job.
    ///
    /// # Errors
    /// If the job runs.
    fn record(context: &mut Context<'_>, job: JobId, at: Time, place: &Self::Place) -> Result<(), Violation>;
}

/// A plan of processors or of hosts on which the place of a job matters to no other one.
///
/// Time limits are rounded up to the unit of the plan. So a plan does not depend on the second of its cycle.
#[derive(Debug)]
pub struct Simple<A: Availability> {
    plan: A,
    made: Vec<Reservation<A::Place>>,
}

impl<A: Availability> CyclePlan for Simple<A> {
    type Place = A::Place;

    const VARIES_WITH_TIME: bool = false;

    fn idle(machine: &Machine) -> Simple<A> {
        Simple { plan: A::idle(machine), made: vec![] }
    }

    fn rebuild(now: Time, ledger: &Ledger) -> Simple<A> {
        Simple { plan: A::rebuild(now, ledger), made: vec![] }
    }

    fn event(&mut self, now: Time, event: &Event, ledger: &Ledger) {
        let freed = &mut A::Freed::default();
        match event {
            Event::Ended(ended) => self.plan.job_ended(now, ended.job, ledger, freed),
            Event::Overdue(job) => self.plan.job_overdue(now, *job, ledger, freed),
            Event::EndMoved { job, before } => self.plan.end_moved(now, *job, *before, ledger),
            Event::Submitted(_) | Event::Changed(_) | Event::Timer | Event::Rebuilt => {}
        }
    }

    fn begin_pass(&mut self, now: Time, ledger: &Ledger) {
        self.plan.advance(now, ledger, &mut A::Freed::default());
        self.plan.hold_overdue(now, ledger);
    }

    fn end_pass(&mut self, now: Time) {
        self.plan.release_overdue(now);
    }

    fn is_unsteady(&self) -> bool {
        self.plan.any_overdue() || self.plan.varies()
    }

    fn all_open(&self, _ledger: &Ledger) -> FixedBitSet {
        FixedBitSet::new()
    }

    fn close(&self, _now: Time, _ledger: &Ledger, _job: &Waiting, _open: &mut FixedBitSet) -> bool {
        false
    }

    fn place_now(&self, context: &Context<'_>, job: &Waiting, _open: &FixedBitSet) -> Option<A::Place> {
        self.plan.place_now(context, job, None)
    }

    fn begin_cycle(&mut self, _now: Time, _ledger: &Ledger, _rules: &SlurmRules) {}

    fn plan(&mut self, context: &Context<'_>, job: &Waiting, rules: &SlurmRules) -> Planned<A::Place> {
        let planned = rounded(*job, rules.bf_resolution);
        if let Some(place) = self.plan.place_now(context, &planned, None) {
            return Planned::Now(place);
        }
        let Some((at, place)) = self.plan.earliest_start(context, &planned) else { return Planned::Never };
        if at > context.now() + rules.bf_window {
            return Planned::Beyond;
        }
        let reservation = Reservation::recomputed(planned, at, place.clone());
        self.plan.hold(context.now(), &reservation);
        self.made.push(reservation);
        Planned::Later(at, place)
    }

    fn open_now(&self, _now: Time, ledger: &Ledger, _job: &Waiting) -> FixedBitSet {
        let mut open = FixedBitSet::with_capacity(ledger.machine().hosts().len());
        // A reservation has no hosts of its own.
        if self.made.is_empty() {
            open.insert_range(..);
        }
        open
    }

    fn jobs_left(&mut self, now: Time, ledger: &Ledger) {
        self.plan = A::rebuild(now, ledger);
        self.begin_pass(now, ledger);
        self.made.iter().for_each(|reservation| self.plan.hold(now, reservation));
    }

    fn end_cycle(&mut self) {
        self.plan.release(&std::mem::take(&mut self.made));
    }

    fn job_started(&mut self, now: Time, job: &Waiting, ledger: &Ledger) {
        self.plan.job_started(now, job, ledger);
    }

    fn never_fits(&self, now: Time, job: &Waiting, ledger: &Ledger) -> bool {
        ledger.machine().varies() && self.plan.never_fits(ledger, now, job)
    }

    fn placement(ledger: &Ledger, job: JobId, place: A::Place) -> Placement {
        A::placement(ledger, job, place)
    }

    fn record(context: &mut Context<'_>, job: JobId, at: Time, place: &A::Place) -> Result<(), Violation> {
        A::record_plan(context, job, at, place, false)
    }
}

/// Returns a job whose time limit is rounded up to a unit.
fn rounded(job: Waiting, unit: Span) -> Waiting {
    Waiting { span: round_up(Time::ZERO + job.span, unit) - Time::ZERO, ..job }
}
