//! Jobs: their records, and the tables of the unfinished ones.

pub(crate) mod handles;
pub(crate) mod instants;
pub(crate) mod memory;
pub(crate) mod output_path;
pub(crate) mod record;
pub(crate) mod record_map;
pub(crate) mod set_aside;
pub(crate) mod steps;
pub(crate) mod table;
pub(crate) mod unrecorded;
pub(crate) mod usage;
