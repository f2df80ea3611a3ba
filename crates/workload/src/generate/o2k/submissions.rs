//! When the jobs are submitted.

use super::super::random::{Discrete, Stream};
use crate::local_time::LocalTime;
use crate::o2k::{Month, Period, Slot, TIME_ZONE, WARM_UP};
use crate::swf::Header;

/// Seconds of an hour.
const HOUR: u64 = 3_600;

/// By how much the rate of jobs of 64 processors is raised in low hours and at weekends, in some months (§3). Decided
/// here, as are the months.
const OFF_PEAK: f64 = 3.0;

/// The rate of arrivals, in that of a weekday's peak.
fn rate(slot: Slot) -> f64 {
    let rate = match slot.period {
        Period::Peak => 1.0,
        Period::Intermediate => 0.55,
        Period::Low => 0.25,
    };
    if slot.weekend { rate / 2.0 } else { rate }
}

/// Whether jobs of 64 processors are rather submitted off-peak.
const fn is_wide_off_peak(month: Month) -> bool {
    matches!(month, Month::November | Month::January | Month::March)
}

/// A job's instant, and its place in the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Submission {
    /// In the log's seconds.
    pub(super) second: u64,
    pub(super) slot: Slot,
}

/// The instants of a stretch of a log, weighted.
pub(super) struct Submissions {
    from: u64,
    slots: Vec<Slot>,
    usual: Discrete,
    widest: Discrete,
}

impl Submissions {
    /// From one second of the log to another; both begin an hour of the clock.
    pub(super) fn new(month: Month, from: u64, to: u64) -> Submissions {
        let clock = clock(month);
        let slot = |second: u64| Slot::of(clock.since_monday(second.cast_signed()));
        let hours = (to - from) / HOUR;
        let slots: Vec<Slot> = (0..hours).map(|hour| slot(from + hour * HOUR)).collect();
        let off_peak = |slot: Slot| {
            let is = is_wide_off_peak(month) && (slot.weekend || slot.period == Period::Low);
            if is { OFF_PEAK } else { 1.0 }
        };
        let by = |weight: &dyn Fn(Slot) -> f64| {
            // Some weeks.
            let hours = u32::try_from(hours).unwrap_or(u32::MAX);
            Discrete::new(hours, |hour| weight(slots[hour as usize - 1]))
        };
        let (usual, widest) = (by(&rate), by(&|slot| rate(slot) * off_peak(slot)));
        Submissions { from, slots, usual, widest }
    }

    pub(super) fn draw(&self, procs: u32, stream: &mut Stream) -> Submission {
        let hours = if procs == 64 { &self.widest } else { &self.usual };
        let hour = u64::from(hours.draw(stream) - 1);
        // Below an hour.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the hour")]
        let within = (stream.uniform() * HOUR as f64) as u64;
        let slot = self.slots[usize::try_from(hour).unwrap_or(usize::MAX)];
        Submission { second: self.from + hour * HOUR + within, slot }
    }
}

/// The clock of a log whose warm-up ends when the month begins: the one by which it will be read.
fn clock(month: Month) -> LocalTime {
    let mut header = Header::default();
    header.push(&format!("; UnixStartTime: {}", month.unix_start() - WARM_UP.cast_signed()));
    header.push(&format!("; TimeZoneString: {TIME_ZONE}"));
    LocalTime::of(&header)
}
