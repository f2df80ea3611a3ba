//! The bounds of a kept reservation: the constraints of its job, and the horizon.

use miserly_core::{Refusal, Request, Span, Time};

/// The bounds of the reservation of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Its earliest start.
    pub(super) begin: Time,
    /// Its latest end.
    end: Time,
    /// The reason of the refusal if there is no place by then.
    pub(super) refusal: Refusal,
}

impl Bounds {
    /// Returns the bounds of a job that gets its reservation now.
    pub(super) fn new(request: &Request, now: Time, horizon: Span) -> Bounds {
        let limit = now + horizon;
        let deadline = request.constraints.deadline.filter(|deadline| *deadline <= limit);
        Bounds {
            begin: request.constraints.begin.map_or(now, |begin| begin.max(now)),
            end: deadline.unwrap_or(limit),
            refusal: if deadline.is_some() { Refusal::Deadline } else { Refusal::NoWindow },
        }
    }

    /// Returns the time before which a reservation of this length has to begin.
    pub(super) fn until(&self, span: Span) -> Time {
        // No reservation ends later than the end of time.
        if self.end == Time::MAX { Time::MAX } else { self.end + (Span::TICK - span) }
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{Constraints, Resources};

    use super::*;

    #[track_caller]
    fn check(begin: Option<i64>, deadline: Option<i64>, horizon: i64, expect: (i64, i64, Refusal)) {
        let [begin, deadline] = [begin, deadline].map(|at| at.map(Time::from_ticks));
        let constraints = Constraints { begin, deadline, ..Constraints::NONE };
        let plain = Request::new(1, Time::ZERO, Span::from_ticks(10), Resources::cpus(1));
        let bounds =
            Bounds::new(&Request { constraints, ..plain }, Time::from_ticks(100), Span::from_ticks(horizon));
        let until = bounds.until(Span::from_ticks(10)).ticks();
        assert_eq!((bounds.begin.ticks(), until, bounds.refusal), expect);
    }

    #[test]
    fn the_nearest_bound_counts() {
        check(None, None, 30, (100, 121, Refusal::NoWindow));
        check(Some(90), Some(120), 30, (100, 111, Refusal::Deadline));
        check(Some(115), Some(140), 30, (115, 121, Refusal::NoWindow));
        check(None, None, i64::MAX, (100, i64::MAX, Refusal::NoWindow));
    }
}
