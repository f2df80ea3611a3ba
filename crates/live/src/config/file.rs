//! The content of a configuration file, as it is written.

use std::collections::BTreeMap;

use miserly_machine_file::file::{Account, ClassesFile, PoolFile, QueueFile};
use miserly_machine_file::gpu::GpuFile;
use serde::Deserialize;
use toml::{Spanned, Value};

use super::user_limits::{LimitFile, UserLimitsFile};

/// A value and its location.
pub(super) type Written<T> = Option<Spanned<T>>;

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct File {
    pub(super) state: Written<String>,
    pub(super) socket: Written<String>,
    pub(super) access: Written<String>,
    pub(super) user: Written<String>,
    pub(super) allow_root: Written<bool>,
    pub(super) private_folders: Written<bool>,
    pub(super) no_new_privileges: Written<bool>,
    pub(super) pam: Written<String>,
    pub(super) cgroup: Written<String>,
    pub(super) confine: Written<bool>,
    pub(super) critical_priority: Written<String>,
    pub(super) utc_offset: Written<String>,
    pub(super) grace: Written<Value>,
    pub(super) cleanup_time: Written<Value>,
    pub(super) orphan_resume_delay: Written<Value>,
    pub(super) preempt_lead_time: Written<Value>,
    pub(super) opportunistic: Option<bool>,
    pub(super) waiting_shims: Written<i64>,
    pub(super) waiting_shims_per_cpu: Written<i64>,
    pub(super) whole_cores: Written<bool>,
    pub(super) memory_reserve: Written<Value>,
    pub(super) charge: Written<String>,
    pub(super) keep_history: Written<Value>,
    pub(super) backup_interval: Written<Value>,
    pub(super) backup_keep: Written<i64>,
    pub(super) operators: OperatorsFile,
    pub(super) slurm: SlurmFile,
    pub(super) user_limits: UserLimitsFile,
    #[serde(rename = "limit")]
    pub(super) limits: Vec<Spanned<LimitFile>>,
    #[serde(rename = "gpu")]
    pub(super) gpus: Vec<Spanned<GpuFile>>,
    pub(super) pool: Option<Spanned<PoolFile>>,
    #[serde(rename = "queue")]
    pub(super) queues: Vec<Spanned<QueueFile>>,
    pub(super) classes: Option<Spanned<ClassesFile>>,
}

/// The table `[slurm]`: names of Slurm, each with its queue.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SlurmFile {
    pub(super) partitions: BTreeMap<String, Spanned<String>>,
    pub(super) accounts: BTreeMap<String, Spanned<String>>,
    pub(super) qos: BTreeMap<String, Spanned<String>>,
}

/// The table `[operators]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OperatorsFile {
    pub(super) users: Vec<Spanned<Account>>,
    pub(super) groups: Vec<Spanned<Account>>,
}
