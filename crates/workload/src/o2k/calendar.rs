//! When in the week a job is submitted.

const DAY: i64 = 86_400;

const HOUR: i64 = 3_600;

/// A time of the day of about the same rate of arrivals (section 3, Figure 1).
///
/// The figure's numbers are not in the text of the paper, which says only that there are three periods, not sharply
/// defined. The hours are decided here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Period {
    /// 10 to 18 h.
    Peak,
    /// 8 to 10 h and 18 to 24 h.
    Intermediate,
    /// 0 to 8 h.
    Low,
}

impl Period {
    /// Every period, from the busiest.
    pub const ALL: [Period; 3] = [Period::Peak, Period::Intermediate, Period::Low];

    /// The period of an hour of the day.
    const fn of_hour(hour: i64) -> Period {
        match hour {
            10..18 => Period::Peak,
            8..24 => Period::Intermediate,
            _ => Period::Low,
        }
    }

    /// Its name: `peak`, `intermediate`, `low`.
    pub const fn name(self) -> &'static str {
        match self {
            Period::Peak => "peak",
            Period::Intermediate => "intermediate",
            Period::Low => "low",
        }
    }
}

/// A period of weekdays or of weekends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// Whether it is Saturday or Sunday.
    pub weekend: bool,
    /// The time of the day.
    pub period: Period,
}

impl Slot {
    /// How many slots there are.
    pub const COUNT: usize = 2 * Period::ALL.len();

    /// Every slot: weekdays first, the busiest first.
    pub const ALL: [Slot; Slot::COUNT] = {
        let mut all = [Slot { weekend: false, period: Period::Peak }; Slot::COUNT];
        let mut index = 0;
        while index < Slot::COUNT {
            let (weekend, period) = (index >= Period::ALL.len(), index % Period::ALL.len());
            all[index] = Slot { weekend, period: Period::ALL[period] };
            index += 1;
        }
        all
    };

    /// The slot of the statements that the paper makes of weekday peaks.
    pub const WEEKDAY_PEAK: Slot = Slot { weekend: false, period: Period::Peak };

    /// The slot of an instant, in seconds since some Monday's midnight, local time.
    pub const fn of(since_monday: i64) -> Slot {
        let (day, second) = (since_monday.div_euclid(DAY).rem_euclid(7), since_monday.rem_euclid(DAY));
        Slot { weekend: day >= 5, period: Period::of_hour(second / HOUR) }
    }

    /// The place in [`Slot::ALL`].
    pub const fn index(self) -> usize {
        self.weekend as usize * Period::ALL.len() + self.period as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(day: i64, hour: i64, weekend: bool, period: Period) {
        assert_eq!(Slot::of(day * DAY + hour * HOUR), Slot { weekend, period });
        assert_eq!(Slot::of(day * DAY + hour * HOUR + HOUR - 1), Slot { weekend, period });
    }

    #[test]
    fn the_hours_of_a_week() {
        check(0, 0, false, Period::Low);
        check(0, 7, false, Period::Low);
        check(0, 8, false, Period::Intermediate);
        check(0, 10, false, Period::Peak);
        check(4, 17, false, Period::Peak);
        check(4, 23, false, Period::Intermediate);
        check(5, 0, true, Period::Low);
        check(6, 12, true, Period::Peak);
        check(7, 12, false, Period::Peak);
        check(-1, 12, true, Period::Peak);
    }

    #[test]
    fn slots_know_their_place() {
        assert!((0..Slot::COUNT).eq(Slot::ALL.into_iter().map(Slot::index)));
        assert_eq!(Slot::ALL[0], Slot::WEEKDAY_PEAK);
    }
}
