//! Instants of Slurm and of the core, and instants for people.

use jiff::Timestamp;
use miserly_core::Time;

/// Returns an instant of Slurm, which is in seconds since 1970.
pub(crate) fn instant(seconds: i64) -> Time {
    let limit = if seconds < 0 { Time::from_ticks(i64::MIN) } else { Time::MAX };
    Time::from_secs(seconds).unwrap_or(limit)
}

/// Returns the begin of a second, as Slurm shows instants.
pub(crate) fn whole_second(at: Time) -> Time {
    instant(at.secs())
}

/// Returns an instant for people, in local time.
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

/// Instants and spans in whole seconds, as JSON has them: `#[serde(with = "seconds")]`.
pub(crate) mod seconds {
    use miserly_core::{Span, Time};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// What is shown in seconds.
    pub(crate) trait Seconds: Copy {
        fn seconds(self) -> i64;
    }

    impl Seconds for Time {
        fn seconds(self) -> i64 {
            self.secs()
        }
    }

    impl Seconds for Span {
        fn seconds(self) -> i64 {
            self.secs()
        }
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(crate) fn serialize<T: Seconds, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
        value.seconds().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
        i64::deserialize(from).map(super::instant)
    }

    /// The same of a value that may be missing.
    pub(crate) mod optional {
        use miserly_core::Time;
        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        use super::Seconds;

        #[allow(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
        pub(crate) fn serialize<T: Seconds, S: Serializer>(
            value: &Option<T>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            value.map(Seconds::seconds).serialize(to)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Time>, D::Error> {
            Ok(Option::<i64>::deserialize(from)?.map(super::super::instant))
        }
    }
}
