//! Dates on a time axis: from the seconds of a log to the clock at its machine.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use miserly_scene::Clock;
use miserly_workload::LogDates;
use serde::Serialize;

use super::ticks::{Tick, decimal_step, time_step};

const DAY: i64 = 86_400;

/// Bound of the seconds of a log.
const LATEST: f64 = 1e11;

/// Steps of days, and of months, between two ticks.
const DAYS: [i64; 4] = [1, 2, 5, 10];
const MONTHS: [i64; 5] = [1, 2, 3, 6, 12];

/// The clock at the machine of a log, over a period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LocalClock {
    /// Name of the time zone.
    zone: String,
    /// Second of the log from which a shift applies, and the shift to seconds since 1970 by the local clock.
    shifts: Vec<(i64, i64)>,
}

impl LocalClock {
    /// Returns the clock for the seconds `from` to `to` of a log.
    ///
    /// Returns `None` if they are outside the calendar.
    pub fn new(dates: &LogDates, from: f64, to: f64) -> Option<LocalClock> {
        let (from, to) = (seconds(from), seconds(to));
        dates.minute(from)?;
        dates.minute(to)?;
        let start = dates.start();
        let [first, last] = [from, to].map(|second| start.saturating_add(second).saturating_mul(1000));
        let offsets = Clock::Wall(dates.time_zone().clone()).offsets(first, last).into_iter();
        let shifts = offsets.map(|(at, offset)| (at / 1000 - start, start + offset / 1000)).collect();
        Some(LocalClock { zone: dates.zone().to_owned(), shifts })
    }

    /// Returns the label of an axis from `low` to `high`: the year or years, and the zone.
    pub fn label(&self, low: f64, high: f64) -> String {
        let [first, last] = [low, high].map(|second| civil(self.local(second)).year());
        let years = if first == last { first.to_string() } else { format!("{first} to {last}") };
        format!("date in {years}, {}", self.zone)
    }

    /// Returns the seconds of the log from which a shift applies, and the shifts to seconds since 1970 by the local clock.
    pub(super) fn shifts(&self) -> impl Iterator<Item = (i64, i64)> {
        self.shifts.iter().copied()
    }

    /// Returns the date and the minute of a second of the log: `1996-09-23 15:00`.
    pub(super) fn minute(&self, second: f64) -> String {
        let local = civil(self.local(second));
        format!("{} {}", local.date(), clock_time(local))
    }

    /// Returns ticks at round local times from `low` to `high`, with about `count` labels.
    pub(super) fn ticks(&self, (low, high): (f64, f64), count: usize) -> Vec<Tick> {
        // No log reaches beyond the calendar.
        if low.abs().max(high.abs()) >= LATEST {
            return Vec::new();
        }
        let span = high - low;
        let least = span / count.max(1) as f64;
        if least >= 14.0 * DAY as f64 {
            return self.months((low, high), seconds((least / (30.0 * DAY as f64)).ceil()).max(1));
        }
        let step = if least > DAY as f64 / 2.0 {
            DAY * DAYS.into_iter().find(|&days| (days * DAY) as f64 >= least).unwrap_or(DAYS[3])
        } else {
            seconds(time_step(span, count)).max(1)
        };
        let mut ticks = Vec::new();
        for (n, &(begin, shift)) in self.shifts.iter().enumerate() {
            let end = self.shifts.get(n + 1).map_or(f64::INFINITY, |next| next.0 as f64);
            let begin = if n == 0 { low } else { low.max(begin as f64) };
            let first = seconds((begin + shift as f64) / step as f64 - 1e-9);
            let locals = (first..).map(|number| number * step);
            let within = locals.skip_while(|local| ((local - shift) as f64) < begin);
            let within = within.take_while(|local| ((local - shift) as f64) <= high.min(end - 1.0));
            for local in within.take(100) {
                let label = short(local, ticks.is_empty());
                ticks.push(Tick { at: (local - shift) as f64, label: Some(label) });
            }
        }
        ticks
    }

    /// Returns ticks at the first days of months.
    fn months(&self, (low, high): (f64, f64), least: i64) -> Vec<Tick> {
        let step = MONTHS.into_iter().find(|&months| months >= least).unwrap_or_else(|| {
            let years = decimal_step((12 * least) as f64 / 144.0, 1);
            12 * seconds(years).max(1)
        });
        let first = civil(self.local(low));
        let first = (i64::from(first.year()) * 12 + i64::from(first.month()) - 1).div_euclid(step);
        let months = (first..).map(|number| number * step).take(200);
        let tick = |month: i64| {
            let first = month_begin(month)?;
            let label = Some(first.strftime("%b %Y").to_string());
            Some(Tick { at: self.second(first.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second()), label })
        };
        months.map_while(tick).skip_while(|tick| tick.at < low).take_while(|tick| tick.at <= high).collect()
    }

    /// Returns the local time of a second of the log, since 1970.
    fn local(&self, second: f64) -> i64 {
        let second = seconds(second);
        let shift = self.shifts.iter().rev().find(|(from, _)| *from <= second).or(self.shifts.first());
        second.saturating_add(shift.map_or(0, |shift| shift.1))
    }

    /// Returns the second of the log of a local time.
    fn second(&self, local: i64) -> f64 {
        let of = self.shifts.iter().rev().find(|(from, shift)| from + shift <= local);
        (local - of.or(self.shifts.first()).map_or(0, |shift| shift.1)) as f64
    }
}

/// Returns the whole seconds. Values outside the calendar are clamped.
#[allow(clippy::cast_possible_truncation)]
fn seconds(value: f64) -> i64 {
    value.floor().clamp(-LATEST, LATEST) as i64
}

/// Returns the label of a tick: the date at midnight, else the time, with the date if it is the first.
fn short(local: i64, first: bool) -> String {
    let at = civil(local);
    let date = at.strftime("%-d %b");
    match (local.rem_euclid(DAY), first) {
        (0, _) => date.to_string(),
        (_, true) => format!("{date} {}", clock_time(at)),
        (_, false) => clock_time(at),
    }
}

/// Returns the time of the day, with seconds unless it is a full minute.
fn clock_time(at: DateTime) -> String {
    at.strftime(if at.second() == 0 { "%H:%M" } else { "%H:%M:%S" }).to_string()
}

/// Returns the date and the time of a local second since 1970.
fn civil(local: i64) -> DateTime {
    Timestamp::from_second(local).unwrap_or_default().to_zoned(TimeZone::UTC).datetime()
}

/// Returns the begin of a month, counted from that of the year 0.
fn month_begin(month: i64) -> Option<DateTime> {
    let (year, of_year) =
        (i16::try_from(month.div_euclid(12)).ok()?, i8::try_from(month.rem_euclid(12)).ok()?);
    Some(Date::new(year, of_year + 1, 1).ok()?.to_datetime(Time::midnight()))
}

#[cfg(test)]
mod tests {
    use miserly_workload::swf::Header;

    use super::*;

    /// The clock of KTH over its log.
    fn kth() -> LocalClock {
        let mut header = Header::default();
        header.push("; UnixStartTime: 843480031");
        header.push("; TimeZoneString: Europe/Stockholm");
        LocalClock::new(&LogDates::from_header(&header).unwrap(), 0.0, 340.0 * 86_400.0).unwrap()
    }

    #[test]
    fn a_clock_follows_summer_time() {
        let clock = kth();
        assert_eq!(clock.shifts.len(), 3);
        let end_of_summer = f64::from(846_378_000 - 843_480_031);
        assert_eq!(clock.minute(end_of_summer - 1.0), "1996-10-27 02:59:59");
        assert_eq!(clock.minute(end_of_summer), "1996-10-27 02:00");
        assert_eq!(clock.label(0.0, 100.0), "date in 1996, Europe/Stockholm");
        assert_eq!(clock.label(0.0, 3e7), "date in 1996 to 1997, Europe/Stockholm");
    }

    #[track_caller]
    fn check(low: f64, high: f64, expect: &str) {
        let labels: Vec<String> =
            kth().ticks((low, high), 6).into_iter().filter_map(|tick| tick.label).collect();
        assert_eq!(labels.join("|"), expect);
    }

    #[test]
    fn ticks_are_at_round_local_times() {
        check(0.0, 86_400.0, "23 Sep 18:00|24 Sep|06:00|12:00");
        check(0.0, 600.0, "23 Sep 14:02|14:04|14:06|14:08|14:10");
        check(0.0, 10.0 * 86_400.0, "25 Sep|27 Sep|29 Sep|1 Oct|3 Oct");
        check(0.0, 340.0 * 86_400.0, "Nov 1996|Jan 1997|Mar 1997|May 1997|Jul 1997");
        // Midnight of winter time, after the change.
        check(2_800_000.0, 3_000_000.0, "26 Oct|12:00|27 Oct|12:00|28 Oct");
    }
}
