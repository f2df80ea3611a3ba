//! How much a pool has, over a week.

use std::fmt;

use miserly_core::{Calendar, Resources, Span, Time};

/// Minutes of a day and of a week.
pub(crate) const DAY: u32 = 24 * 60;
pub(crate) const WEEK: u32 = 7 * DAY;

/// The days of a week as files name them.
pub(crate) const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// The ticks of a minute.
const MINUTE: i64 = 60_000_000;

/// From the beginning of Unix time, a Thursday, to the first Monday, in seconds.
const FIRST_MONDAY: i64 = 4 * 86_400;

/// How much a pool has at each time of a week, the same every week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Week {
    /// How many minutes its clock is ahead of UTC.
    pub(crate) ahead: i32,
    /// From which minute of the week how much; the first is at the beginning of Monday, and the minutes rise.
    pub(crate) steps: Vec<(u32, Resources)>,
}

/// An instant at which a Monday begins in UTC, where the clock of a run shows 0 at `unix_start` seconds of Unix time.
pub fn monday(unix_start: i64) -> Time {
    let secs = FIRST_MONDAY.saturating_sub(unix_start);
    Time::from_secs(secs.rem_euclid(i64::from(WEEK) * 60)).unwrap_or(Time::ZERO)
}

impl Week {
    /// The same amount at all times.
    pub fn constant(amount: Resources) -> Week {
        Week { ahead: 0, steps: vec![(0, amount)] }
    }

    /// As a calendar under a clock by which a Monday begins in UTC at `monday`.
    ///
    /// # Panics
    /// Never: the steps of a week are made in order, from its beginning.
    pub fn calendar(&self, monday: Time) -> Calendar {
        let span = |minutes: i64| Span::from_ticks(minutes * MINUTE);
        let steps = self.steps.iter().map(|&(minute, amount)| (span(minute.into()), amount)).collect();
        let origin = monday + span(-i64::from(self.ahead));
        let calendar = Calendar::repeating(origin, span(WEEK.into()), steps);
        calendar.expect("the steps of a week are made in order, from its beginning")
    }

    /// What there is in that minute of the week.
    pub(crate) fn at(&self, minute: u32) -> Resources {
        let after = self.steps.partition_point(|(from, _)| *from <= minute);
        self.steps[after.saturating_sub(1)].1
    }

    /// The most that there ever is of each kind.
    pub fn most(&self) -> Resources {
        self.steps.iter().fold(Resources::NONE, |most, (_, amount)| most.most(amount))
    }
}

/// A minute of the week, as people name it.
pub(crate) struct Minute(pub(crate) u32);

impl fmt::Display for Minute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (day, time) = (self.0 / DAY, self.0 % DAY);
        write!(f, "{} {:02}:{:02}", DAYS[(day % 7) as usize], time / 60, time % 60)
    }
}
