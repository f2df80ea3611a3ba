//! The capacity of a pool over time.

use crate::{Resources, Span, Time};

/// The capacity of a pool as a periodic function of time, known ahead.
///
/// The size of a pool can vary over time (Miser §3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// The beginning of one period. Periods precede it, too.
    origin: Time,
    /// The length of a period.
    period: Span,
    /// The amounts and their offsets in the period. The first offset is zero, and the offsets rise.
    steps: Vec<(Span, Resources)>,
}

impl Calendar {
    /// Returns a calendar with the same amount at all times.
    pub fn constant(amount: Resources) -> Calendar {
        Calendar { origin: Time::ZERO, period: Span::MAX, steps: vec![(Span::ZERO, amount)] }
    }

    /// Returns a calendar of repeating steps.
    ///
    /// Returns `None` unless the first offset is zero, the offsets rise, and all are within the
    /// period.
    pub fn repeating(origin: Time, period: Span, steps: Vec<(Span, Resources)>) -> Option<Calendar> {
        let first = steps.first().is_some_and(|(offset, _)| *offset == Span::ZERO);
        let rising = steps.is_sorted_by(|(one, _), (next, _)| one < next);
        let within = steps.last().is_some_and(|(offset, _)| *offset < period);
        (first && rising && within).then_some(Calendar { origin, period, steps })
    }

    /// Returns whether the amount ever changes.
    pub fn varies(&self) -> bool {
        self.steps.len() > 1
    }

    /// Returns the length of a period.
    pub fn period(&self) -> Span {
        self.period
    }

    /// Returns the amount at that time.
    pub fn at(&self, time: Time) -> Resources {
        self.steps[self.step(time).1].1
    }

    /// Returns the next change after that time and the new amount, or `None` if the amount is
    /// constant.
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

    /// Returns the maximum of each kind over all time.
    pub fn most(&self) -> Resources {
        self.steps.iter().fold(Resources::NONE, |most, (_, amount)| most.most(amount))
    }

    /// Returns the calendar with each amount changed by a function.
    #[must_use]
    pub fn map(&self, mut change: impl FnMut(Resources) -> Resources) -> Calendar {
        let steps = self.steps.iter().map(|(offset, amount)| (*offset, change(*amount)));
        Calendar { steps: steps.collect(), ..*self }
    }

    /// Returns all steps of one period, from the origin on.
    pub fn steps(&self) -> impl Iterator<Item = (Time, Resources)> {
        self.steps.iter().map(|(offset, amount)| (self.origin + *offset, *amount))
    }

    /// Returns the beginning of the period that contains the time, and the step.
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
