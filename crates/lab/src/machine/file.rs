//! What a machine file says, as it is written.

use miserly_pools::{PoolFile, QueueFile};
use serde::Deserialize;
use toml::{Spanned, Value};

/// A machine: its hosts, and how jobs lie on them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct File {
    /// one or any: over how many hosts a job may lie.
    pub(super) span: Option<Spanned<String>>,
    /// shared or whole: whether a job has its hosts to itself.
    pub(super) sharing: Option<Spanned<String>>,
    /// The hosts, in the order in which they are numbered.
    #[serde(rename = "host", default)]
    pub(super) hosts: Vec<Spanned<HostFile>>,
    /// As of [`PoolsFile`](miserly_pools::PoolsFile), with the pool and the queues.
    pub(super) utc_offset: Option<Spanned<String>>,
    pub(super) pool: Option<Spanned<PoolFile>>,
    #[serde(rename = "queue", default)]
    pub(super) queues: Vec<Spanned<QueueFile>>,
}

/// One host, or several that are alike.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostFile {
    /// The host's name; with `count`, what all names begin with.
    pub(super) name: String,
    /// The processors of each.
    pub(super) cpus: Spanned<i64>,
    /// The memory of each, with a unit; not accounted where it is left out.
    pub(super) memory: Option<Spanned<Value>>,
    /// The GPUs of each.
    pub(super) gpus: Option<Spanned<i64>>,
    /// How many.
    pub(super) count: Option<Spanned<i64>>,
}
