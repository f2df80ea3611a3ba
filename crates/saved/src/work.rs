//! Work in processor-ticks, as it is stored: a number, or text if it has more than 64 bits.
//!
//! The lines of the journal are read as a tagged enum, which passes on no number of 128 bits.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde needs")]
pub(crate) fn serialize<S: Serializer>(work: &u128, to: S) -> Result<S::Ok, S::Error> {
    match u64::try_from(*work) {
        Ok(work) => to.serialize_u64(work),
        Err(_) => to.collect_str(work),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
    from.deserialize_any(Work)
}

struct Work;

impl Visitor<'_> for Work {
    type Value = u128;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("work in processor-ticks")
    }

    fn visit_u64<E: Error>(self, work: u64) -> Result<u128, E> {
        Ok(work.into())
    }

    fn visit_str<E: Error>(self, work: &str) -> Result<u128, E> {
        work.parse().map_err(E::custom)
    }
}
