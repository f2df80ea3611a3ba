//! Submissions by hour of the day and by day of the week.

use crate::local_time::{LocalTime, LogClock};

const DAY: i64 = 86_400;

/// Submissions by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrivalTimes {
    /// Clock of the hours and days.
    pub clock: LogClock,
    /// Submissions per hour of the day, from midnight.
    pub by_hour: [u64; 24],
    /// Submissions per day of the week from Monday, or from the log's first day if the clock is
    /// unknown.
    pub by_weekday: [u64; 7],
}

/// A counter of submissions.
pub(crate) struct ArrivalCounter {
    time: LocalTime,
    by_hour: [u64; 24],
    by_weekday: [u64; 7],
}

impl ArrivalCounter {
    pub(crate) fn new(time: LocalTime) -> ArrivalCounter {
        ArrivalCounter { time, by_hour: [0; 24], by_weekday: [0; 7] }
    }

    pub(crate) fn add(&mut self, submit: i64) {
        let local = self.time.since_monday(submit);
        // A remainder of 24 or 7 fits.
        let index = |value: i64| usize::try_from(value).unwrap_or(0);
        self.by_hour[index(local.rem_euclid(DAY) / 3600)] += 1;
        self.by_weekday[index(local.div_euclid(DAY).rem_euclid(7))] += 1;
    }

    pub(crate) fn finish(self) -> ArrivalTimes {
        ArrivalTimes { clock: self.time.clock(), by_hour: self.by_hour, by_weekday: self.by_weekday }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swf::Header;

    /// Checks the hour and the weekday (0 is Monday) of second 0 of the log.
    #[track_caller]
    fn check(comments: &str, expect: (usize, usize), clock: &LogClock) {
        let mut header = Header::default();
        comments.lines().for_each(|comment| header.push(comment));
        let mut counter = ArrivalCounter::new(LocalTime::from_header(&header));
        counter.add(0);
        let arrivals = counter.finish();
        let first = |counts: &[u64]| counts.iter().position(|&count| count == 1).unwrap();
        assert_eq!((first(&arrivals.by_hour), first(&arrivals.by_weekday)), expect);
        assert_eq!(&arrivals.clock, clock);
    }

    /// The start times are those of the archive's logs in words.
    #[test]
    fn local_time_as_logs_have_it() {
        // KTH: Mon Sep 23 14:00:31 CEST 1996.
        let kth = "; UnixStartTime: 843480031\n; TimeZone: 3600\n; TimeZoneString: Europe/Stockholm";
        check(kth, (14, 0), &LogClock::Zone("Europe/Stockholm".into()));
        // SDSC Paragon: Wed Dec 27 10:53:57 PST 1995, and a TimeZone that is wrong.
        let paragon = "; UnixStartTime: 820090437\n; TimeZone: 0\n; TimeZoneString: US/Pacific";
        check(paragon, (10, 2), &LogClock::Zone("US/Pacific".into()));
        check("; UnixStartTime: 843480031\n; TimeZone: 3600", (13, 0), &LogClock::Offset(3600));
        let unheard_of = "; UnixStartTime: 0\n; TimeZone: -3600\n; TimeZoneString: Mars/Olympus";
        check(unheard_of, (23, 2), &LogClock::Offset(-3600));
    }

    #[test]
    fn without_a_zone_hours_are_since_the_start() {
        check("; UnixStartTime: 843480031", (0, 0), &LogClock::SinceStart);
        check("; TimeZone: 3600", (0, 0), &LogClock::SinceStart);
    }
}
