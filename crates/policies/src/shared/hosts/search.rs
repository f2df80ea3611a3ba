//! Searches for the placement and the start of a job.

use miserly_core::{
    Demand, FreeHosts, HostId, Kind, Ledger, PartCounter, Placement, Procs, Resources, Share, Span, Spread,
    Time,
};

use super::lines::LineId;
use super::pool::Pool;
use super::timeline::Timeline;
use super::{HostPlan, small};
use crate::shared::StepStaircase;

impl HostPlan {
    /// Returns a placement at which a job can start now and stay for `span`, beside all
    /// reservations.
    ///
    /// On one host: among the possible hosts, the one with the fewest free processors now, as in
    /// [`FreeHosts`]. On several hosts: as [`FreeHosts`] places it on the resources that stay free
    /// throughout.
    ///
    /// No reservation may begin now: the ledger would not have it.
    ///
    /// O(log hosts), plus the windows of hosts that have reservations. On several hosts: O(log hosts)
    /// for each that it takes, and O(hosts log hosts) for a job that ends between two reservations.
    pub fn fit_now(&self, ledger: &Ledger, now: Time, span: Span, demand: &Demand) -> Option<Placement> {
        if self.is_pool() {
            return self
                .earliest_in_pool(now, now + Span::TICK, span, demand)
                .map(|(_, placement)| placement);
        }
        let free = ledger.free_hosts();
        let Some(lasting) = &self.lasting else {
            let amount = &demand.amount();
            let mut candidates = free.candidates(&self.machine, amount);
            if self.has_devices() {
                return self.best(now, span, demand, candidates);
            }
            // The ledger orders the other hosts as the plan does.
            return candidates.find_map(|host| self.on(host, now, span, amount));
        };
        let end = now + span;
        match self.falls() {
            Some((_, last)) if end > last => lasting.free().fit(&self.machine, demand),
            Some((first, _)) if end > first => demand
                .amount()
                .fits_in(&free.total())
                .then(|| self.fit_throughout(now, span, demand))
                .flatten(),
            _ => free.fit(&self.machine, demand),
        }
    }

    /// Returns the first and the last time at which less becomes free on a host, where jobs may span hosts.
    fn falls(&self) -> Option<(Time, Time)> {
        let pending = self.pending().map(|pending| (pending.at, pending.at));
        pending.or_else(|| self.lines.falls())
    }

    /// Returns a bound on the processors of a job over several hosts that starts now: those that are free now, and for a
    /// job that is longer than a span, those that stay free beside the only reservation that is held.
    ///
    /// Reservations in the timelines do not count, because a policy may move them.
    pub fn room_now(&self, ledger: &Ledger) -> (Procs, Span, Procs) {
        let now = ledger.free_hosts().total().cpus_count();
        // No job ends after the end of time.
        let held = self.pending().filter(|held| held.at < Time::MAX);
        match self.lasting.as_ref().zip(held) {
            Some((lasting, held)) => (now, held.at - self.now, lasting.free().total().cpus_count()),
            None => (now, Span::MAX, now),
        }
    }

    /// Returns a bound on the processors of a job on this host that starts now: those that are free now, and for a job
    /// that is longer than a span, those that are free after it. Both are exact beside one reservation.
    ///
    /// Only reservations that are held count, because a policy may move the others.
    pub fn room_on(&self, host: HostId, ledger: &Ledger) -> (Procs, Span, Procs) {
        let line = self.lines.on(host);
        let now = ledger.free_hosts().on(host).cpus_count();
        match line.falls().filter(|_| self.held > 0) {
            Some(falls) => {
                let first = Time::from_ticks(falls.first);
                (now, first - self.now, line.free_at(first).cpus_count().min(now))
            }
            None => (now, Span::MAX, now),
        }
    }

    /// Returns the same as [`room_on`](HostPlan::room_on), exact beside any number of reservations.
    ///
    /// O(n) in the breakpoints up to the last one at which less becomes free.
    pub fn outlook_on(&self, host: HostId, ledger: &Ledger) -> StepStaircase {
        let now = ledger.free_hosts().on(host).cpus_count();
        let line = self.lines.on(host);
        if self.held > 0 { line.outlook(self.now, now) } else { StepStaircase::constant(now) }
    }

    /// Returns the earliest start of a job from `now` on, and its placement.
    ///
    /// No reservation may begin now. The start is now, at a breakpoint, or [`Time::MAX`] if the job
    /// has to wait for jobs without end. O(log m) for each of the m breakpoints that is passed,
    /// plus the windows there.
    pub fn earliest(
        &mut self,
        ledger: &Ledger,
        now: Time,
        span: Span,
        demand: &Demand,
    ) -> Option<(Time, Placement)> {
        if self.held > 0 {
            self.enter_pending();
        }
        if self.pool().is_some() {
            return self.earliest_from(now, Time::MAX, span, demand);
        }
        if let Some(placement) = self.fit_now(ledger, now, span, demand) {
            return Some((now, placement));
        }
        if self.only_rises() {
            return self.search_without_falls(now, span, demand).or_else(|| self.never(demand));
        }
        let first = self.first_together(now, Time::MAX, span, demand);
        self.earliest_after(now, first, Time::MAX, span, demand)
    }

    /// Returns the earliest start not before `from`, which may be later than now, and before
    /// `until`.
    ///
    /// The start is [`Time::MAX`] if only jobs without end are in its way.
    pub fn earliest_from(
        &self,
        from: Time,
        until: Time,
        span: Span,
        demand: &Demand,
    ) -> Option<(Time, Placement)> {
        if from >= until {
            return None;
        }
        if self.is_pool() {
            return self.earliest_in_pool(from, until, span, demand);
        }
        if self.machine.spread() == Spread::One
            && let Some(placement) = self.best_of_all(from, span, demand)
        {
            return Some((from, placement));
        }
        let first = self.together_from(from, until, Time::MAX, span, demand);
        self.earliest_after(from, first, until, span, demand)
    }

    /// Returns the earliest start after `after` on one host, or over several hosts from `first` on, if there is such an instant.
    fn earliest_after(
        &self,
        after: Time,
        first: Option<Time>,
        until: Time,
        span: Span,
        demand: &Demand,
    ) -> Option<(Time, Placement)> {
        let found = match self.machine.spread() {
            Spread::One => self.earliest_on_one(after, until, span, demand),
            Spread::Any => first.and_then(|first| self.earliest_across(first, until, span, demand)),
        };
        found.or_else(|| self.never(demand).filter(|_| until == Time::MAX))
    }

    /// Returns the start of a job that has to wait for jobs without end.
    ///
    /// It is a normal reservation, because such a job may end yet. No job holds resources at that
    /// time.
    fn never(&self, demand: &Demand) -> Option<(Time, Placement)> {
        let placement = self.fit_idle(demand)?;
        Some((Time::MAX, placement))
    }

    /// Returns whether the demand never fits for `span`, even on an idle machine without capacity
    /// loss.
    pub fn never_fits(&self, from: Time, span: Span, demand: &Demand) -> bool {
        match self.machine.calendar() {
            Some(calendar) => {
                let capacity = calendar.most();
                let pool = Pool { line: &Timeline::new(&capacity), calendar, capacity };
                // Lost capacity may come back; a machine never gets devices that it has not.
                pool.earliest(from, Time::MAX, span, &demand.amount()).is_none()
                    || self.has_devices() && self.fit_idle(demand).is_none()
            }
            None => self.fit_idle(demand).is_none(),
        }
    }

    /// Returns the earliest start in a pool, which is at a change of the pool or of a cell of devices.
    fn earliest_in_pool(
        &self,
        mut from: Time,
        until: Time,
        span: Span,
        demand: &Demand,
    ) -> Option<(Time, Placement)> {
        let (pool, host) = (self.pool()?, HostId(0));
        loop {
            let at = pool.earliest(from, until, span, &demand.amount())?;
            if let Some((_, placement)) = self.with_devices_on(host, at, span, demand, None) {
                return Some((at, placement));
            }
            from = self.next_change_of_devices(host, at).filter(|next| *next < until)?;
        }
    }

    fn earliest_on_one(
        &self,
        after: Time,
        until: Time,
        span: Span,
        demand: &Demand,
    ) -> Option<(Time, Placement)> {
        let host = |id: LineId| self.lines.host_of(id);
        let fits = |at: i64, id| self.is_free_on(host(id), Time::from_ticks(at), span, demand);
        let (at, _) = self.lines.points(after, until).find(|&(at, id)| fits(at, id))?;
        let at = Time::from_ticks(at);
        let here = self.lines.points(at - Span::TICK, at + Span::TICK).map(|(_, id)| host(id));
        self.best(at, span, demand, here).map(|placement| (at, placement))
    }

    /// Returns whether a job fits on this host from `at` on.
    fn is_free_on(&self, host: HostId, at: Time, span: Span, demand: &Demand) -> bool {
        let has_room = self.on(host, at, span, &demand.amount()).is_some();
        has_room && (!self.has_devices() || self.with_devices_on(host, at, span, demand, None).is_some())
    }

    /// Returns the placement on this host, if a job without devices fits there from `at` on.
    pub(super) fn on(&self, host: HostId, at: Time, span: Span, demand: &Resources) -> Option<Placement> {
        let need = self.need(host, demand)?;
        self.lines.on(host).fits(at, span, &need).then(|| Placement::on(host, need))
    }

    /// Returns the best fit at `at` among all hosts.
    ///
    /// O(log hosts) for each host that is no fit, if `at` is not in the future; else O(hosts).
    fn best_of_all(&self, at: Time, span: Span, demand: &Demand) -> Option<Placement> {
        let amount = &demand.amount();
        let is_now = at <= self.now && !amount.cpus_count().is_zero();
        let ordered = self.present.as_ref().filter(|_| is_now && !self.has_devices());
        match ordered {
            Some(present) => {
                let mut hosts = present.candidates(&self.machine, amount);
                hosts.find_map(|host| self.on(host, at, span, amount))
            }
            None => self.best(at, span, demand, (0..).map(HostId).take(self.lines.hosts())),
        }
    }

    /// Returns the best fit at `at` among these hosts.
    pub(super) fn best(
        &self,
        at: Time,
        span: Span,
        demand: &Demand,
        hosts: impl Iterator<Item = HostId>,
    ) -> Option<Placement> {
        let amount = demand.amount();
        if !self.has_devices() {
            let placed = hosts.filter_map(|host| {
                let placement = self.on(host, at, span, &amount)?;
                Some((self.fit_on(host, at), placement))
            });
            return placed.min_by_key(|(fit, _)| *fit).map(|(_, placement)| placement);
        }
        let placed = hosts.filter_map(|host| {
            self.on(host, at, span, &amount)?;
            self.with_devices_on(host, at, span, demand, None)
        });
        placed.min_by_key(|(fit, _)| *fit).map(|(_, placement)| placement)
    }

    /// Returns the fit of a job on the host at that time. Smaller is better.
    pub(super) fn fit_on(&self, host: HostId, at: Time) -> (Procs, u64, HostId) {
        let free = self.free_at(host, at);
        (free.cpus_count(), free.get(Kind::Memory), host)
    }

    /// Returns a placement over several hosts on the resources that stay free on each.
    ///
    /// O(hosts log hosts), if enough processors are free in total.
    pub(super) fn fit_throughout(&self, at: Time, span: Span, demand: &Demand) -> Option<Placement> {
        self.together_from(at, at + Span::TICK, Time::MAX, span, demand)?;
        let free = self.lines.free_throughout(at, span);
        let parts = self.parts_in(&PartCounter::new(demand), &free);
        self.fit_in(&free, parts, demand)
    }

    /// Returns a placement over several hosts on what is free in each timeline, where so many parts of the job fit.
    pub(super) fn fit_in(&self, free: &[Resources], parts: u64, demand: &Demand) -> Option<Placement> {
        if parts < demand.parts() {
            return None;
        }
        FreeHosts::fit_once(&self.machine, &self.lines.by_host(free), demand)
    }

    /// Returns the number of parts of a job that fit on hosts with these free resources in their timelines.
    pub(super) fn parts_in(&self, counter: &PartCounter, free: &[Resources]) -> u64 {
        self.lines.ids().zip(free).map(|(id, free)| self.parts_on(counter, id, free)).sum()
    }

    /// Returns the number of parts of a job that fit on the hosts with this timeline, with this room on each.
    pub(super) fn parts_on(&self, counter: &PartCounter, id: LineId, room: &Resources) -> u64 {
        let (host, count) = self.lines.hosts_with(id);
        if count == 0 || !self.machine.permits(counter.group(), host) {
            return 0;
        }
        count.saturating_mul(counter.parts_in(room, &self.machine.host(host).capacity))
    }

    /// Returns the first instant of `from..until` from which enough processors are free for `span`.
    ///
    /// The job itself holds as many processors from `limit` on. The result is `from` or a
    /// breakpoint. Exists only where jobs may span hosts.
    pub(super) fn together_from(
        &self,
        from: Time,
        until: Time,
        limit: Time,
        span: Span,
        demand: &Demand,
    ) -> Option<Time> {
        let together = self.together.as_ref()?;
        together.earliest_within(from, until, limit, span, small(demand.cpus_count()))
    }

    /// Returns whether the placement is free from `at` on, so that a reservation can stay there.
    pub fn holds(&self, at: Time, span: Span, placement: &Placement) -> bool {
        if let Some(pool) = self.pool() {
            let is_free = pool.earliest(at, at + Span::TICK, span, &placement.total()).is_some();
            return is_free && self.holds_devices(at, span, placement);
        }
        let free = |share: &Share| self.lines.on(share.host).fits(at, span, &share.amount);
        placement.shares().iter().all(free) && self.holds_devices(at, span, placement)
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{
        FreeHosts, Host, HostId, Kind, Machine, Placement, Resources, Sharing, Span, Time, draw,
    };

    use super::super::{FreedHosts, HostPlan};

    /// Makes and removes reservations at random, also past ones, and compares what is free now with the timelines, and the
    /// best fit with one among all hosts in turn.
    #[test]
    fn the_best_fit_of_now_is_that_of_all_hosts() {
        let (mut found, mut not_first) = (0, 0);
        for seed in 0..60 {
            let capacity = |host: u64| Resources::cpus(2 + host % 3).with(Kind::Memory, 40 + host % 2);
            let hosts = (0..9).map(|host| Host { name: format!("h{host}"), capacity: capacity(host) });
            let sharing = if seed % 3 == 0 { Sharing::Whole } else { Sharing::Shared };
            let machine = Machine::new(hosts.collect()).with_sharing(sharing);
            let mut plan = HostPlan::new(&machine);
            let mut made: Vec<(Time, Span, Placement)> = Vec::new();
            let mut now = Time::ZERO;
            plan.advance(now, &mut FreedHosts::default());
            for step in 0..60 {
                let random = |nth: u64, most: u64| draw(seed, step, nth) % most;
                let ticks = |nth, most| Span::from_ticks(i64::try_from(random(nth, most)).unwrap());
                let demand = |nth| Resources::cpus(random(nth, 5)).with(Kind::Memory, random(nth + 1, 30));
                if random(1, 4) == 0 && !made.is_empty() {
                    let (at, span, placement) = made.swap_remove(0);
                    plan.give(at, span, &placement);
                } else if let (at, span) = (now + ticks(2, 9), Span::TICK + ticks(3, 20))
                    && let Some((at, placement)) = plan.earliest_from(at, Time::MAX, span, &demand(4).into())
                {
                    plan.take(at, span, &placement);
                    made.push((at, span, placement));
                }
                if random(6, 3) == 0 {
                    now = now + Span::TICK + ticks(7, 2);
                    plan.advance(now, &mut FreedHosts::default());
                }
                let free: Vec<Resources> = (0..9).map(|host| plan.free_at(HostId(host), now)).collect();
                assert_eq!(plan.present.as_ref().unwrap().each(), free, "seed {seed}, step {step}");
                let (span, wanted) = (Span::TICK + ticks(8, 20), demand(9));
                let best = plan.best_of_all(now, span, &wanted.into());
                assert_eq!(
                    best,
                    plan.best(now, span, &wanted.into(), (0..9).map(HostId)),
                    "seed {seed}, step {step}"
                );
                found += u32::from(best.is_some());
                let first = FreeHosts::new(&machine, free).fit(&machine, &wanted.into());
                not_first += u32::from(best.is_some() && best != first);
            }
        }
        assert!(found > 500 && not_first > 50, "{found}, {not_first}");
    }
}
