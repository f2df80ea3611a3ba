//! The steps of a replay.

use miserly_scene::whole_step;

use crate::Facts;

/// The most steps from the first instant to the last one.
const STEPS_MOST: i64 = 300;

impl Facts {
    /// Returns the step in which a replay moves through the known time, milliseconds: 300 steps at most.
    pub fn replay_step(&self) -> i64 {
        let (first, last) = self.range();
        whole_step(last.saturating_sub(first).saturating_add(STEPS_MOST - 1) / STEPS_MOST)
    }

    /// Returns the first instant of a replay: a multiple of the step on the clock, and not after the first known instant.
    pub fn replay_begin(&self) -> i64 {
        let (first, step) = (self.range().0, self.replay_step());
        let offset = self.clock.offset(first);
        first.saturating_sub(first.saturating_add(offset).rem_euclid(step))
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::{TimeZone, offset};
    use proptest::prelude::*;

    use miserly_scene::{DAY, HOUR, MINUTE, SECOND};

    use super::*;
    use crate::{Clock, Job};

    /// Returns the facts of jobs from `first` on.
    fn facts(first: i64, last: i64) -> Facts {
        Facts { now: last, ..Facts::of_jobs(1, [Job { submitted: first, ..Job::default() }]) }
    }

    #[track_caller]
    fn check(range: i64, expect: i64) {
        assert_eq!(facts(0, range).replay_step(), expect);
    }

    #[test]
    fn the_step_follows_the_range() {
        check(0, SECOND);
        check(5 * MINUTE, SECOND);
        check(5 * MINUTE + 1, 2 * SECOND);
        check(8 * HOUR, 2 * MINUTE);
        check(7 * DAY, HOUR);
        check(700 * DAY, 3 * DAY);
    }

    #[test]
    fn a_replay_begins_at_a_whole_step_of_the_clock() {
        // Half an hour after midnight in a zone of half an hour.
        let zone = TimeZone::fixed(offset(5).saturating_add(jiff::Span::new().minutes(30)));
        let facts = Facts { clock: Clock::Wall(zone), ..facts(19 * HOUR, 19 * HOUR + 7 * DAY) };
        assert_eq!((facts.replay_step(), facts.replay_begin()), (HOUR, 18 * HOUR + 30 * MINUTE));
    }

    proptest! {
        #[test]
        fn there_are_never_many_steps(first in -DAY..DAY, range in 0..20_000 * DAY) {
            let facts = facts(first, first + range);
            let (step, begin) = (facts.replay_step(), facts.replay_begin());
            prop_assert!(step >= SECOND && (step < MINUTE || step % MINUTE == 0));
            prop_assert!(begin <= first && first - begin < step);
            prop_assert!((facts.now - begin) / step <= STEPS_MOST);
        }
    }
}
