//! When jobs are submitted: by hour of the day, by day of the week.

use crate::local_time::{Clock, LocalTime};

const DAY: i64 = 86_400;

/// How many jobs are submitted when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// What the hours and days are.
    pub clock: Clock,
    /// Per hour of the day, from midnight.
    pub by_hour: [u64; 24],
    /// Per day of the week, from Monday; from the log's first day, if the clock is unknown.
    pub by_weekday: [u64; 7],
}

/// Counts submissions as they come.
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

    pub(crate) fn finish(self) -> Arrivals {
        Arrivals { clock: self.time.clock(), by_hour: self.by_hour, by_weekday: self.by_weekday }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swf::Header;

    /// The hour and the weekday (0 is Monday) of the log's second 0.
    #[track_caller]
    fn check(comments: &str, expect: (usize, usize), clock: &Clock) {
        let mut header = Header::default();
        comments.lines().for_each(|comment| header.push(comment));
        let mut counter = ArrivalCounter::new(LocalTime::of(&header));
        counter.add(0);
        let arrivals = counter.finish();
        let first = |counts: &[u64]| counts.iter().position(|&count| count == 1).unwrap();
        assert_eq!((first(&arrivals.by_hour), first(&arrivals.by_weekday)), expect);
        assert_eq!(&arrivals.clock, clock);
    }

    /// The start times are those that the archive's logs give in words.
    #[test]
    fn local_time_as_logs_have_it() {
        // KTH: Mon Sep 23 14:00:31 CEST 1996.
        let kth = "; UnixStartTime: 843480031\n; TimeZone: 3600\n; TimeZoneString: Europe/Stockholm";
        check(kth, (14, 0), &Clock::Zone("Europe/Stockholm".into()));
        // SDSC Paragon: Wed Dec 27 10:53:57 PST 1995, and a TimeZone that is wrong.
        let paragon = "; UnixStartTime: 820090437\n; TimeZone: 0\n; TimeZoneString: US/Pacific";
        check(paragon, (10, 2), &Clock::Zone("US/Pacific".into()));
        check("; UnixStartTime: 843480031\n; TimeZone: 3600", (13, 0), &Clock::Offset(3600));
        let unheard_of = "; UnixStartTime: 0\n; TimeZone: -3600\n; TimeZoneString: Mars/Olympus";
        check(unheard_of, (23, 2), &Clock::Offset(-3600));
    }

    #[test]
    fn without_a_zone_hours_are_since_the_start() {
        check("; UnixStartTime: 843480031", (0, 0), &Clock::SinceStart);
        check("; TimeZone: 3600", (0, 0), &Clock::SinceStart);
    }
}
