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
            let mut lap = Lap { entered: search.at, period: self.calendar.period(), over: false };
            while search.at < end {
                let step = self.calendar.next(search.at).map_or(end, |(next, _)| next.min(end));
                if stretch.has_beside(need, &self.lacking(search.at)) {
                    if step == Time::MAX || step - search.start >= span {
                        return Some(search.start).filter(|start| *start < until);
                    }
                } else {
                    search.start = step;
                }
                search.at = step;
                lap.skip(&mut search, end);
                if search.start >= until {
                    return None;
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

/// One period of the calendar within a stretch: all others of it go the same way.
struct Lap {
    entered: Time,
    period: Span,
    over: bool,
}

impl Lap {
    /// Once a period has been looked at, goes on behind the last one that lies wholly before `end`. One that lacks something, and
    /// goes on for ever, has no hole.
    fn skip(&mut self, search: &mut Search, end: Time) {
        if self.over || search.at < self.entered + self.period {
            return;
        }
        self.over = true;
        let lacked = search.start > self.entered;
        if lacked && end == Time::MAX {
            search.start = Time::MAX;
            return;
        }
        let (period, left) = (self.period.ticks(), (end - search.at).ticks());
        let skipped = Span::from_ticks(left - left % period);
        search.at = search.at + skipped;
        // A period without a lack goes on with the one before it.
        if lacked {
            search.start = search.start + skipped;
        }
    }
}
