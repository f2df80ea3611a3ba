//! The daemon, and the commands that talk to it.

pub(crate) mod export;
