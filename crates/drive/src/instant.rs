//! Instants for people, in local time.

use jiff::Timestamp;
use miserly_core::Time;

/// Returns an instant for people.
pub(crate) fn local(at: Time) -> String {
    written(at, "%Y-%m-%dT%H:%M:%S")
}

/// Returns an instant for people, to the minute.
pub(crate) fn minute(at: Time) -> String {
    written(at, "%Y-%m-%dT%H:%M")
}

fn written(at: Time, format: &str) -> String {
    let zone = jiff::tz::TimeZone::system();
    let at = Timestamp::from_second(at.secs()).map(|at| at.to_zoned(zone).strftime(format).to_string());
    at.unwrap_or_else(|_| "-".to_owned())
}
