//! The resources of a pool over a week.

use std::fmt;

use miserly_core::{Calendar, Host, Kind, Machine, Resources, Span, Time};

/// Minutes of a day and of a week.
pub(crate) const DAY: u32 = 24 * 60;
pub(crate) const WEEK: u32 = 7 * DAY;

/// The days of a week as files name them.
pub(crate) const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// The ticks of a minute.
const MINUTE: i64 = 60_000_000;

/// From the beginning of Unix time, a Thursday, to the first Monday.
const FIRST_MONDAY: Span = Span::from_ticks(4 * DAY as i64 * MINUTE);

/// The resources of a pool at each time of a week, the same every week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Week {
    /// The minutes that its clock is ahead of UTC.
    pub(crate) ahead: i32,
    /// The resources from each minute of the week on. The first is at the beginning of Monday; minutes rise.
    pub(crate) steps: Vec<(u32, Resources)>,
}

/// Returns the first instant from 0 on at which a Monday begins in UTC.
///
/// The clock shows 0 at `unix_start`, which counts from the beginning of Unix time.
pub fn monday(unix_start: Span) -> Time {
    let ticks = (FIRST_MONDAY - unix_start).ticks();
    Time::from_ticks(ticks.rem_euclid(i64::from(WEEK) * MINUTE))
}

impl Week {
    /// Returns the week with this number of GPUs at all times.
    #[must_use]
    pub(crate) fn with_gpus(mut self, gpus: u64) -> Week {
        for (_, amount) in &mut self.steps {
            *amount = amount.with(Kind::Gpus, gpus);
        }
        self
    }

    /// Returns the same amount at all times.
    pub fn constant(amount: Resources) -> Week {
        Week { ahead: 0, steps: vec![(0, amount)] }
    }

    /// Returns the calendar under a clock by which a Monday begins in UTC at `monday`.
    ///
    /// # Panics
    /// Never: the steps of a week are made in order, from its beginning.
    pub fn calendar(&self, monday: Time) -> Calendar {
        if let [(_, always)] = &self.steps[..] {
            return Calendar::constant(*always);
        }
        let span = |minutes: i64| Span::from_ticks(minutes * MINUTE);
        let steps = self.steps.iter().map(|&(minute, amount)| (span(minute.into()), amount)).collect();
        let origin = monday + span(-i64::from(self.ahead));
        let calendar = Calendar::repeating(origin, span(WEEK.into()), steps);
        calendar.expect("the steps of a week are made in order, from its beginning")
    }

    /// Returns the minutes that its clock is ahead of UTC.
    pub fn minutes_ahead(&self) -> i32 {
        self.ahead
    }

    /// Returns the resources from each time of the week on, such as `mon 08:00`. The first is the beginning of Monday.
    pub fn steps(&self) -> impl Iterator<Item = (String, Resources)> {
        self.steps.iter().map(|(minute, amount)| (Minute(*minute).to_string(), *amount))
    }

    /// Returns the pool as a machine of this name, under a clock by which a Monday begins in UTC at `monday`.
    pub fn machine(&self, name: &str, monday: Time) -> Machine {
        match &self.steps[..] {
            [(_, always)] => Machine::new(vec![Host { name: name.into(), capacity: *always }]),
            _ => Machine::pool(name.into(), self.calendar(monday)),
        }
    }

    /// Returns the resources in that minute of the week.
    pub(crate) fn at(&self, minute: u32) -> Resources {
        let after = self.steps.partition_point(|(from, _)| *from <= minute);
        self.steps[after.saturating_sub(1)].1
    }

    /// Returns the largest amount of each kind.
    pub fn most(&self) -> Resources {
        self.steps.iter().fold(Resources::NONE, |most, (_, amount)| most.most(amount))
    }

    /// Returns the smallest amount of each kind.
    pub fn least(&self) -> Resources {
        let least = |kind| self.steps.iter().map(|(_, amount)| amount.get(kind)).min().unwrap_or_default();
        Kind::ALL.into_iter().fold(Resources::NONE, |all, kind| all.with(kind, least(kind)))
    }
}

/// A minute of the week, shown as `mon 08:00`.
pub(crate) struct Minute(pub(crate) u32);

impl fmt::Display for Minute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (day, time) = (self.0 / DAY, self.0 % DAY);
        write!(f, "{} {:02}:{:02}", DAYS[(day % 7) as usize], time / 60, time % 60)
    }
}
