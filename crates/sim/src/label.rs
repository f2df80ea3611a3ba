//! Properties of jobs that no policy knows, by which they are grouped.

use std::sync::Arc;

miserly_core::named_enum! {
    /// A property of a job that its log has beside the request.
    pub enum Label {
        /// The number of the group.
        Group "group",
        /// The number of the partition.
        Partition "partition",
        /// The nodes of the job.
        Nodes "nodes",
        /// The GPUs of the job.
        Gpus "gpus",
        /// The type of the GPUs: on a machine with typed GPUs, of those that the job got.
        GpuType "gpu_type",
        /// The name of the job.
        Name "name",
        /// The account that pays for the job.
        Account "account",
        /// The features of hosts that the job needs.
        Features "features",
    }
}

/// A value of a [`Label`], shown as a text. Numbers are in their order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelValue {
    order: u64,
    text: Arc<str>,
}

impl LabelValue {
    /// Returns a value. `order` is the number that the text shows, in any unit; of a text that shows none it is 0.
    pub fn new(order: u64, text: &str) -> LabelValue {
        LabelValue { order, text: text.into() }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}
