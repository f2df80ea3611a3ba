//! The grammar of machine files, unchecked.

use std::ops::Range;

use serde::Deserialize;
use toml::{Spanned, Value};

use crate::gpu::GpuFile;

/// A machine: its hosts, the placement of jobs on them, its pool and queues.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct MachineFile {
    /// `one` or `any`: over how many hosts a job may lie.
    pub(crate) span: Option<Spanned<String>>,
    /// `shared` or `whole`: whether a job has its hosts to itself.
    pub(crate) sharing: Option<Spanned<String>>,
    /// `best` or `gradient`: the choice of GPUs for a job.
    pub(crate) gpu_fit: Option<Spanned<String>>,
    /// The hosts, in the order in which they are numbered.
    #[serde(rename = "host", default)]
    pub(crate) hosts: Vec<Spanned<HostFile>>,
    /// As in [`PoolsFile`].
    pub(crate) utc_offset: Option<Spanned<String>>,
    pub(crate) pool: Option<Spanned<PoolFile>>,
    #[serde(rename = "queue", default)]
    pub(crate) queues: Vec<Spanned<QueueFile>>,
    pub(crate) classes: Option<Spanned<ClassesFile>>,
}

/// The job classes of policy `lsf`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassesFile {
    /// The sizes. A job has the first one with sufficient limits.
    #[serde(rename = "size", default)]
    pub sizes: Vec<SizeFile>,
    /// The lengths. A job has the first one with a sufficient limit.
    #[serde(rename = "length", default)]
    pub lengths: Vec<LengthFile>,
    /// The hosts, with the sizes that they run.
    #[serde(rename = "host", default)]
    pub hosts: Vec<HostClassesFile>,
}

/// A size of requests.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeFile {
    /// Its name.
    pub name: Spanned<String>,
    /// The largest number of processors.
    pub cpus: Spanned<i64>,
    /// The largest memory of the whole job, with a unit. Any if missing.
    pub memory: Option<Spanned<Value>>,
}

/// A length of requests.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LengthFile {
    /// Its name.
    pub name: Spanned<String>,
    /// The longest requested time.
    pub time: Spanned<Value>,
    /// The wait after which a host may be kept for a job. None is if missing.
    pub reserve_wait: Option<Spanned<Value>>,
    /// The number of its jobs that may execute at a time on all hosts together. Any if missing.
    pub limit: Option<Spanned<i64>>,
    /// Whether its jobs come before those of the other lengths of their size.
    #[serde(default)]
    pub first: bool,
}

/// The sizes that some hosts run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostClassesFile {
    /// The names of the hosts, or of a `[[host]]` with a count. Where there are queues, their names.
    pub hosts: Vec<Spanned<String>>,
    /// The sizes that they run, the first one first.
    pub order: Vec<Spanned<TurnFile>>,
}

/// A size in the order of a host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnFile {
    /// The name of the size.
    pub size: Spanned<String>,
    /// The number of its jobs that may execute on the host at a time. Any if missing.
    pub limit: Option<Spanned<i64>>,
}

/// One host, or several that are alike.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostFile {
    /// The host's name; with `count`, the beginning of all names.
    pub(crate) name: String,
    /// The processors of each.
    pub(crate) cpus: Spanned<i64>,
    /// The memory of each, with a unit. Not accounted if missing.
    pub(crate) memory: Option<Spanned<Value>>,
    /// The GPUs of each, without types.
    pub(crate) gpus: Option<Spanned<i64>>,
    /// The GPUs of each by type, in the order of their positions.
    #[serde(rename = "gpu", default)]
    pub(crate) devices: Vec<Spanned<GpuFile>>,
    /// The number of hosts.
    pub(crate) count: Option<Spanned<i64>>,
}

/// The part of a file that is about pools.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PoolsFile {
    /// The offset of the calendars' clock from UTC, the whole year: `+01:00`.
    pub utc_offset: Option<Spanned<String>>,
    /// The share of the machine for batch jobs. Missing: all of it.
    pub pool: Option<Spanned<PoolFile>>,
    /// The queues that divide it, in the order of their numbers.
    #[serde(rename = "queue", default)]
    pub queues: Vec<Spanned<QueueFile>>,
}

/// The share of the machine for batch jobs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PoolFile {
    /// Its processors, at all times that no rule of the calendar is about. Required of simulated machines.
    pub cpus: Option<Spanned<i64>>,
    /// Its memory then, with a unit. Not accounted if missing.
    pub memory: Option<Spanned<Value>>,
    /// For the daemon: its GPUs, at all times. None if missing.
    pub gpus: Option<Spanned<i64>>,
    /// The times at which it has more or less.
    pub calendar: Vec<Spanned<RuleFile>>,
}

/// A queue and its part of the pool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QueueFile {
    /// Its name.
    pub name: Spanned<String>,
    /// As of the pool. Missing from an only queue: all of the pool's.
    pub cpus: Option<Spanned<i64>>,
    /// As of the pool, and of its processors.
    pub memory: Option<Spanned<Value>>,
    /// As of the pool. Missing from an only queue: all of the pool's; from one of several: none.
    pub gpus: Option<Spanned<i64>>,
    /// As of the pool.
    #[serde(default)]
    pub calendar: Vec<Spanned<RuleFile>>,
    /// Its policy, if it differs from that of all others.
    pub policy: Option<Spanned<String>>,
    /// For the daemon: a second policy beside that of the queue, which starts no job.
    pub shadow: Option<Spanned<Value>>,
    /// The users with access.
    #[serde(default)]
    pub users: Vec<Spanned<Account>>,
    /// The groups with access.
    #[serde(default)]
    pub groups: Vec<Spanned<Account>>,
    /// For the daemon: the horizon of the policy.
    pub horizon: Option<Spanned<Value>>,
    /// For the daemon: the time limit of a job without one.
    pub default_time: Option<Spanned<Value>>,
    /// For the daemon: the largest time limit.
    pub max_time: Option<Spanned<Value>>,
    /// For the daemon: the memory of a job that requests none.
    pub default_memory: Option<Spanned<Value>>,
    /// For the daemon: whether its jobs have their processors for themselves, also while these are idle.
    pub strict: Option<Spanned<Value>>,
    /// Whether users may pause their jobs.
    pub pause: Option<Spanned<Value>>,
    /// For the daemon: the time from the planned start of a job to the latest start that it is promised.
    pub promise_slack: Option<Spanned<Value>>,
    /// For the daemon: the time after which a job is idle that uses almost no processor time.
    pub idle_after: Option<Spanned<Value>>,
    /// For the daemon: what happens to an idle job.
    pub idle_action: Option<Spanned<Value>>,
    /// For the daemon: whether programs with the set-user-ID bit give its jobs no rights.
    pub no_new_privileges: Option<Spanned<Value>>,
    /// For the daemon: a program that runs before each job, and its arguments.
    pub prolog: Option<Spanned<Value>>,
    /// For the daemon: the time after which it is killed.
    pub prolog_time: Option<Spanned<Value>>,
    /// For the daemon: a program that runs after each job, and its arguments.
    pub epilog: Option<Spanned<Value>>,
    /// For the daemon: the time after which it is killed.
    pub epilog_time: Option<Spanned<Value>>,
    /// For the daemon: how jobs are written out and restarted.
    pub checkpoint: Option<Spanned<CheckpointFile>>,
}

/// How the jobs of a queue are written out and restarted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointFile {
    /// A program that writes a job out, and its arguments.
    pub command: Option<Spanned<Value>>,
    /// A program that continues a job that was written out, and its arguments.
    pub restart: Option<Spanned<Value>>,
}

impl QueueFile {
    /// Returns a queue of this name without any setting.
    #[expect(clippy::missing_panics_doc, reason = "a queue needs a name only")]
    pub fn named(name: &str) -> QueueFile {
        let nothing = toml::from_str("name = ''").expect("a queue needs a name only");
        QueueFile { name: Spanned::new(0..0, name.to_owned()), ..nothing }
    }

    /// Returns the first field that only the daemon heeds, and its place.
    pub(crate) fn field_of_daemon(&self) -> Option<(&'static str, Range<usize>)> {
        let fields = [
            ("shadow", &self.shadow),
            ("horizon", &self.horizon),
            ("default-time", &self.default_time),
            ("max-time", &self.max_time),
            ("default-memory", &self.default_memory),
            ("strict", &self.strict),
            ("pause", &self.pause),
            ("promise-slack", &self.promise_slack),
            ("idle-after", &self.idle_after),
            ("idle-action", &self.idle_action),
            ("no-new-privileges", &self.no_new_privileges),
            ("prolog", &self.prolog),
            ("prolog-time", &self.prolog_time),
            ("epilog", &self.epilog),
            ("epilog-time", &self.epilog_time),
        ];
        let first = fields.into_iter().find_map(|(name, value)| Some((name, value.as_ref()?.span())));
        first.or_else(|| Some(("checkpoint", self.checkpoint.as_ref()?.span())))
    }
}

/// A user or a group. The reader of the file looks it up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a user or a group is a name, or a number of 0 or more")]
pub enum Account {
    /// By number.
    Number(u32),
    /// By name.
    Name(String),
}

/// Some hours of some days of each week, and the resources at that time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleFile {
    /// Days and ranges of them: `mon-fri`, `sat,sun`. Missing: every day.
    pub days: Option<Spanned<String>>,
    /// From this time of the day: `08:00`. Missing: from its beginning.
    pub from: Option<Spanned<String>>,
    /// To this one, on the next day if it is not later. Missing: to the end of the day.
    pub to: Option<Spanned<String>>,
    /// The processors then. Missing: as at all other times.
    pub cpus: Option<Spanned<i64>>,
    /// The memory then. Missing: as at all other times.
    pub memory: Option<Spanned<Value>>,
}
