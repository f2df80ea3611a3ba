//! The availability of hosts, as the backfilling engine uses it.

use miserly_core::{
    Context, Demand, Entry, HostId, JobId, Ledger, Machine, Placement, Procs, Resources, Span, Spread, Time,
    Violation,
};

use super::availability::{Following, FreedCapacity, OverTime, Places, Search};
use super::reservations::Reservation;
use crate::shared::{Admits, FreedHosts, HostPlan, StepStaircase, Waiting};

/// A bound on the jobs that can start now.
enum Room {
    Width(Width),
    Steps(StepStaircase),
}

impl Admits for Room {
    fn admits(&self, procs: u32, span: Span) -> bool {
        match self {
            Room::Width(width) => width.admits(procs, span),
            Room::Steps(steps) => steps.admits(procs, span),
        }
    }
}

/// The width of the widest job that can start now.
struct Width {
    /// Of a job that is no longer than `until`.
    short: Procs,
    until: Span,
    /// Of any other job.
    long: Procs,
}

impl Width {
    const NONE: Width = Width { short: Procs::ZERO, until: Span::ZERO, long: Procs::ZERO };

    fn new((short, until, long): (Procs, Span, Procs)) -> Width {
        Width { short, until, long }
    }

    /// Returns the width on any of these hosts.
    fn on_one_of(hosts: impl Iterator<Item = HostId>, plan: &HostPlan, ledger: &Ledger) -> Width {
        let widths = hosts.map(|host| Width::new(plan.room_on(host, ledger)));
        let widest = |one: Width, other: Width| Width {
            short: one.short.max(other.short),
            until: one.until.max(other.until),
            long: one.long.max(other.long),
        };
        widths.fold(Width::NONE, widest)
    }
}

impl Admits for Width {
    fn admits(&self, procs: u32, span: Span) -> bool {
        Procs::new(procs.into()) <= if span <= self.until { self.short } else { self.long }
    }
}

impl FreedCapacity for FreedHosts {
    fn anywhere() -> FreedHosts {
        FreedHosts::all()
    }

    fn is_nowhere(&self) -> bool {
        self.until().is_none()
    }

    fn is_anywhere(&self) -> bool {
        self.hosts().is_none()
    }
}

/// Returns the resources that the job has to hold.
fn demand(ledger: &Ledger, job: JobId) -> Demand {
    ledger.machine().demand(ledger.request(job))
}

impl Places for HostPlan {
    type Place = Placement;
    type Freed = FreedHosts;

    fn never_fits(&self, ledger: &Ledger, from: Time, job: &Waiting) -> bool {
        self.never_fits(from, job.span, &demand(ledger, job.job))
    }

    fn take(&mut self, at: Time, job: &Waiting, place: &Placement) {
        self.take(at, job.span, place);
    }

    fn give(&mut self, at: Time, job: &Waiting, place: &Placement) {
        self.give(at, job.span, place);
    }

    fn hold(&mut self, _now: Time, held: &Reservation<Placement>) {
        self.hold(held.at, held.job.span, &held.place);
    }

    fn release(&mut self, held: &[Reservation<Placement>]) {
        self.release(held.iter().map(|held| (held.at, held.job.span, &held.place)));
    }

    fn note_freed(
        &self,
        freed: &mut FreedHosts,
        _job: &Waiting,
        place: &Placement,
        _from: Time,
        until: Time,
    ) {
        freed.add(place, until);
    }

    fn note_changed(changed: &mut FreedHosts, place: &Placement) {
        changed.add(place, Time::MAX);
    }

    fn placement(_ledger: &Ledger, _job: JobId, place: Placement) -> Placement {
        place
    }

    fn kept_start(entry: &Entry, _promised: bool) -> Option<(Time, Placement)> {
        entry.planned.zip(entry.planned_on.clone())
    }

    fn record_plan(
        context: &mut Context<'_>,
        job: JobId,
        at: Time,
        place: &Placement,
        _promised: bool,
    ) -> Result<(), Violation> {
        context.plan_on(job, at, place.clone())
    }
}

impl Following for HostPlan {
    fn idle(machine: &Machine) -> HostPlan {
        HostPlan::new(machine)
    }

    fn rebuild(now: Time, ledger: &Ledger) -> HostPlan {
        HostPlan::rebuild(now, ledger)
    }

    fn advance(&mut self, now: Time, _ledger: &Ledger, freed: &mut FreedHosts) {
        self.advance(now, freed);
    }

    fn job_ended(&mut self, now: Time, job: JobId, ledger: &Ledger, freed: &mut FreedHosts) {
        // An overdue job held its resources until the next tick.
        let until = self.until(job).max(Some(now + Span::TICK));
        if let (Some(placement), Some(until)) = (ledger.entry(job).placement(), until) {
            freed.add(placement, until);
        }
        self.forget(job);
    }

    fn job_overdue(&mut self, now: Time, job: JobId, ledger: &Ledger, freed: &mut FreedHosts) {
        if let Some(placement) = ledger.entry(job).placement() {
            freed.add(placement, Time::MAX);
        }
        self.follow(now, job, ledger);
    }

    fn end_moved(&mut self, now: Time, job: JobId, _before: Time, ledger: &Ledger) {
        self.follow(now, job, ledger);
    }

    fn job_changed(&mut self, now: Time, job: JobId, ledger: &Ledger, freed: &mut FreedHosts) {
        let (before, after) = (self.placement_of(job), ledger.entry(job).placement());
        if before.or(after).is_none() {
            // It was overdue, so it was in no plan.
            *freed = FreedHosts::all();
        }
        before.into_iter().chain(after).for_each(|placement| freed.add(placement, Time::MAX));
        self.follow(now, job, ledger);
    }

    fn job_started(&mut self, now: Time, job: &Waiting, ledger: &Ledger) {
        self.follow(now, job.job, ledger);
    }

    fn reservation_started(
        &mut self,
        now: Time,
        reservation: &Reservation<Placement>,
        ledger: &Ledger,
        freed: &mut FreedHosts,
    ) {
        let Reservation { job, at, place, .. } = reservation;
        self.give(*at, job.span, place);
        self.follow(now, job.job, ledger);
        // It needs less time than planned, if work of a quantum was kept.
        if self.until(job.job) < Some(reservation.end()) {
            freed.add(place, reservation.end());
        }
    }
}

impl OverTime for HostPlan {
    fn any_overdue(&self) -> bool {
        self.any_late()
    }

    fn hold_overdue(&mut self, now: Time, ledger: &Ledger) {
        self.hold_late(now, ledger);
    }

    fn release_overdue(&mut self, _now: Time) {
        self.drop_late();
    }

    fn varies(&self) -> bool {
        self.is_pool()
    }

    fn next_change(&self, now: Time) -> Option<Time> {
        self.next_change(now)
    }

    fn is_beside_overdue(&self, reservation: &Reservation<Placement>, ledger: &Ledger) -> bool {
        let fits = |host, amount: &Resources| {
            let overdue = self.late_on(host, ledger);
            overdue.fits_in(&self.free_at(host, reservation.at)) || *amount == Resources::NONE
        };
        let mut shares = reservation.place.shares().iter();
        let has_devices = || self.has_devices_beside_late(reservation.at, &reservation.place, ledger);
        !self.any_late() || shares.all(|share| fits(share.host, &share.amount)) && has_devices()
    }
}

impl Search for HostPlan {
    fn room(&self, ledger: &Ledger, freed: Option<&FreedHosts>) -> impl Admits {
        if ledger.machine().spread() == Spread::Any {
            return Room::Width(Width::new(self.room_now(ledger)));
        }
        match freed.and_then(FreedHosts::hosts) {
            Some([(host, _)]) => Room::Steps(self.outlook_on(*host, ledger)),
            Some(hosts) => Room::Width(Width::on_one_of(hosts.iter().map(|(host, _)| *host), self, ledger)),
            None if ledger.machine().hosts().len() == 1 => Room::Steps(self.outlook_on(HostId(0), ledger)),
            None => {
                let most = ledger.free_hosts().most_cpus();
                Room::Width(Width { short: most, until: Span::MAX, long: most })
            }
        }
    }

    fn place_now(
        &self,
        context: &Context<'_>,
        job: &Waiting,
        freed: Option<&FreedHosts>,
    ) -> Option<Placement> {
        let (ledger, now) = (context.ledger(), context.now());
        let demand = demand(ledger, job.job);
        match freed {
            Some(freed) => self.fit_now_on(ledger, now, job.span, &demand, freed),
            None => self.fit_now(ledger, now, job.span, &demand),
        }
    }

    fn earliest_start(&mut self, context: &Context<'_>, job: &Waiting) -> Option<(Time, Placement)> {
        let demand = demand(context.ledger(), job.job);
        self.earliest(context.ledger(), context.now(), job.span, &demand)
    }

    fn earliest_start_again(
        &self,
        context: &Context<'_>,
        last: &Reservation<Placement>,
        freed: &FreedHosts,
        taken: &FreedHosts,
    ) -> Option<(Time, Placement)> {
        let demand = demand(context.ledger(), last.job.job);
        self.earliest_again(context.now(), &demand, (last.at, last.job.span, &last.place), freed, taken)
    }

    fn earlier_start(
        &mut self,
        ledger: &Ledger,
        from: Time,
        reservation: &Reservation<Placement>,
        freed: &FreedHosts,
    ) -> Option<(Time, Placement)> {
        let Reservation { job, at, place, .. } = reservation;
        if from >= *at {
            return None;
        }
        let demand = demand(ledger, job.job);
        let reserved = (*at, job.span, place);
        if let Some(hosts) = self.hosts_alone(freed) {
            return self.earlier_on(from, &demand, reserved, hosts);
        }
        let until = freed.until()?.min(*at);
        if !self.seems_earlier(from, until, &demand, reserved) {
            return None;
        }
        Places::give(self, *at, job, place);
        let earlier = self.earliest_from(from, until, job.span, &demand);
        Places::take(self, *at, job, place);
        earlier.filter(|(start, _)| start < at)
    }

    fn start_from(
        &self,
        ledger: &Ledger,
        job: &Waiting,
        from: Time,
        until: Time,
        place: Option<&Placement>,
    ) -> Option<(Time, Placement)> {
        match place.filter(|place| self.holds(from, job.span, place)) {
            Some(place) => Some((from, place.clone())),
            None => self.earliest_from(from, until, job.span, &demand(ledger, job.job)),
        }
    }

    fn widest(&self, now: Time, freed: &mut FreedHosts) -> u32 {
        u32::try_from(self.most_cpus(now, freed)).unwrap_or(u32::MAX)
    }
}
