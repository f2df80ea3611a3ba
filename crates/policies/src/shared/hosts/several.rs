//! Searches for the start of a job over several hosts.

use miserly_core::{Demand, PartCounter, Placement, Span, Time};

use super::HostPlan;
use super::lines::LineId;

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
    /// is so: O(timelines) for `first`, and from one to the next O(log n) for each timeline that changes there or
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
        let mut free = self.lines.free_throughout(at, span);
        let mut parts = self.parts_in(&counter, &free);
        loop {
            if let Some(placement) = self.fit_in(&free, parts, demand) {
                return Some((at, placement));
            }
            let next = self.first_together(at, until, span, demand)?;
            for id in self.changed_between(at, next, span) {
                let room = &mut free[id.index()];
                let before = self.parts_on(&counter, id, room);
                *room = self.lines.get(id).least_within(next, span);
                parts = parts + self.parts_on(&counter, id, room) - before;
            }
            at = next;
        }
    }

    /// Returns the timelines in which more or less may stay free for `span` from `next` on than from `at` on.
    fn changed_between(&self, at: Time, next: Time, span: Span) -> Vec<LineId> {
        let points = |after: Time, until: Time| self.lines.points(after, until).map(|(_, id)| id);
        let left = points(at, next + Span::TICK);
        let entered = points((at + span).max(next) - Span::TICK, next + span);
        let ids = self.lines.ids();
        let most = ids.clone().count();
        let changed: Vec<LineId> = left.chain(entered).take(most).collect();
        if changed.len() == most { ids.collect() } else { changed }
    }

    /// Returns the first breakpoint after `after` and before `until` at which enough processors are free in total.
    pub(super) fn first_together(
        &self,
        after: Time,
        until: Time,
        span: Span,
        demand: &Demand,
    ) -> Option<Time> {
        let (next, _) = self.lines.points(after, until).next()?;
        self.together_from(Time::from_ticks(next), until, Time::MAX, span, demand)
    }

    /// Returns the earliest start over several hosts from the breakpoint `first` on, if no host ever has less than
    /// before.
    ///
    /// O(timelines) for the first instant, and O(log n) for each change of one from there on.
    fn earliest_without_falls(&self, first: Time, until: Time, demand: &Demand) -> Option<(Time, Placement)> {
        let counter = PartCounter::new(demand);
        let mut free = self.lines.free_at(first);
        let mut parts = self.parts_in(&counter, &free);
        let mut at = first;
        let mut points = self.lines.points(first, until).peekable();
        loop {
            if let Some(placement) = self.fit_in(&free, parts, demand) {
                return Some((at, placement));
            }
            let (next, _) = *points.peek()?;
            at = Time::from_ticks(next);
            while let Some((_, id)) = points.next_if(|(point, _)| *point == next) {
                let room = &mut free[id.index()];
                let before = self.parts_on(&counter, id, room);
                *room = self.lines.get(id).free_at(at);
                parts = parts + self.parts_on(&counter, id, room) - before;
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
        self.lasting.is_some() && self.lines.falls().is_none()
    }
}
