//! The submissions of the jobs.

use super::super::random::{Discrete, Stream};
use crate::local_time::LocalTime;
use crate::o2k::{Month, Period, TIME_ZONE, WARM_UP, WeekSlot};
use crate::swf::Header;

/// Seconds of an hour.
const HOUR: u64 = 3_600;

/// Factor of the off-peak rate of jobs of 64 processors in some months (§3). Decided here, as are
/// the months.
const OFF_PEAK: f64 = 3.0;

/// Returns the rate of arrivals relative to a weekday's peak.
fn rate(slot: WeekSlot) -> f64 {
    let rate = match slot.period {
        Period::Peak => 1.0,
        Period::Intermediate => 0.55,
        Period::Low => 0.25,
    };
    if slot.weekend { rate / 2.0 } else { rate }
}

/// Returns whether jobs of 64 processors prefer off-peak hours in a month.
const fn is_wide_off_peak(month: Month) -> bool {
    matches!(month, Month::November | Month::January | Month::March)
}

/// A job's submission and its slot of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SubmissionTime {
    /// In seconds of the log.
    pub(super) second: u64,
    pub(super) slot: WeekSlot,
}

/// The weighted instants of a part of a log.
pub(super) struct SubmissionTimes {
    from: u64,
    slots: Vec<WeekSlot>,
    usual: Discrete,
    widest: Discrete,
}

impl SubmissionTimes {
    /// Creates the distribution from one second of the log to another. Both begin an hour of the
    /// clock.
    pub(super) fn new(month: Month, from: u64, to: u64) -> SubmissionTimes {
        let clock = clock(month);
        let slot = |second: u64| WeekSlot::at(clock.since_monday(second.cast_signed()));
        let hours = (to - from) / HOUR;
        let slots: Vec<WeekSlot> = (0..hours).map(|hour| slot(from + hour * HOUR)).collect();
        let off_peak = |slot: WeekSlot| {
            let is = is_wide_off_peak(month) && (slot.weekend || slot.period == Period::Low);
            if is { OFF_PEAK } else { 1.0 }
        };
        let by = |weight: &dyn Fn(WeekSlot) -> f64| {
            // Some weeks fit.
            let hours = u32::try_from(hours).unwrap_or(u32::MAX);
            Discrete::new(hours, |hour| weight(slots[hour as usize - 1]))
        };
        let (usual, widest) = (by(&rate), by(&|slot| rate(slot) * off_peak(slot)));
        SubmissionTimes { from, slots, usual, widest }
    }

    pub(super) fn draw(&self, procs: u32, stream: &mut Stream) -> SubmissionTime {
        let hours = if procs == 64 { &self.widest } else { &self.usual };
        let hour = u64::from(hours.draw(stream) - 1);
        // Below an hour.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the hour")]
        let within = (stream.uniform() * HOUR as f64) as u64;
        let slot = self.slots[usize::try_from(hour).unwrap_or(usize::MAX)];
        SubmissionTime { second: self.from + hour * HOUR + within, slot }
    }
}

/// Returns the clock of a log whose warm-up ends when the month begins. Its reader uses the same
/// clock.
fn clock(month: Month) -> LocalTime {
    let mut header = Header::default();
    header.push(&format!("; UnixStartTime: {}", month.unix_start() - WARM_UP.cast_signed()));
    header.push(&format!("; TimeZoneString: {TIME_ZONE}"));
    LocalTime::from_header(&header)
}
