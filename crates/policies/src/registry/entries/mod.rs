//! The entries of the registry, by room.

pub(super) mod backfill;

pub(super) mod priority;

pub(super) mod suspension;

pub(super) mod window;

pub(super) mod immediate;

pub(super) mod classes;

pub(super) mod equipartition;

pub(super) mod gang;
