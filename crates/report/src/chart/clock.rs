//! Dates on a time axis: from the seconds of a log to the clock at its machine.

use miserly_workload::LogDates;
use serde::Serialize;

use super::ticks::{Tick, decimal_step, time_step};

const DAY: i64 = 86_400;

/// Bound of the seconds of a log.
const LATEST: f64 = 1e11;

/// Steps of days, and of months, between two ticks.
const DAYS: [i64; 4] = [1, 2, 5, 10];
const MONTHS: [i64; 5] = [1, 2, 3, 6, 12];

const NAMES: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

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
        let shift = |second: i64| Some(dates.local(second)? - second);
        let (from, to) = (seconds(from), seconds(to));
        dates.minute(from)?;
        dates.minute(to)?;
        let mut shifts = vec![(from, shift(from)?)];
        let mut at = from;
        while at < to {
            let next = (at + DAY).min(to);
            let (before, after) = (shift(at)?, shift(next)?);
            if before != after {
                shifts.push((change(at, next, |second| shift(second) == Some(before)), after));
            }
            at = next;
        }
        Some(LocalClock { zone: dates.zone().to_owned(), shifts })
    }

    /// Returns the label of an axis from `low` to `high`: the year or years, and the zone.
    pub fn label(&self, low: f64, high: f64) -> String {
        let [first, last] = [low, high].map(|second| civil(self.local(second).div_euclid(DAY)).0);
        let years = if first == last { first.to_string() } else { format!("{first} to {last}") };
        format!("date in {years}, {}", self.zone)
    }

    /// Returns the seconds of the log from which a shift applies, and the shifts to seconds since 1970 by the local clock.
    pub(super) fn shifts(&self) -> impl Iterator<Item = (i64, i64)> {
        self.shifts.iter().copied()
    }

    /// Returns the date and the minute of a second of the log: `1996-09-23 15:00`.
    pub(super) fn minute(&self, second: f64) -> String {
        let local = self.local(second);
        let (year, month, day) = civil(local.div_euclid(DAY));
        format!("{year:04}-{month:02}-{day:02} {}", clock_time(local))
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
        let (year, month, _) = civil(self.local(low).div_euclid(DAY));
        let first = (year * 12 + month - 1).div_euclid(step);
        let months = (first..).map(|number| number * step).take(200);
        let tick = |month: i64| {
            let local = days(month.div_euclid(12), month.rem_euclid(12) + 1) * DAY;
            let name = NAMES[usize::try_from(month.rem_euclid(12)).unwrap_or(0)];
            Tick { at: self.second(local), label: Some(format!("{name} {}", month.div_euclid(12))) }
        };
        months.map(tick).skip_while(|tick| tick.at < low).take_while(|tick| tick.at <= high).collect()
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

/// Returns the first second after `low`, up to `high`, for which `holds` is false.
fn change(mut low: i64, mut high: i64, holds: impl Fn(i64) -> bool) -> i64 {
    while high - low > 1 {
        let middle = i64::midpoint(low, high);
        if holds(middle) { low = middle } else { high = middle }
    }
    high
}

/// Returns the whole seconds. Values outside the calendar are clamped.
#[allow(clippy::cast_possible_truncation)]
fn seconds(value: f64) -> i64 {
    value.floor().clamp(-LATEST, LATEST) as i64
}

/// Returns the label of a tick: the date at midnight, else the time, with the date if it is the first.
fn short(local: i64, first: bool) -> String {
    let (_, month, day) = civil(local.div_euclid(DAY));
    let date = format!("{day} {}", NAMES[usize::try_from(month - 1).unwrap_or(0)]);
    match (local.rem_euclid(DAY), first) {
        (0, _) => date,
        (_, true) => format!("{date} {}", clock_time(local)),
        (_, false) => clock_time(local),
    }
}

/// Returns the time of the day, with seconds unless it is a full minute.
fn clock_time(local: i64) -> String {
    let second = local.rem_euclid(DAY);
    let minute = format!("{:02}:{:02}", second / 3_600, second / 60 % 60);
    if second % 60 == 0 { minute } else { format!("{minute}:{:02}", second % 60) }
}

/// Returns the year, month and day of a day since 1970-01-01, in the Gregorian calendar.
fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * from_march + 2) / 5 + 1, (from_march + 2) % 12 + 1);
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// Returns the day since 1970-01-01 of the first day of a month.
fn days(year: i64, month: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
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

    #[test]
    fn days_and_dates_agree() {
        for (day, date) in [(0, (1970, 1, 1)), (11_016, (2000, 2, 29)), (-1, (1969, 12, 31))] {
            assert_eq!(civil(day), date);
        }
        assert_eq!(
            [(1970, 1), (2000, 3), (1996, 2)].map(|(year, month)| days(year, month)),
            [0, 11_017, 9_527]
        );
    }
}
