//! The processors of queues by number, for readers.

use std::collections::BTreeMap;

/// The processors of queues by name. A queue that shares its processors with others is not in it.
pub(crate) type QueueCpus = BTreeMap<String, NumberedCpus>;

/// The processors of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NumberedCpus {
    /// All of them.
    pub(crate) all: Vec<u32>,
    /// Those that no job gets now.
    pub(crate) offline: Vec<u32>,
}
