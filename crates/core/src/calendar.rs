//! The capacity of a pool over time.

use crate::{Resources, Span, Time};

/// The capacity of a pool as a periodic function of time with exceptions, known ahead.
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
    /// The times at which the amount is another one. They rise, and do not overlap.
    exceptions: Vec<Exception>,
}

/// Another amount in a part of a calendar, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The beginning.
    pub from: Time,
    /// The end, after the beginning.
    pub to: Time,
    /// The amount from the beginning until before the end.
    pub amount: Resources,
}

impl Calendar {
    /// Returns a calendar with the same amount at all times.
    pub fn constant(amount: Resources) -> Calendar {
        let steps = vec![(Span::ZERO, amount)];
        Calendar { origin: Time::ZERO, period: Span::MAX, steps, exceptions: vec![] }
    }

    /// Returns a calendar of repeating steps.
    ///
    /// Returns `None` unless the first offset is zero, the offsets rise, and all are within the
    /// period.
    pub fn repeating(origin: Time, period: Span, steps: Vec<(Span, Resources)>) -> Option<Calendar> {
        let first = steps.first().is_some_and(|(offset, _)| *offset == Span::ZERO);
        let rising = steps.is_sorted_by(|(one, _), (next, _)| one < next);
        let within = steps.last().is_some_and(|(offset, _)| *offset < period);
        (first && rising && within).then_some(Calendar { origin, period, steps, exceptions: vec![] })
    }

    /// Returns the calendar with these exceptions in place of its own.
    ///
    /// Returns `None` unless each ends after its beginning and before the next one begins.
    #[must_use]
    pub fn with_exceptions(self, exceptions: Vec<Exception>) -> Option<Calendar> {
        let some = exceptions.iter().all(|exception| exception.from < exception.to);
        let apart = exceptions.is_sorted_by(|one, next| one.to <= next.from);
        (some && apart).then_some(Calendar { exceptions, ..self })
    }

    /// Returns the calendar with each amount of an interval changed by a function, once.
    #[must_use]
    pub fn changed_within(
        mut self,
        from: Time,
        to: Time,
        mut change: impl FnMut(Resources) -> Resources,
    ) -> Calendar {
        let mut pieces = vec![];
        let mut at = from;
        while at < to {
            let end = self.next(at).map_or(to, |(next, _)| next.min(to));
            pieces.push(Exception { from: at, to: end, amount: change(self.at(at)) });
            at = end;
        }
        let rests = std::mem::take(&mut self.exceptions).into_iter().flat_map(|exception| {
            let before = Exception { to: exception.to.min(from), ..exception };
            let after = Exception { from: exception.from.max(to), ..exception };
            [before, after].into_iter().filter(|rest| rest.from < rest.to)
        });
        self.exceptions = rests.chain(pieces).collect();
        self.exceptions.sort_unstable_by_key(|exception| exception.from);
        self
    }

    /// Returns the amount at that time without regard to exceptions.
    pub fn regular_at(&self, time: Time) -> Resources {
        self.steps[self.step(time).1].1
    }

    /// Returns the calendar without exceptions.
    #[must_use]
    pub fn without_exceptions(self) -> Calendar {
        Calendar { exceptions: vec![], ..self }
    }

    /// Returns the exceptions, in order.
    pub fn exceptions(&self) -> &[Exception] {
        &self.exceptions
    }

    /// Returns whether the amount ever changes.
    pub fn varies(&self) -> bool {
        self.repeats() || !self.exceptions.is_empty()
    }

    /// Returns whether the amount changes in each period.
    pub fn repeats(&self) -> bool {
        self.steps.len() > 1
    }

    /// Returns the length of a period.
    pub fn period(&self) -> Span {
        self.period
    }

    /// Returns the time from which on the calendar has no exceptions.
    pub fn regular_from(&self) -> Time {
        self.exceptions.last().map_or(Time::from_ticks(i64::MIN), |last| last.to)
    }

    /// Returns the amount at that time.
    pub fn at(&self, time: Time) -> Resources {
        match self.exception(time) {
            Ok(exception) => exception.amount,
            Err(_) => self.regular_at(time),
        }
    }

    /// Returns the next change after that time and the new amount, or `None` if the amount stays.
    pub fn next(&self, time: Time) -> Option<(Time, Resources)> {
        let change = match self.exception(time) {
            Ok(exception) => Some(exception.to),
            Err(next) => {
                let next = self.exceptions.get(next).map(|exception| exception.from);
                self.next_step(time).into_iter().chain(next).min()
            }
        };
        change.map(|at| (at, self.at(at)))
    }

    /// Returns the instants of all changes after that time, in order. A calendar that repeats has no last one.
    pub fn changes_after(&self, time: Time) -> impl Iterator<Item = Time> + '_ {
        let next = |at: Time| self.next(at).map(|(at, _)| at);
        std::iter::successors(next(time), move |at| next(*at))
    }

    /// Returns the maximum of each kind over all time.
    pub fn most(&self) -> Resources {
        let steps = self.steps.iter().map(|(_, amount)| amount);
        let exceptions = self.exceptions.iter().map(|exception| &exception.amount);
        steps.chain(exceptions).fold(Resources::NONE, |most, amount| most.most(amount))
    }

    /// Returns the calendar with each amount changed by a function.
    #[must_use]
    pub fn map(&self, mut change: impl FnMut(Resources) -> Resources) -> Calendar {
        let mut changed = self.clone();
        changed.steps.iter_mut().for_each(|(_, amount)| *amount = change(*amount));
        changed.exceptions.iter_mut().for_each(|exception| exception.amount = change(exception.amount));
        changed
    }

    /// Returns all steps of one period, from the origin on.
    pub fn steps(&self) -> impl Iterator<Item = (Time, Resources)> {
        self.steps.iter().map(|(offset, amount)| (self.origin + *offset, *amount))
    }

    /// Returns the exception at that time, or the position of the next one.
    fn exception(&self, time: Time) -> Result<&Exception, usize> {
        let next = self.exceptions.partition_point(|exception| exception.to <= time);
        self.exceptions.get(next).filter(|exception| exception.from <= time).ok_or(next)
    }

    /// Returns the next step after that time, without regard to exceptions.
    fn next_step(&self, time: Time) -> Option<Time> {
        if !self.repeats() {
            return None;
        }
        let (begin, step) = self.step(time);
        Some(self.steps.get(step + 1).map_or(begin + self.period, |(offset, _)| begin + *offset))
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
    fn exceptions_hold_once() {
        let at = Time::from_ticks;
        let step = |offset, cpus: u64| (Span::from_ticks(offset), Resources::cpus(cpus));
        let calendar =
            Calendar::repeating(at(0), Span::from_ticks(24), vec![step(0, 8), step(9, 2)]).unwrap();
        let less = |amount: Resources| amount.with_cpus(amount.cpus_count() - 1.into());
        // From 5 to 30 over both steps and the next period, and again within it.
        let calendar = calendar.changed_within(at(5), at(30), less).changed_within(at(10), at(25), less);
        let amounts = |times: &[i64]| {
            times.iter().map(|time| calendar.at(at(*time)).cpus_count().get()).collect::<Vec<_>>()
        };
        assert_eq!(amounts(&[4, 5, 9, 10, 23, 24, 25, 29, 30, 33, 48]), [8, 7, 1, 0, 0, 6, 7, 7, 8, 2, 8]);
        let changes: Vec<i64> = calendar.changes_after(at(0)).map(Time::ticks).take(8).collect();
        assert_eq!(changes, [5, 9, 10, 24, 25, 30, 33, 48]);
        assert_eq!((calendar.regular_from(), calendar.most().cpus_count()), (at(30), Procs::new(8)));
        let constant = Calendar::constant(Resources::NONE);
        let once = constant.changed_within(at(3), at(4), |_| Resources::cpus(5));
        assert_eq!(once.next(at(3)), Some((at(4), Resources::NONE)));
        assert_eq!((once.next(at(4)), once.varies(), once.repeats()), (None, true, false));
    }

    #[test]
    fn exceptions_that_make_no_calendar() {
        let of = |times: &[(i64, i64)]| {
            let exception = |(from, to): &(i64, i64)| Exception {
                from: Time::from_ticks(*from),
                to: Time::from_ticks(*to),
                amount: Resources::NONE,
            };
            Calendar::constant(Resources::NONE).with_exceptions(times.iter().map(exception).collect())
        };
        assert!([&[(1, 1)][..], &[(2, 1)], &[(1, 3), (2, 4)]].into_iter().all(|times| of(times).is_none()));
        assert!(of(&[(1, 2), (2, 4)]).is_some());
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
