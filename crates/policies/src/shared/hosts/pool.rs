//! Holes in a pool: one host whose capacity changes over time.

use miserly_core::{Calendar, Resources, Span, Time};

use super::timeline::Timeline;

/// The free resources of a pool over time: the timeline less the capacity that the calendar
/// withholds.
#[derive(Clone, Copy)]
pub(super) struct Pool<'a> {
    pub(super) line: &'a Timeline,
    pub(super) calendar: &'a Calendar,
    /// The present maximum capacity of the pool. It is below the calendar's maximum after a
    /// capacity loss.
    pub(super) capacity: Resources,
}

/// The search for the first hole: everything since `start` was enough.
struct Search {
    start: Time,
    at: Time,
}

impl Pool<'_> {
    /// Returns the earliest instant of `from..until` from which on `need` stays free for `span`, or
    /// `None`.
    ///
    /// It is `from`, or an instant at which the timeline or the calendar changes. O(number of
    /// changes of both that are passed). In a long stretch without a change of the timeline, only
    /// two periods of the calendar after its exceptions count.
    pub(super) fn earliest(&self, from: Time, until: Time, span: Span, need: &Resources) -> Option<Time> {
        let mut search = Search { start: from, at: from };
        for (end, stretch) in self.line.stretches(from) {
            let mut lap = Lap { entered: search.at.max(self.calendar.regular_from()), over: false };
            while search.at < end {
                let step = self.calendar.next(search.at).map_or(end, |(next, _)| next.min(end));
                if !stretch.has_beside(need, &self.lacking(search.at)) {
                    search.start = step;
                }
                search.at = step;
                if lap.is_over(step, self.calendar.period()) {
                    // Periods without a lack continue the one before.
                    let lacked = search.start > lap.entered;
                    if end == Time::MAX {
                        return Some(search.start).filter(|start| !lacked && *start < until);
                    }
                    search.skip(end, self.calendar.period(), lacked);
                }
                if search.start >= until {
                    return None;
                }
                if search.at == Time::MAX || search.at - search.start >= span {
                    return Some(search.start);
                }
            }
        }
        None
    }

    /// Returns the resources that the calendar withholds at that time.
    pub(super) fn lacking(&self, at: Time) -> Resources {
        self.capacity.less(&self.calendar.at(at))
    }
}

impl Search {
    /// Advances past the last period that lies entirely before `end`.
    fn skip(&mut self, end: Time, period: Span, lacked: bool) {
        let left = (end - self.at).ticks();
        let skipped = Span::from_ticks(left - left % period.ticks());
        self.at = self.at + skipped;
        if lacked {
            self.start = self.start + skipped;
        }
    }
}

/// The first two periods of the calendar within a stretch.
///
/// A hole that begins in the first period ends in the second, or never. If there is none, all later
/// periods repeat the second.
struct Lap {
    entered: Time,
    over: bool,
}

impl Lap {
    /// Returns whether the second period was completed by this step.
    fn is_over(&mut self, at: Time, period: Span) -> bool {
        let before = std::mem::replace(&mut self.over, at >= self.entered + period + period);
        self.over && !before
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{Machine, Placement};

    use super::super::{FreedHosts, HostPlan};
    use super::*;

    /// Checks a pool with 8 processors for nine ticks and 2 for fifteen.
    ///
    /// Four of them are taken for a billion days.
    #[track_caller]
    fn check(from: i64, until: i64, span: i64, procs: u64, expect: Option<i64>) {
        let steps = vec![(Span::ZERO, Resources::cpus(8)), (Span::from_ticks(9), Resources::cpus(2))];
        let calendar = Calendar::repeating(Time::ZERO, Span::from_ticks(24), steps).unwrap();
        let mut plan = HostPlan::new(&Machine::pool("pool".into(), calendar));
        plan.advance(Time::from_ticks(from), &mut FreedHosts::default());
        let taken = Placement::on_plain(Resources::cpus(4));
        plan.take(Time::from_ticks(from), Span::from_ticks(24_000_000_000 - from), &taken);
        let [from, until] = [from, until].map(Time::from_ticks);
        let place = plan.earliest_from(from, until, Span::from_ticks(span), &Resources::cpus(procs).into());
        assert_eq!(place.map(|(at, _)| at.ticks()), expect);
    }

    #[test]
    fn long_stretches_are_not_walked_through() {
        const NEVER: i64 = i64::MAX;
        check(5, NEVER, 4, 4, Some(5));
        check(5, NEVER, 5, 4, Some(24));
        check(5, 24, 5, 4, None);
        check(5, NEVER, 10, 4, None);
        check(5, NEVER, 5, 5, Some(24_000_000_000));
        check(5, NEVER, NEVER, 3, None);
        check(5, NEVER, 25, 2, Some(24_000_000_000));
        check(5, NEVER, NEVER, 2, Some(24_000_000_000));
    }
}
