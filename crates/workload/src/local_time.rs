//! Local time: from the seconds of a log to the hours and days at its machine.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::swf::Header;

const DAY: i64 = 86_400;

/// 1970-01-01 was a Thursday; weeks begin on Monday.
const EPOCH_WEEKDAY: i64 = 3;

/// The clock by which the hours and days of a log count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Local time: `TimeZoneString`, with its summer time.
    Zone(String),
    /// Local time without summer time: `TimeZone`, seconds east of Greenwich.
    Offset(i64),
    /// The time of day is unknown: hours and days since second 0 of the log.
    #[default]
    SinceStart,
}

/// A conversion from the seconds of a log to local time.
pub(crate) enum LocalTime {
    Zone { start: i64, name: String, zone: TimeZone },
    Offset { start: i64, offset: i64 },
    SinceStart,
}

impl LocalTime {
    /// Returns the conversion for a header: by its named zone, else its offset, else none.
    pub(crate) fn of(header: &Header) -> LocalTime {
        let Some(start) = header.unix_start().filter(|&start| start >= 0) else {
            return LocalTime::SinceStart;
        };
        if let Some((name, zone)) = named_zone(header) {
            return LocalTime::Zone { start, name, zone };
        }
        match header.time_zone() {
            Some(offset) => LocalTime::Offset { start, offset },
            None => LocalTime::SinceStart,
        }
    }

    /// Returns the clock, as descriptions have it.
    pub(crate) fn clock(&self) -> Clock {
        match self {
            LocalTime::Zone { name, .. } => Clock::Zone(name.clone()),
            LocalTime::Offset { offset, .. } => Clock::Offset(*offset),
            LocalTime::SinceStart => Clock::SinceStart,
        }
    }

    /// Returns the seconds since the midnight of a Monday, for a second of the log.
    ///
    /// They count from the start of the log if the clock is unknown.
    pub(crate) fn since_monday(&self, submit: i64) -> i64 {
        let unix_monday = EPOCH_WEEKDAY * DAY;
        match self {
            LocalTime::Zone { start, zone, .. } => {
                let unix = start.saturating_add(submit);
                unix + offset_at(zone, unix) + unix_monday
            }
            LocalTime::Offset { start, offset } => {
                start.saturating_add(submit).saturating_add(*offset) + unix_monday
            }
            LocalTime::SinceStart => submit,
        }
    }
}

/// Returns the zone that `TimeZoneString` names, if it is a known one.
///
/// The zones are built in, so the hours are the same on every machine.
pub(crate) fn named_zone(header: &Header) -> Option<(String, TimeZone)> {
    let name = header.value("TimeZoneString")?;
    let zone = TimeZoneDatabase::bundled().get(name).ok()?;
    Some((name.to_owned(), zone))
}

/// Returns the seconds east of Greenwich at an instant; 0 outside the calendar.
pub(crate) fn offset_at(zone: &TimeZone, unix: i64) -> i64 {
    Timestamp::from_second(unix).map_or(0, |instant| i64::from(zone.to_offset(instant).seconds()))
}
