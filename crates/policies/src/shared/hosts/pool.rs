//! Holes in a pool: one host of which there is more at one time than at another.

use miserly_core::{Calendar, Resources, Span, Time};

use super::timeline::Timeline;

/// What is free in a pool over time: what the jobs leave, less what the calendar says that it does not have then.
#[derive(Clone, Copy)]
pub(super) struct Pool<'a> {
    pub(super) line: &'a Timeline,
    pub(super) calendar: &'a Calendar,
    /// What the pool has at most; less than the calendar's most, if it lost some.
    pub(super) capacity: Resources,
}

/// The search for the first hole: everything since `start` was enough.
struct Search {
    start: Time,
    at: Time,
}

impl Pool<'_> {
    /// The earliest instant of `from..until` from which on `need` stays free for `span`; `None` if there is none.
    ///
    /// It is `from`, or an instant at which the timeline or the calendar changes. O(changes of both that are passed); in
    /// a long stretch without a change of the timeline, those of two periods of the calendar are.
    pub(super) fn earliest(&self, from: Time, until: Time, span: Span, need: &Resources) -> Option<Time> {
        let mut search = Search { start: from, at: from };
        for (end, stretch) in self.line.stretches(from) {
            let mut lap = Lap { entered: search.at, over: false };
            while search.at < end {
                let step = self.calendar.next(search.at).map_or(end, |(next, _)| next.min(end));
                if !stretch.has_beside(need, &self.lacking(search.at)) {
                    search.start = step;
                }
                search.at = step;
                if lap.is_over(step, self.calendar.period()) {
                    // Periods without a lack go on with the one before.
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

    /// What the calendar says that the pool does not have at that time.
    pub(super) fn lacking(&self, at: Time) -> Resources {
        self.capacity.less(&self.calendar.at(at))
    }
}

impl Search {
    /// Goes on behind the last period that lies wholly before `end`.
    fn skip(&mut self, end: Time, period: Span, lacked: bool) {
        let left = (end - self.at).ticks();
        let skipped = Span::from_ticks(left - left % period.ticks());
        self.at = self.at + skipped;
        if lacked {
            self.start = self.start + skipped;
        }
    }
}

/// The first two periods of the calendar within a stretch. A hole that begins in the first ends in the second, or never; and if
/// there is none, all other periods go like the second.
struct Lap {
    entered: Time,
    over: bool,
}

impl Lap {
    /// Whether they have just been looked at.
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

    /// Eight by day and two by night, nine ticks and fifteen; four of them are taken for a billion days.
    #[track_caller]
    fn check(from: i64, until: i64, span: i64, procs: u64, expect: Option<i64>) {
        let steps = vec![(Span::ZERO, Resources::cpus(8)), (Span::from_ticks(9), Resources::cpus(2))];
        let calendar = Calendar::repeating(Time::ZERO, Span::from_ticks(24), steps).unwrap();
        let mut plan = HostPlan::new(&Machine::pool("pool".into(), calendar));
        plan.advance(Time::from_ticks(from), &mut FreedHosts::default());
        let taken = Placement::on_plain(Resources::cpus(4));
        plan.take(Time::from_ticks(from), Span::from_ticks(24_000_000_000 - from), &taken);
        let [from, until] = [from, until].map(Time::from_ticks);
        let place = plan.earliest_from(from, until, Span::from_ticks(span), &Resources::cpus(procs));
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
