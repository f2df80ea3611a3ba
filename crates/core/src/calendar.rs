//! How much a pool has, over time.

use crate::{Resources, Span, Time};

/// How much a pool has as a function of time, known ahead: the same again and again (Miser §3.1: the size of a pool can
/// vary over time).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// When some period begins; periods were before it, too.
    origin: Time,
    /// How long until all is as it was.
    period: Span,
    /// From when in the period how much; the first is at its beginning, and the offsets rise.
    steps: Vec<(Span, Resources)>,
}

impl Calendar {
    /// The same amount at all times.
    pub fn constant(amount: Resources) -> Calendar {
        Calendar { origin: Time::ZERO, period: Span::MAX, steps: vec![(Span::ZERO, amount)] }
    }

    /// Steps that repeat. `None` unless the first is at the beginning of the period, the offsets rise, and all are within it.
    pub fn repeating(origin: Time, period: Span, steps: Vec<(Span, Resources)>) -> Option<Calendar> {
        let first = steps.first().is_some_and(|(offset, _)| *offset == Span::ZERO);
        let rising = steps.is_sorted_by(|(one, _), (next, _)| one < next);
        let within = steps.last().is_some_and(|(offset, _)| *offset < period);
        (first && rising && within).then_some(Calendar { origin, period, steps })
    }

    /// Whether it is ever different.
    pub fn varies(&self) -> bool {
        self.steps.len() > 1
    }

    /// How long until all is as it was.
    pub fn period(&self) -> Span {
        self.period
    }

    /// How much there is at that time.
    pub fn at(&self, time: Time) -> Resources {
        self.steps[self.step(time).1].1
    }

    /// When it changes next after that time, and to how much; `None` if it never does.
    pub fn next(&self, time: Time) -> Option<(Time, Resources)> {
        if !self.varies() {
            return None;
        }
        let (begin, step) = self.step(time);
        match self.steps.get(step + 1) {
            Some((offset, amount)) => Some((begin + *offset, *amount)),
            None => Some((begin + self.period, self.steps[0].1)),
        }
    }

    /// The most that there ever is of each kind.
    pub fn most(&self) -> Resources {
        self.steps.iter().fold(Resources::NONE, |most, (_, amount)| most.most(amount))
    }

    /// All steps of one period, from the origin on.
    pub fn steps(&self) -> impl Iterator<Item = (Time, Resources)> {
        self.steps.iter().map(|(offset, amount)| (self.origin + *offset, *amount))
    }

    /// The beginning of the period in which the time is, and the step.
    fn step(&self, time: Time) -> (Time, usize) {
        let offset = (time - self.origin).ticks().rem_euclid(self.period.ticks());
        let begin = Time::from_ticks(time.ticks().saturating_sub(offset));
        let after = self.steps.partition_point(|(from, _)| from.ticks() <= offset);
        (begin, after.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Procs;

    #[test]
    fn it_repeats_both_ways() {
        let step = |offset, cpus: u64| (Span::from_ticks(offset), Resources::cpus(cpus));
        let calendar =
            Calendar::repeating(Time::from_ticks(100), Span::from_ticks(24), vec![step(0, 8), step(9, 2)])
                .unwrap();
        let at = |ticks| calendar.at(Time::from_ticks(ticks)).cpus_count();
        assert_eq!([100, 108, 109, 123, 124, 99, 84, 85].map(at), [8, 8, 2, 2, 8, 2, 8, 2].map(Procs::new));
        let next = |ticks| calendar.next(Time::from_ticks(ticks)).map(|(at, _)| at.ticks());
        assert_eq!([100, 109, 76, 60].map(next), [Some(109), Some(124), Some(85), Some(61)]);
        assert_eq!(Calendar::constant(Resources::cpus(1)).next(Time::ZERO), None);
        assert_eq!(calendar.most().cpus_count(), Procs::new(8));
    }

    #[test]
    fn steps_that_make_no_calendar() {
        let of = |offsets: &[i64]| {
            let steps = offsets.iter().map(|at| (Span::from_ticks(*at), Resources::NONE)).collect();
            Calendar::repeating(Time::ZERO, Span::from_ticks(10), steps)
        };
        assert!([&[][..], &[1], &[0, 10], &[0, 5, 5]].into_iter().all(|offsets| of(offsets).is_none()));
        assert!(of(&[0, 9]).is_some());
    }
}
