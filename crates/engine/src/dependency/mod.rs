//! Jobs that wait for other jobs or for an instant.

pub(crate) mod conditions;
pub(crate) mod expected_ends;
pub(crate) mod release;
pub(crate) mod targets;
pub(crate) mod tracker;
