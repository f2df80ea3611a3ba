//! The durable state, as clients see it.

pub(crate) mod changes;
pub(crate) mod job;
pub(crate) mod listing;
pub(crate) mod pools;
pub(crate) mod snapshot;
pub(crate) mod state_metrics;
pub(crate) mod unrecorded;
pub(crate) mod waiters;
