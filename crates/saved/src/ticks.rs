//! Instants and durations of the core, stored as a number of ticks, for `#[serde(with = "miserly_saved::ticks")]`.

use miserly_core::{Span, Time};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What is stored as a number of ticks.
pub trait Ticks: Copy {
    /// Returns the number of ticks.
    fn to_ticks(self) -> i64;

    /// Returns the value of a number of ticks.
    fn from_ticks(ticks: i64) -> Self;
}

impl Ticks for Time {
    fn to_ticks(self) -> i64 {
        self.ticks()
    }

    fn from_ticks(ticks: i64) -> Time {
        Time::from_ticks(ticks)
    }
}

impl Ticks for Span {
    fn to_ticks(self) -> i64 {
        self.ticks()
    }

    fn from_ticks(ticks: i64) -> Span {
        Span::from_ticks(ticks)
    }
}

/// Stores a value.
///
/// # Errors
/// Those of the serializer.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub fn serialize<T: Ticks, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    value.to_ticks().serialize(to)
}

/// Reads a value.
///
/// # Errors
/// Those of the deserializer.
pub fn deserialize<'de, T: Ticks, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    i64::deserialize(from).map(T::from_ticks)
}

/// Stores and reads a value that may be missing.
pub mod optional {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Ticks;

    /// Stores a value, if there is one.
    ///
    /// # Errors
    /// Those of the serializer.
    #[allow(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub fn serialize<T: Ticks, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
        value.map(Ticks::to_ticks).serialize(to)
    }

    /// Reads a value, if there is one.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, T: Ticks, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
        Ok(Option::<i64>::deserialize(from)?.map(T::from_ticks))
    }
}
