//! Promises to jobs: how they are given, judged, counted and stored.

pub(crate) mod counts;
pub(crate) mod earlier;
pub(crate) mod judgements;
pub(crate) mod log;
pub(crate) mod recorded;
