//! Processors by number: which of them jobs have.

pub(crate) mod allocator;
pub(crate) mod capacity;
pub(crate) mod gang;
pub(crate) mod numbered;
pub(crate) mod topology;
