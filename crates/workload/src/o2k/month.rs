//! The six months of the paper's logs.

use std::fmt;
use std::str::FromStr;

/// A month of the paper's logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Month {
    /// October 1999.
    October,
    /// November 1999.
    November,
    /// December 1999, with high load.
    December,
    /// January 2000.
    January,
    /// February 2000, with high load.
    February,
    /// March 2000.
    March,
}

/// An error for a name that is none of the six months.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no month {name:?} in the paper; there are {}", Month::ALL.map(Month::name).join(", "))]
pub struct NoSuchMonth {
    /// The name.
    pub name: String,
}

/// Midnight of the first day of each month and of April 1, in seconds of the Unix epoch.
///
/// Midnight is local. Summer time ended on October 31, which makes that month an hour longer.
const STARTS: [i64; 7] =
    [938_754_000, 941_436_000, 944_028_000, 946_706_400, 949_384_800, 951_890_400, 954_568_800];

impl Month {
    /// All variants in order.
    pub const ALL: [Month; 6] =
        [Month::October, Month::November, Month::December, Month::January, Month::February, Month::March];

    /// Returns the name, such as `1999-10`.
    pub const fn name(self) -> &'static str {
        ["1999-10", "1999-11", "1999-12", "2000-01", "2000-02", "2000-03"][self as usize]
    }

    /// Returns the begin in seconds of the Unix epoch.
    pub const fn unix_start(self) -> i64 {
        STARTS[self as usize]
    }

    /// Returns the length in seconds.
    pub const fn seconds(self) -> u64 {
        STARTS[self as usize + 1].abs_diff(STARTS[self as usize])
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Month {
    type Err = NoSuchMonth;

    fn from_str(text: &str) -> Result<Month, NoSuchMonth> {
        Month::ALL
            .into_iter()
            .find(|month| month.name() == text)
            .ok_or_else(|| NoSuchMonth { name: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;
    use jiff::tz::TimeZoneDatabase;

    use super::*;
    use crate::o2k::TIME_ZONE;

    #[test]
    fn months_begin_at_midnight_where_the_machine_stands() {
        let zone = TimeZoneDatabase::bundled().get(TIME_ZONE).unwrap();
        let names = Month::ALL.map(Month::name).into_iter().chain(["2000-04"]);
        for (name, start) in names.zip(STARTS) {
            let first: Date = format!("{name}-01").parse().unwrap();
            assert_eq!(first.to_zoned(zone.clone()).unwrap().timestamp().as_second(), start, "{name}");
        }
    }

    #[test]
    fn months_are_told_by_name() {
        assert!(Month::ALL.into_iter().all(|month| month.name().parse() == Ok(month)));
        let error = "1999-9".parse::<Month>().unwrap_err().to_string();
        assert!(error.starts_with("no month \"1999-9\" in the paper; there are 1999-10, "), "{error}");
    }
}
