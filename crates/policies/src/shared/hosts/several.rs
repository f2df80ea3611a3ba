//! Searches for the start of a job over several hosts.

use miserly_core::{Demand, FreeHosts, HostId, PartCounter, Placement, Resources, Span, Time};

use super::HostPlan;

/// A search over several hosts while no host ever has less than before. It reads what is free in `first..=at`.
#[derive(Clone, Debug)]
pub(super) struct LastSearch {
    first: Time,
    at: Time,
    demand: Demand,
    placement: Placement,
}

impl LastSearch {
    /// Returns whether it was that from this instant on for this demand.
    pub(super) fn is(&self, first: Time, demand: &Demand) -> bool {
        self.first == first && self.demand == *demand
    }

    /// Returns whether it read what is free at some time of `from..to`.
    pub(super) fn reads(&self, from: Time, to: Time) -> bool {
        from <= self.at && self.first < to
    }
}

impl HostPlan {
    /// Returns the earliest start over several hosts from `first` on.
    ///
    /// Enough processors are free in total from there on. Then each breakpoint is examined at which that
    /// is so: O(hosts) for `first`, and from one to the next O(log n) for each change of a host there and
    /// behind the job's end.
    pub(super) fn earliest_across(
        &self,
        first: Time,
        until: Time,
        span: Span,
        demand: &Demand,
    ) -> Option<(Time, Placement)> {
        if self.only_rises() {
            return self.earliest_without_falls(first, until, demand);
        }
        let mut at = first;
        let counter = PartCounter::new(demand);
        let mut free = self.free_throughout(at, span);
        let mut parts = self.parts_in(&counter, &free);
        loop {
            if parts >= demand.parts()
                && let Some(placement) = FreeHosts::fit_once(&self.machine, &free, demand)
            {
                return Some((at, placement));
            }
            let next = self.first_together(at, until, span, demand)?;
            for host in self.changed_between(at, next, span) {
                let room = &mut free[host.index()];
                let before = self.parts_on(&counter, host, room);
                *room = self.hosts[host.index()].least_within(next, span);
                parts = parts + self.parts_on(&counter, host, room) - before;
            }
            at = next;
        }
    }

    /// Returns the hosts on which more or less may stay free for `span` from `next` on than from `at` on.
    fn changed_between(&self, at: Time, next: Time, span: Span) -> Vec<HostId> {
        let points = |after: Time, until: Time| self.points(after, until).map(|(_, host)| host);
        let left = points(at, next + Span::TICK);
        let entered = points((at + span).max(next) - Span::TICK, next + span);
        let changed: Vec<HostId> = left.chain(entered).take(self.hosts.len()).collect();
        let all = changed.len() == self.hosts.len();
        if all { (0..).map(HostId).take(self.hosts.len()).collect() } else { changed }
    }

    /// Returns the first breakpoint after `after` and before `until` at which enough processors are free in total.
    pub(super) fn first_together(
        &self,
        after: Time,
        until: Time,
        span: Span,
        demand: &Demand,
    ) -> Option<Time> {
        let (next, _) = self.points(after, until).next()?;
        self.together_from(Time::from_ticks(next), until, Time::MAX, span, demand)
    }

    /// Returns the earliest start over several hosts from the breakpoint `first` on, if no host ever has less than
    /// before.
    ///
    /// O(hosts) for the first instant, and O(log hosts) for each change of a host from there on.
    fn earliest_without_falls(&self, first: Time, until: Time, demand: &Demand) -> Option<(Time, Placement)> {
        let counter = PartCounter::new(demand);
        let mut free: Vec<Resources> = self.hosts.iter().map(|line| line.free_at(first)).collect();
        let mut parts = self.parts_in(&counter, &free);
        let mut at = first;
        let mut points = self.points(first, until).peekable();
        loop {
            if parts >= demand.parts()
                && let Some(placement) = FreeHosts::fit_once(&self.machine, &free, demand)
            {
                return Some((at, placement));
            }
            let (next, _) = *points.peek()?;
            at = Time::from_ticks(next);
            while let Some((_, host)) = points.next_if(|(point, _)| *point == next) {
                let room = &mut free[host.index()];
                let before = self.parts_on(&counter, host, room);
                *room = self.hosts[host.index()].free_at(at);
                parts = parts + self.parts_on(&counter, host, room) - before;
            }
        }
    }

    /// Returns the earliest start after `now` over several hosts, if no host ever has less than before.
    ///
    /// It is that of the last search if nothing changed that this one read.
    pub(super) fn search_without_falls(
        &mut self,
        now: Time,
        span: Span,
        demand: &Demand,
    ) -> Option<(Time, Placement)> {
        let first = self.first_together(now, Time::MAX, span, demand)?;
        if let Some(last) = self.last_search.as_ref().filter(|last| last.is(first, demand)) {
            return Some((last.at, last.placement.clone()));
        }
        let (at, placement) = self.earliest_without_falls(first, Time::MAX, demand)?;
        self.last_search = Some(LastSearch { first, at, demand: *demand, placement: placement.clone() });
        Some((at, placement))
    }

    /// Returns whether jobs may span hosts, and no host ever has less than before.
    pub(super) fn only_rises(&self) -> bool {
        self.lasting.as_ref().is_some_and(|lasting| lasting.falls().is_none())
    }
}
