//! The entries of the registry, by room.

pub(super) mod backfill;

pub(super) mod equipartition;
