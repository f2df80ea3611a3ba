//! Windows of Miser: for every job a promised start and end, in a pool of which there is more at one time than at another.
//!
//! The windows are those of conservative backfilling ([`Kept`]): the earliest hole (first fit), kept, moved earlier when
//! something has ended. Here is what Miser adds: within which bounds a window may lie.

mod policy;

pub use self::policy::MISER;

use miserly_core::{Machine, Refusal, Request, Span, Time};

use crate::backfill::family::Kept;
use crate::shared::{HostPlan, Order};

/// First-fit windows (Miser §3.1), none of which lies further ahead than `horizon` when it is made.
pub fn first_fit(machine: &Machine, horizon: Span) -> Kept {
    Kept::named("miser", machine, Order::ARRIVAL).with_windows(horizon)
}

/// When the window of a job may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// It does not begin before.
    pub(crate) begin: Time,
    /// It is over by then.
    pub(crate) end: Time,
    /// What to say if there is none by then.
    otherwise: Refusal,
}

impl Bounds {
    /// The bounds of a job that is to have its window now: what its user asked for, and the horizon.
    pub(crate) fn of(request: &Request, now: Time, horizon: Span) -> Bounds {
        let limit = now + horizon;
        let deadline = request.terms.deadline.filter(|deadline| *deadline <= limit);
        Bounds {
            begin: earliest(request, now),
            end: deadline.unwrap_or(limit),
            otherwise: if deadline.is_some() { Refusal::Deadline } else { Refusal::NoWindow },
        }
    }

    /// Before when a window of this length has to begin.
    pub(crate) fn until(&self, span: Span) -> Time {
        // Nothing ends later than never.
        if self.end == Time::MAX { Time::MAX } else { self.end + (Span::TICK - span) }
    }

    /// Why there is no window.
    pub(crate) fn refusal(&self, plan: &HostPlan, request: &Request) -> Refusal {
        let demand = plan.machine().demand(request);
        let never = plan.never_fits(self.begin, request.planned(), &demand);
        if never { Refusal::TooLarge } else { self.otherwise }
    }
}

/// Before when a job does not start.
pub(crate) fn earliest(request: &Request, now: Time) -> Time {
    request.terms.begin.map_or(now, |begin| begin.max(now))
}

#[cfg(test)]
mod tests {
    use miserly_core::{Resources, Terms};

    use super::*;

    #[track_caller]
    fn check(begin: Option<i64>, deadline: Option<i64>, horizon: i64, expect: (i64, i64, Refusal)) {
        let [begin, deadline] = [begin, deadline].map(|at| at.map(Time::from_ticks));
        let terms = Terms { begin, deadline, ..Terms::NONE };
        let plain = Request::new(1, Time::ZERO, Span::from_ticks(10), Resources::cpus(1));
        let bounds =
            Bounds::of(&Request { terms, ..plain }, Time::from_ticks(100), Span::from_ticks(horizon));
        let until = bounds.until(Span::from_ticks(10)).ticks();
        assert_eq!((bounds.begin.ticks(), until, bounds.otherwise), expect);
    }

    #[test]
    fn the_nearest_bound_counts() {
        check(None, None, 30, (100, 121, Refusal::NoWindow));
        check(Some(90), Some(120), 30, (100, 111, Refusal::Deadline));
        check(Some(115), Some(140), 30, (115, 121, Refusal::NoWindow));
        check(None, None, i64::MAX, (100, i64::MAX, Refusal::NoWindow));
    }
}
