//! Dates: from the seconds of a log to the calendar at its machine.

use std::ops::Range;

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

use crate::local_time::{named_zone, offset_at};
use crate::swf::Header;
use crate::trace::Survey;

/// First submissions that can only be seconds of the Unix epoch: from 1990 to 2100. As seconds of a log they would be
/// twenty years after its start.
const EPOCH_SUBMISSIONS: Range<i64> = 631_152_000..4_102_444_800;

/// A conversion from the seconds of a log to dates at its machine.
///
/// # Example
/// ```
/// use miserly_workload::LogDates;
/// use miserly_workload::swf::Header;
///
/// let mut header = Header::default();
/// header.push("; UnixStartTime: 843480031");
/// header.push("; TimeZoneString: Europe/Stockholm");
/// let dates = LogDates::from_header(&header).unwrap();
/// assert_eq!(dates.minute(3600).unwrap(), "1996-09-23 15:00");
/// assert_eq!(dates.zone(), "Europe/Stockholm");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDates {
    start: i64,
    zone: TimeZone,
    name: String,
}

impl LogDates {
    /// Returns the conversion for a header: by its named zone, else its offset, else UTC.
    ///
    /// Returns `None` without `UnixStartTime`. 0 is the value of generated logs, which have no dates.
    pub fn from_header(header: &Header) -> Option<LogDates> {
        let start = header.unix_start().filter(|&start| start > 0)?;
        Some(LogDates::starting(start, header))
    }

    /// Returns the conversion for a log: by its header, or if that has no start, for submissions that are seconds of the Unix
    /// epoch themselves.
    ///
    /// Returns `None` without dates, as in a generated log.
    pub fn of(survey: &Survey) -> Option<LogDates> {
        let header = &survey.header;
        LogDates::from_header(header).or_else(|| {
            let is_epoch = survey.first_submit.is_some_and(|first| EPOCH_SUBMISSIONS.contains(&first));
            let has_start = header.unix_start().is_some_and(|start| start != 0);
            (is_epoch && !has_start).then(|| LogDates::starting(0, header))
        })
    }

    fn starting(start: i64, header: &Header) -> LogDates {
        let (name, zone) = named_zone(header).or_else(|| fixed_zone(header)).unwrap_or_else(utc);
        LogDates { start, zone, name }
    }

    /// Returns the start of the log, seconds since 1970.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// Returns the name of the zone: that of the header, `UTC+01:00`, or `UTC`.
    pub fn zone(&self) -> &str {
        &self.name
    }

    /// Returns the time zone.
    pub fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Returns the date and the minute of a second of the log, such as `2000-03-14 09:12`.
    ///
    /// Returns `None` outside the calendar.
    pub fn minute(&self, second: i64) -> Option<String> {
        let local = Timestamp::from_second(self.local(second)?).ok()?;
        Some(local.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M").to_string())
    }

    /// Returns a second of the log as the seconds since 1970-01-01 00:00, both by the local clock.
    ///
    /// Multiples of 86400 are midnights. The clock is that of the machine, with its summer time.
    pub fn local(&self, second: i64) -> Option<i64> {
        let unix = self.start.checked_add(second)?;
        unix.checked_add(offset_at(&self.zone, unix))
    }
}

/// Returns the zone without summer time that the header gives as an offset.
fn fixed_zone(header: &Header) -> Option<(String, TimeZone)> {
    let seconds = header.time_zone().filter(|&seconds| seconds != 0)?;
    let offset = Offset::from_seconds(i32::try_from(seconds).ok()?).ok()?;
    let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
    Some((format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60), TimeZone::fixed(offset)))
}

fn utc() -> (String, TimeZone) {
    ("UTC".to_owned(), TimeZone::UTC)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dates_header(comments: &str) -> Header {
        let mut header = Header::default();
        comments.lines().for_each(|comment| header.push(comment));
        header
    }

    fn dates(comments: &str) -> Option<LogDates> {
        LogDates::from_header(&dates_header(comments))
    }

    #[track_caller]
    fn check(comments: &str, second: i64, expect: (&str, &str)) {
        let dates = dates(comments).unwrap();
        assert_eq!((dates.minute(second).as_deref(), dates.zone()), (Some(expect.0), expect.1));
    }

    #[test]
    fn the_zone_of_the_header() {
        let start = "; UnixStartTime: 843480031";
        check(start, 0, ("1996-09-23 12:00", "UTC"));
        check(&format!("{start}\n; TimeZone: 0"), 0, ("1996-09-23 12:00", "UTC"));
        check(&format!("{start}\n; TimeZone: 3600"), 0, ("1996-09-23 13:00", "UTC+01:00"));
        check(&format!("{start}\n; TimeZone: -12600"), 0, ("1996-09-23 08:30", "UTC-03:30"));
        let stockholm = format!("{start}\n; TimeZone: 3600\n; TimeZoneString: Europe/Stockholm");
        check(&stockholm, 0, ("1996-09-23 14:00", "Europe/Stockholm"));
        let unheard_of = format!("{start}\n; TimeZone: 7200\n; TimeZoneString: Mars/Olympus");
        check(&unheard_of, 0, ("1996-09-23 14:00", "UTC+02:00"));
    }

    #[test]
    fn summer_time_ends() {
        let stockholm = dates("; UnixStartTime: 843480031\n; TimeZoneString: Europe/Stockholm").unwrap();
        // 1996-10-27 03:00 of summer time is 02:00 of winter time.
        let end_of_summer = 846_378_000 - 843_480_031;
        assert_eq!(stockholm.minute(end_of_summer - 1).as_deref(), Some("1996-10-27 02:59"));
        assert_eq!(stockholm.minute(end_of_summer).as_deref(), Some("1996-10-27 02:00"));
        assert_eq!(stockholm.local(end_of_summer - 1), Some(846_378_000 - 1 + 7200));
        assert_eq!(stockholm.local(end_of_summer), Some(846_378_000 + 3600));
    }

    #[test]
    fn submissions_of_the_epoch_are_dates() {
        let first = |comments: &str, first_submit| {
            let header = dates_header(comments);
            let survey = Survey { header, first_submit: Some(first_submit), ..Survey::default() };
            LogDates::of(&survey).and_then(|dates| dates.minute(first_submit))
        };
        let noon = Some("1996-09-23 12:00".to_owned());
        assert_eq!(first("; UnixStartTime: 0", 843_480_031), noon);
        assert_eq!(first("; MaxProcs: 4", 843_480_031), noon);
        assert_eq!(first("; UnixStartTime: 843480031", 0), noon);
        assert_eq!(first("; UnixStartTime: 0", 86_400), None);
    }

    #[test]
    fn no_date_without_a_start_or_outside_the_calendar() {
        for without in ["; MaxProcs: 8", "; UnixStartTime: 0", "; UnixStartTime: -1", "; UnixStartTime: x"] {
            assert_eq!(dates(without), None, "{without}");
        }
        let utc = dates("; UnixStartTime: 843480031").unwrap();
        assert_eq!((utc.minute(i64::MAX), utc.minute(i64::MAX / 1000)), (None, None));
        assert_eq!(utc.minute(-843_480_031).as_deref(), Some("1970-01-01 00:00"));
    }
}
