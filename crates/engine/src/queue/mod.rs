//! Queues: the setup with its reservations, and changes of it.

pub(crate) mod compatibility;
pub(crate) mod current_setup;
pub(crate) mod gpus;
pub(crate) mod guarded_policy;
pub(crate) mod reconfiguration;
pub(crate) mod reservation;
pub(crate) mod reservations;
mod saved_queue;
pub(crate) mod setup;
pub(crate) mod stopped;
