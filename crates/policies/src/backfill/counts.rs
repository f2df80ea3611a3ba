//! The availability of a machine of identical processors: their count over time.

use miserly_core::{
    Context, Entry, Expected, JobId, Ledger, Machine, Placement, Procs, Span, State, Time, Violation,
};

use super::availability::{Following, FreedCapacity, OverTime, Places, Search};
use super::reservations::Reservation;
use crate::shared::{Admits, Profile, Staircase, StepStaircase, Waiting, procs};

/// The profile of free processors beside the running jobs and the reservations.
///
/// Within a pass, one reservation beside running jobs leaves two steps: the free processors until
/// its start (the shadow time), and the extra nodes for ever. So the first reservation of a pass is
/// not entered in the profile before a second one is searched for. A bound on the jobs that can
/// start now is exact here.
#[derive(Clone, Debug)]
pub struct CountPlan {
    profile: Profile,
    overdue_procs: u32,
    /// The free processors when the plan was used last.
    free: u32,
    room: Room,
    /// The reservation of this pass that is not in the profile.
    pending: Option<(Time, Time, u32)>,
}

/// The limit on jobs that fit now.
#[derive(Clone, Debug)]
enum Room {
    /// This number of processors.
    Free(u32),
    /// The limit beside one reservation.
    Beside(Staircase),
    /// The limit by the profile.
    Profile(StepStaircase),
}

impl Admits for Room {
    fn admits(&self, procs: u32, span: Span) -> bool {
        match self {
            Room::Free(free) => procs <= *free,
            Room::Beside(stairs) => stairs.admits(procs, span),
            Room::Profile(outlook) => outlook.admits(procs, span),
        }
    }
}

/// The rise of the count of free processors: nowhere from `until` on, and nowhere above `most`.
#[derive(Clone, Copy, Debug)]
pub struct FreedProcs {
    until: Time,
    most: u32,
    /// The time until which the ended jobs would have held processors, not yet counted in `most`.
    ended: Time,
}

const NEVER: Time = Time::from_ticks(i64::MIN);

impl Default for FreedProcs {
    fn default() -> FreedProcs {
        FreedProcs { until: NEVER, most: 0, ended: NEVER }
    }
}

impl FreedCapacity for FreedProcs {
    fn anywhere() -> FreedProcs {
        FreedProcs { until: Time::MAX, most: u32::MAX, ended: NEVER }
    }

    fn is_nowhere(&self) -> bool {
        self.until == NEVER
    }

    fn is_anywhere(&self) -> bool {
        self.until != NEVER
    }
}

impl FreedProcs {
    fn add_until(&mut self, until: Time) {
        self.until = self.until.max(until);
        self.ended = self.ended.max(until);
    }
}

impl CountPlan {
    fn new(procs: u32) -> CountPlan {
        let profile = Profile::new(procs);
        CountPlan { profile, overdue_procs: 0, free: 0, room: Room::Free(0), pending: None }
    }

    /// Enters the pending reservation in the profile.
    fn enter_pending(&mut self) {
        if let Some((from, to, procs)) = self.pending.take() {
            self.profile.take(from, to, procs);
        }
    }
}

/// Returns the processors that are free at this moment of the pass.
fn free_now(ledger: &Ledger) -> u32 {
    u32::try_from(ledger.free().cpus_count()).unwrap_or(u32::MAX)
}

impl Places for CountPlan {
    type Place = ();
    type Freed = FreedProcs;

    fn never_fits(&self, ledger: &Ledger, _from: Time, job: &Waiting) -> bool {
        Procs::new(job.procs.into()) > ledger.machine().capacity().cpus_count()
    }

    fn take(&mut self, at: Time, job: &Waiting, _place: &()) {
        self.profile.take(at, at + job.span, job.procs);
    }

    fn give(&mut self, at: Time, job: &Waiting, _place: &()) {
        self.profile.give(at, at + job.span, job.procs);
    }

    fn hold(&mut self, now: Time, reservation: &Reservation<()>) {
        let (at, procs) = (reservation.at, reservation.job.procs);
        if let Room::Free(free) = self.room {
            let extra = self.profile.free_at(at).saturating_sub(procs);
            self.room = Room::Beside(Staircase::of_shadow(free, at - now, extra));
            self.pending = Some((at, reservation.end(), procs));
        } else {
            self.enter_pending();
            self.profile.take(at, reservation.end(), procs);
            self.room = Room::Profile(self.profile.outlook(now));
        }
    }

    fn release(&mut self, held: &[Reservation<()>]) {
        self.room = Room::Free(self.free);
        if self.pending.take().is_none() {
            for held in held {
                self.give(held.at, &held.job, &());
            }
        }
    }

    fn note_freed(&self, freed: &mut FreedProcs, _job: &Waiting, _place: &(), from: Time, until: Time) {
        if from < until {
            freed.most = freed.most.max(self.profile.most_within(from, until));
            freed.until = freed.until.max(until);
        }
    }

    fn note_changed(changed: &mut FreedProcs, _place: &()) {
        *changed = FreedProcs::anywhere();
    }

    fn placement(ledger: &Ledger, job: JobId, _place: ()) -> Placement {
        Placement::on_plain(ledger.machine().amount(ledger.request(job)))
    }

    fn kept_start(entry: &Entry, promised: bool) -> Option<(Time, ())> {
        let planned = entry.planned.filter(|_| !promised);
        let at = planned.or(entry.promise.map(|promise| promise.best))?;
        Some((at, ()))
    }

    fn record_plan(
        context: &mut Context<'_>,
        job: JobId,
        at: Time,
        _place: &(),
        promised: bool,
    ) -> Result<(), Violation> {
        // A state of an earlier version may have a planned start beside the promise.
        let is_recorded = promised && context.ledger().entry(job).planned.is_none();
        if is_recorded { Ok(()) } else { context.plan(job, at) }
    }
}

impl Following for CountPlan {
    fn idle(machine: &Machine) -> CountPlan {
        CountPlan::new(u32::try_from(machine.capacity().cpus_count()).unwrap_or(u32::MAX))
    }

    fn rebuild(now: Time, ledger: &Ledger) -> CountPlan {
        let mut plan = CountPlan::idle(ledger.machine());
        for entry in ledger.running().map(|job| ledger.entry(job)) {
            match entry.state {
                State::Running { expected: Expected::At(end), .. } => {
                    plan.profile.take(now, end, procs(entry));
                }
                State::Running { expected: Expected::Overdue { .. }, .. } => {
                    plan.overdue_procs += procs(entry);
                }
                State::Waiting | State::Suspended { .. } => {}
            }
        }
        plan
    }

    fn advance(&mut self, now: Time, ledger: &Ledger, freed: &mut FreedProcs) {
        self.profile.advance(now);
        let free = free_now(ledger);
        // Under sequential events a job that is expected to end now is gone before its end is an
        // event. While a job is overdue, reservations move with now.
        if free > self.free || self.any_overdue() {
            *freed = FreedProcs::anywhere();
        }
        self.free = free;
        self.room = Room::Free(free);
    }

    fn job_ended(&mut self, now: Time, job: JobId, ledger: &Ledger, freed: &mut FreedProcs) {
        let entry = ledger.entry(job);
        match entry.state {
            State::Running { expected: Expected::At(end), .. } => {
                self.profile.advance(now);
                self.profile.give(now, end, procs(entry));
                freed.add_until(end.max(now));
            }
            State::Running { expected: Expected::Overdue { .. }, .. } => {
                self.overdue_procs -= procs(entry);
                freed.add_until(now + Span::TICK);
            }
            State::Waiting | State::Suspended { .. } => {}
        }
    }

    fn job_overdue(&mut self, _now: Time, job: JobId, ledger: &Ledger, freed: &mut FreedProcs) {
        self.overdue_procs += procs(ledger.entry(job));
        *freed = FreedProcs::anywhere();
    }

    fn end_moved(&mut self, now: Time, job: JobId, before: Time, ledger: &Ledger) {
        let entry = ledger.entry(job);
        let State::Running { expected: Expected::At(end), .. } = entry.state else { return };
        self.profile.advance(now);
        self.profile.give(now, before, procs(entry));
        self.profile.take(now, end, procs(entry));
    }

    fn job_changed(&mut self, now: Time, _job: JobId, ledger: &Ledger, freed: &mut FreedProcs) {
        // No policy runs around another one here.
        *self = CountPlan::rebuild(now, ledger);
        *freed = FreedProcs::anywhere();
    }

    fn job_started(&mut self, now: Time, job: &Waiting, _ledger: &Ledger) {
        self.profile.take(now, now + job.span, job.procs);
        self.free -= job.procs;
        match &mut self.room {
            Room::Free(free) => *free -= job.procs,
            Room::Beside(stairs) => stairs.take(job.procs, job.span),
            Room::Profile(outlook) => *outlook = self.profile.outlook(now),
        }
    }

    fn reservation_started(
        &mut self,
        _now: Time,
        reservation: &Reservation<()>,
        _ledger: &Ledger,
        _freed: &mut FreedProcs,
    ) {
        // The job holds the processors reserved for it.
        self.free -= reservation.job.procs;
        self.room = Room::Free(self.free);
    }
}

impl OverTime for CountPlan {
    fn any_overdue(&self) -> bool {
        self.overdue_procs > 0
    }

    fn hold_overdue(&mut self, now: Time, _ledger: &Ledger) {
        if self.any_overdue() {
            self.profile.take(now, now + Span::TICK, self.overdue_procs);
        }
    }

    fn release_overdue(&mut self, now: Time) {
        if self.any_overdue() {
            self.profile.give(now, now + Span::TICK, self.overdue_procs);
        }
    }

    fn varies(&self) -> bool {
        false
    }

    fn next_change(&self, _now: Time) -> Option<Time> {
        None
    }

    fn is_beside_overdue(&self, reservation: &Reservation<()>, _ledger: &Ledger) -> bool {
        self.overdue_procs == 0 || self.profile.free_at(reservation.at) >= self.overdue_procs
    }
}

impl Search for CountPlan {
    fn room(&self, _ledger: &Ledger, _freed: Option<&FreedProcs>) -> impl Admits {
        &self.room
    }

    fn place_now(&self, _context: &Context<'_>, job: &Waiting, _freed: Option<&FreedProcs>) -> Option<()> {
        self.room.admits(job.procs, job.span).then_some(())
    }

    fn earliest_start(&mut self, context: &Context<'_>, job: &Waiting) -> Option<(Time, ())> {
        self.enter_pending();
        self.start_from(context.ledger(), job, context.now(), Time::MAX, None)
    }

    fn earliest_start_again(
        &self,
        _context: &Context<'_>,
        last: &Reservation<()>,
        freed: &FreedProcs,
        _taken: &FreedProcs,
    ) -> Option<(Time, ())> {
        freed.is_nowhere().then_some((last.at, ()))
    }

    fn earlier_start(
        &mut self,
        _ledger: &Ledger,
        from: Time,
        reservation: &Reservation<()>,
        freed: &FreedProcs,
    ) -> Option<(Time, ())> {
        let (at, job) = (reservation.at, &reservation.job);
        let found = self.profile.earliest_again(from, freed.until, at, job.span, job.procs);
        found.map(|at| (at, ()))
    }

    fn start_from(
        &self,
        _ledger: &Ledger,
        job: &Waiting,
        from: Time,
        until: Time,
        _place: Option<&()>,
    ) -> Option<(Time, ())> {
        let found = self.profile.earliest_within(from, until, Time::MAX, job.span, job.procs);
        found.or((until == Time::MAX).then_some(Time::MAX)).map(|at| (at, ()))
    }

    fn first_start(
        &mut self,
        _ledger: &Ledger,
        job: &Waiting,
        from: Time,
        until: Time,
    ) -> Option<(Time, ())> {
        let found = self.profile.earliest_again(from, until, Time::MAX, job.span, job.procs);
        found.or((until == Time::MAX).then_some(Time::MAX)).map(|at| (at, ()))
    }

    fn widest(&self, now: Time, freed: &mut FreedProcs) -> u32 {
        if freed.ended > now {
            freed.most = freed.most.max(self.profile.most_within(now, freed.ended));
        }
        freed.ended = NEVER;
        freed.most
    }
}
