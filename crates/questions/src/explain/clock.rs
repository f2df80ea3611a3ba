//! Instants of a log, as dates or as seconds.

use miserly_core::Time;
use miserly_workload::LogDates;

/// How instants of a log print: as dates, or as seconds of the log.
#[derive(Default)]
pub(super) struct Clock {
    dates: Option<LogDates>,
}

impl Clock {
    /// Returns the clock of a log with these dates, if any. `seconds` leaves them out.
    pub(super) fn new(dates: Option<LogDates>, seconds: bool) -> Clock {
        Clock { dates: dates.filter(|_| !seconds) }
    }

    /// Returns an instant as text: `2000-03-14 09:12`, or its whole seconds.
    pub(super) fn text(&self, time: Time) -> String {
        let seconds = (time - Time::ZERO).secs();
        let date = self.dates.as_ref().and_then(|dates| dates.minute(seconds));
        date.unwrap_or_else(|| seconds.to_string())
    }

    /// Returns the width of a column of instants.
    pub(super) fn width(&self) -> usize {
        if self.dates.is_some() { 16 } else { 12 }
    }

    /// Returns the line that explains the instants.
    pub(super) fn note(&self) -> String {
        match &self.dates {
            Some(dates) => {
                format!(
                    "Dates are those of the log, in {}; --seconds prints seconds of the log.",
                    dates.zone()
                )
            }
            None => "Times are in seconds of the log.".into(),
        }
    }
}
