//! What a configuration file says, as it is written.

use miserly_pools::{RuleFile, Who};
use serde::Deserialize;
use toml::{Spanned, Value};

/// A value, and where it stands.
pub(super) type Written<T> = Option<Spanned<T>>;

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct File {
    pub(super) state: Written<String>,
    pub(super) socket: Written<String>,
    pub(super) access: Written<String>,
    pub(super) utc_offset: Written<String>,
    pub(super) grace: Written<Value>,
    pub(super) cleanup_time: Written<Value>,
    pub(super) orphan_resume_delay: Written<Value>,
    pub(super) preempt_lead_time: Written<Value>,
    pub(super) opportunistic: Option<bool>,
    pub(super) keep_history: Written<Value>,
    pub(super) pool: Option<Spanned<PoolFile>>,
    #[serde(rename = "queue")]
    pub(super) queues: Vec<Spanned<QueueFile>>,
}

/// What all queues have together.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct PoolFile {
    pub(super) cpus: Written<i64>,
    pub(super) memory: Written<Value>,
    pub(super) calendar: Vec<Spanned<RuleFile>>,
}

/// A queue.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct QueueFile {
    pub(super) name: Spanned<String>,
    pub(super) cpus: Written<i64>,
    pub(super) memory: Written<Value>,
    #[serde(default)]
    pub(super) calendar: Vec<Spanned<RuleFile>>,
    pub(super) policy: Written<String>,
    pub(super) horizon: Written<Value>,
    #[serde(default)]
    pub(super) users: Vec<Spanned<Who>>,
    #[serde(default)]
    pub(super) groups: Vec<Spanned<Who>>,
    pub(super) default_time: Written<Value>,
    pub(super) max_time: Written<Value>,
    pub(super) default_memory: Written<Value>,
}

impl QueueFile {
    /// A queue of this name of which nothing else is written.
    pub(super) fn named(name: &str) -> QueueFile {
        QueueFile {
            name: Spanned::new(0..0, name.to_owned()),
            cpus: None,
            memory: None,
            calendar: Vec::new(),
            policy: None,
            horizon: None,
            users: Vec::new(),
            groups: Vec::new(),
            default_time: None,
            max_time: None,
            default_memory: None,
        }
    }
}
