//! Periods of the week by rate of arrivals.

use miserly_core::named_enum;

const DAY: i64 = 86_400;

const HOUR: i64 = 3_600;

named_enum! {
    /// A time of day with a roughly constant rate of arrivals (section 3, Figure 1).
    ///
    /// The paper mentions three periods without sharp bounds and prints no numbers of the figure.
    /// The hours are decided here. The busiest period is the first.
    pub enum Period {
        /// 10 to 18 h.
        Peak "peak",
        /// 8 to 10 h and 18 to 24 h.
        Intermediate "intermediate",
        /// 0 to 8 h.
        Low "low",
    }
}

impl Period {
    /// Returns the period of an hour of the day.
    const fn of_hour(hour: i64) -> Period {
        match hour {
            10..18 => Period::Peak,
            8..24 => Period::Intermediate,
            _ => Period::Low,
        }
    }
}

/// A period of weekdays or of weekends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WeekSlot {
    /// Whether the day is Saturday or Sunday.
    pub weekend: bool,
    /// Time of day.
    pub period: Period,
}

impl WeekSlot {
    /// Number of slots.
    pub const COUNT: usize = 2 * Period::ALL.len();

    /// All slots, weekdays first, busiest first.
    pub const ALL: [WeekSlot; WeekSlot::COUNT] = {
        let mut all = [WeekSlot { weekend: false, period: Period::Peak }; WeekSlot::COUNT];
        let mut index = 0;
        while index < WeekSlot::COUNT {
            let (weekend, period) = (index >= Period::ALL.len(), index % Period::ALL.len());
            all[index] = WeekSlot { weekend, period: Period::ALL[period] };
            index += 1;
        }
        all
    };

    /// The slot of the paper's statements about weekday peaks.
    pub const WEEKDAY_PEAK: WeekSlot = WeekSlot { weekend: false, period: Period::Peak };

    /// Returns the slot of an instant in seconds since midnight of a Monday, local time.
    pub const fn at(since_monday: i64) -> WeekSlot {
        let (day, second) = (since_monday.div_euclid(DAY).rem_euclid(7), since_monday.rem_euclid(DAY));
        WeekSlot { weekend: day >= 5, period: Period::of_hour(second / HOUR) }
    }

    /// Returns the position in [`WeekSlot::ALL`].
    pub const fn index(self) -> usize {
        self.weekend as usize * Period::ALL.len() + self.period as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(day: i64, hour: i64, weekend: bool, period: Period) {
        assert_eq!(WeekSlot::at(day * DAY + hour * HOUR), WeekSlot { weekend, period });
        assert_eq!(WeekSlot::at(day * DAY + hour * HOUR + HOUR - 1), WeekSlot { weekend, period });
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
        assert!((0..WeekSlot::COUNT).eq(WeekSlot::ALL.into_iter().map(WeekSlot::index)));
        assert_eq!(WeekSlot::ALL[0], WeekSlot::WEEKDAY_PEAK);
    }
}
