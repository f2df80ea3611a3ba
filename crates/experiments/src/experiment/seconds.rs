//! Durations of an experiment file: numbers of seconds, or texts such as `7d`.

use miserly_core::Span;
use miserly_units::parse_seconds;
use serde::de::{Deserialize, Deserializer, Error};

use crate::selector::Scalar;

/// Reads a duration, if there is one.
pub(super) fn one<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Option::<Scalar>::deserialize(from)?.as_ref().map(seconds).transpose()
}

/// Reads a window: from and to.
pub(super) fn window<'de, D: Deserializer<'de>>(from: D) -> Result<Option<[i64; 2]>, D::Error> {
    let Some([from, to]) = Option::<[Scalar; 2]>::deserialize(from)? else { return Ok(None) };
    Ok(Some([seconds(&from)?, seconds(&to)?]))
}

/// Reads a list of durations.
pub(super) fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
    Vec::<Scalar>::deserialize(from)?.iter().map(|one| seconds(one).map(i64::unsigned_abs)).collect()
}

fn seconds<E: Error>(written: &Scalar) -> Result<i64, E> {
    parse_seconds(&written.text(), Span::ZERO).map_err(E::custom)
}
