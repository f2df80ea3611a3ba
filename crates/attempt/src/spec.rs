//! The specification of an attempt: command, processors and times.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use miserly_cgroup::Capability;
use serde::{Deserialize, Serialize};

use crate::boot::BootId;
use crate::lossless;
use crate::queue_program::QueuePrograms;
use crate::time::BootTime;

/// Highest accepted processor number, far beyond the limit of any kernel.
pub const MAX_CPU: u32 = 65_535;

/// The complete specification of one attempt. The shim needs no further input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptSpec {
    /// Job number.
    pub job: u64,
    /// Attempt number, from 1.
    pub attempt: u32,
    /// Program and arguments, or only the arguments if there is a script.
    ///
    /// A program name without a slash is looked up in the `PATH` of `env`.
    #[serde(with = "lossless")]
    pub argv: Vec<OsString>,
    /// Text of a script.
    ///
    /// It is written to a file of the attempt's folder. Its interpreter line runs it, or `/bin/sh`
    /// if there is none.
    pub script: Option<String>,
    /// Absolute working directory. The attempt fails if it does not exist.
    #[serde(with = "lossless")]
    pub cwd: PathBuf,
    /// Complete environment of the command.
    #[serde(with = "lossless")]
    pub env: Vec<(OsString, OsString)>,
    /// File of standard input, relative to the job's working directory. `None` is an empty input.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "lossless")]
    pub stdin: Option<PathBuf>,
    /// How clients reach the processes while they run. `None` is no way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction: Option<Interaction>,
    /// Standard output.
    pub stdout: OutputFile,
    /// Standard error. `None` shares the file of standard output and keeps the order of writes.
    pub stderr: Option<OutputFile>,
    /// File mode creation mask, also for the output files; 0 to 0o777.
    pub umask: u32,
    /// Resource limits of the processes.
    pub limits: ResourceLimits,
    /// Opportunistic, or in the reserved window.
    pub mode: RunMode,
    /// Priority over other programs in the window.
    #[serde(default)]
    pub critical_priority: CriticalPriority,
    /// Time from `SIGTERM` to the end of the window. `SIGKILL` follows at the end.
    pub grace: Duration,
    /// Time for which a stopped job stays stopped without a connected daemon. The shim then resumes
    /// it.
    pub orphan_resume_delay: Duration,
    /// Total running time of a job that takes turns with others on its processors.
    ///
    /// Stopped time does not count, and the job begins stopped. The end of the window follows from
    /// this limit, and the end in `mode` is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_limit: Option<Duration>,
    /// What happens to the job while it uses almost no processor time in its window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleRule>,
    /// Signal before the end of the window, if the user wants one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_signal: Option<EarlySignal>,
    /// How the job learns that its processors have changed, if it is resizable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resize_notice: Option<ResizeNotice>,
    /// Control group of the processes; `None` where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<CgroupSpec>,
    /// User of the command, if it is not the user of the shim. The shim is root's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<JobUser>,
    /// Folders that only the processes of the attempt have. The shim is root's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_folders: Option<PrivateFolders>,
    /// Programs of the job's queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_programs: Option<QueuePrograms>,
}

/// A specification as it is stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct SpecRecord<S = AttemptSpec> {
    /// The specification.
    #[serde(flatten)]
    pub spec: S,
    /// Boot of the instants of the window. `None` in a record of an earlier version.
    #[serde(default)]
    pub boot_id: Option<BootId>,
}

/// What happens to an idle job: one that uses almost no processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleRule {
    /// Time for which the job uses almost none until it is idle.
    pub after: Duration,
    /// Whether it is ended then. It is warned before.
    pub ends: bool,
}

impl IdleRule {
    /// Returns the time between two looks at the job.
    pub fn interval(&self) -> Duration {
        (self.after / 10).clamp(Duration::from_millis(100), Duration::from_secs(30))
    }

    /// Returns the time after which the job is warned.
    pub(crate) fn warn_after(&self) -> Duration {
        if self.ends { self.after / 5 * 4 } else { self.after }
    }
}

/// A signal before the end of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlySignal {
    /// Number of the signal in the kernel.
    pub signal: u8,
    /// Whether only the main process receives it.
    pub main_only: bool,
    /// Time from the signal to the end of the window.
    pub before: Duration,
}

/// How a resizable job learns that its processors have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResizeNotice {
    /// Whether the file [`CPUS`](crate::files::CPUS) of the attempt's folder has the processors of the job.
    pub file: bool,
    /// Number of the signal that it gets, in the kernel.
    pub signal: Option<u8>,
    /// Whether only the main process receives it.
    pub main_only: bool,
}

/// How clients reach the processes of a job while they run, through the relay of the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interaction {
    /// By the standard input, unless that is a file, and by signals.
    Stdin,
    /// By a terminal, which is standard input, output and error. Its output is also in the file of standard output.
    Terminal {
        /// Lines; 24 for 0, which is unknown.
        rows: u16,
        /// Characters of a line; 80 for 0, which is unknown.
        columns: u16,
    },
}

/// The user of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobUser {
    /// Name of the account.
    pub name: String,
    /// User number; not 0.
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
    /// All supplementary groups.
    pub groups: Vec<u32>,
    /// Whether programs with the set-user-ID bit get no rights by it (`no_new_privs`).
    pub no_new_privileges: bool,
    /// Service of PAM whose modules check the account and set up the session. `None` uses no PAM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pam: Option<String>,
}

/// An own `/tmp`, `/dev/shm` and System V IPC. All of it is removed with the last process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrivateFolders {
    /// Bytes of each of the folders; `None` is half of the machine's memory. The content counts as memory of the job.
    pub size: Option<u64>,
}

/// The control group of an attempt, which its shim creates.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupSpec {
    /// Folder of the tree in which the group is created.
    #[serde(with = "lossless")]
    pub tree: PathBuf,
    /// Folder of the group for shims, if it is not in the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shims: Option<PathBuf>,
    /// What the tree can do. The rest is left to the means of processes.
    pub can: Vec<Capability>,
    /// Bytes of memory of all processes together; `None` is no limit.
    pub memory: Option<u64>,
    /// Maximum number of processes and threads; `None` is no limit.
    pub pids: Option<u64>,
    /// Whether it may run on all processors before its window, which are not listed then: a list would end the partitions of other
    /// jobs.
    #[serde(default)]
    pub early_on_all: bool,
    /// Whether the groups of the tree have a higher weight while the job is in its window with a priority.
    #[serde(default)]
    pub raises: bool,
    /// Whether the processors of its window are taken from all other programs, as a partition.
    #[serde(default)]
    pub strict: bool,
    /// Whether the group is there already, with a program that hides devices. A new group would hide none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hides_devices: bool,
}

/// An output file. It is created if it does not exist; its directory is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// Path with all patterns expanded, relative to the job's working directory.
    #[serde(with = "lossless")]
    pub path: PathBuf,
    /// Whether existing content is kept.
    pub append: bool,
}

/// Resource limits of each process of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Bytes of data: heap and private writable mappings (`RLIMIT_DATA`).
    ///
    /// Not `RLIMIT_AS`: many runtimes reserve far more address space than they use. Neither limit
    /// covers the sum over the processes of a job.
    pub memory: Option<u64>,
    /// Open files: the soft limit of `RLIMIT_NOFILE`, which the job may raise.
    ///
    /// The limit of the daemon applies if this is `None`.
    #[serde(default)]
    pub files: Option<u64>,
    /// Processes and threads of all jobs and sessions of the user together (`RLIMIT_NPROC`).
    ///
    /// It is set where no control group limits those of the job.
    #[serde(default)]
    pub processes: Option<u64>,
}

/// The priority over other programs of a job in its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CriticalPriority {
    /// None: it has the priority of any other program.
    #[default]
    Off,
    /// The highest among ordinary programs: by the weight of the control group, or by nice values where there is none.
    Auto,
    /// Above all ordinary programs (`SCHED_RR`). Where the kernel refuses that, as `Auto`.
    RealTime,
}

/// The mode in which a job runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunMode {
    /// In its window, on reserved processors.
    Reserved {
        /// Processors, by number.
        cpus: Vec<u32>,
        /// End of the window.
        end: BootTime,
    },
    /// Before its window, on idle resources (`SCHED_IDLE`).
    Opportunistic {
        /// Processors on which the job may run, by number.
        cpus: Vec<u32>,
        /// The window, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<ReservedWindow>,
    },
    /// Without a process: the shim waits for the window.
    Waiting {
        /// The window, if the shim may begin it without a daemon.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<ReservedWindow>,
    },
}

/// A reserved window that has not begun.
///
/// The shim begins and ends it without a daemon unless a command changes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservedWindow {
    /// Start of the window.
    pub start: BootTime,
    /// End of the window.
    pub end: BootTime,
    /// Reserved processors, by number.
    pub cpus: Vec<u32>,
    /// What has some of the processors before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Predecessors>,
}

/// The attempts that have processors of a window before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predecessors {
    /// The names of their folders, which are beside that of the attempt.
    pub attempts: Vec<String>,
    /// The instant until which the window waits for their locks.
    pub until: BootTime,
}

impl RunMode {
    /// Returns the processors on which the job may run.
    pub fn cpus(&self) -> &[u32] {
        match self {
            RunMode::Reserved { cpus, .. } | RunMode::Opportunistic { cpus, .. } => cpus,
            RunMode::Waiting { .. } => &[],
        }
    }

    /// Returns the end of the window if the window has begun.
    pub fn end(&self) -> Option<BootTime> {
        match self {
            RunMode::Reserved { end, .. } => Some(*end),
            RunMode::Opportunistic { .. } | RunMode::Waiting { .. } => None,
        }
    }

    /// Returns the window if it is known and has not begun.
    pub fn window(&self) -> Option<&ReservedWindow> {
        match self {
            RunMode::Reserved { .. } => None,
            RunMode::Opportunistic { window, .. } | RunMode::Waiting { window } => window.as_ref(),
        }
    }
}

/// An error in a specification that no machine could run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The user of the command is root. Without a user, the command has the rights of its shim.
    #[error("the user of a command cannot be root")]
    Root,
    /// Neither a program nor a script is given.
    #[error("no command: give a program or a script")]
    NoCommand,
    /// A path that would depend on the working directory of the daemon.
    #[error("the working directory {} is not absolute", .0.display())]
    Relative(PathBuf),
    /// No processors are given.
    #[error("no processors given")]
    NoCpus,
    /// A processor number above the limit of the kernel's processor sets.
    #[error("processor {0} does not exist; the highest is {max}", max = MAX_CPU)]
    NoSuchCpu(u32),
    /// A string with a zero byte, which the kernel would truncate.
    #[error("{what} {text:?} contains a zero byte")]
    ZeroByte {
        /// Kind of string.
        what: &'static str,
        /// The string.
        text: OsString,
    },
    /// An invalid name of an environment variable.
    #[error("invalid name of an environment variable: {0:?}; a name is not empty and contains no =")]
    Variable(OsString),
    /// The umask is out of range.
    #[error("the umask is {0}; the range is 0 to 0o777")]
    Umask(u32),
}

impl AttemptSpec {
    /// Checks the specification without looking at the machine.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn check(&self) -> Result<(), SpecError> {
        self.command_spec().check()?;
        if !matches!(self.mode, RunMode::Waiting { .. }) {
            check_cpus(self.mode.cpus())?;
        }
        if self.user.as_ref().is_some_and(|user| user.uid == 0) {
            return Err(SpecError::Root);
        }
        self.mode.window().map_or(Ok(()), |window| check_cpus(&window.cpus))
    }

    fn command_spec(&self) -> CommandSpec<'_> {
        let outputs = [Some(&self.stdout), self.stderr.as_ref()];
        CommandSpec {
            argv: self.argv.iter().map(OsString::as_os_str).collect(),
            has_script: self.script.is_some(),
            cwd: &self.cwd,
            env: self.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())).collect(),
            input: self.stdin.as_deref(),
            outputs: outputs.into_iter().flatten().map(|output| output.path.as_path()).collect(),
            umask: self.umask,
        }
    }
}

/// The part of a specification that a submission determines, so that it can be checked at
/// submission.
#[derive(Clone, Debug)]
pub struct CommandSpec<'a> {
    /// See [`AttemptSpec::argv`].
    pub argv: Vec<&'a OsStr>,
    /// Whether there is an [`AttemptSpec::script`].
    pub has_script: bool,
    /// See [`AttemptSpec::cwd`].
    pub cwd: &'a Path,
    /// See [`AttemptSpec::env`].
    pub env: Vec<(&'a OsStr, &'a OsStr)>,
    /// Input file.
    pub input: Option<&'a Path>,
    /// Output files.
    pub outputs: Vec<&'a Path>,
    /// See [`AttemptSpec::umask`].
    pub umask: u32,
}

impl CommandSpec<'_> {
    /// Checks this part of a specification.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn check(&self) -> Result<(), SpecError> {
        if !self.has_script && self.argv.is_empty() {
            return Err(SpecError::NoCommand);
        }
        if !self.cwd.is_absolute() {
            return Err(SpecError::Relative(self.cwd.to_owned()));
        }
        if self.umask > 0o777 {
            return Err(SpecError::Umask(self.umask));
        }
        self.check_strings()?;
        let is_invalid = |name: &OsStr| name.is_empty() || name.as_bytes().contains(&b'=');
        match self.env.iter().find(|(name, _)| is_invalid(name)) {
            Some((name, _)) => Err(SpecError::Variable((*name).to_owned())),
            None => Ok(()),
        }
    }

    fn check_strings(&self) -> Result<(), SpecError> {
        let arguments = self.argv.iter().map(|text| ("the argument", *text));
        let values = self.env.iter().flat_map(|(name, value)| [*name, *value]);
        let values = values.map(|text| ("in the environment,", text));
        let input = self.input.into_iter().map(|path| ("the input file", path.as_os_str()));
        let outputs = self.outputs.iter().map(|path| ("the output file", path.as_os_str()));
        let folder = [("the working directory", self.cwd.as_os_str())];
        let mut all = arguments.chain(values).chain(input).chain(outputs).chain(folder);
        match all.find(|(_, text)| text.as_bytes().contains(&0)) {
            Some((what, text)) => Err(SpecError::ZeroByte { what, text: text.to_owned() }),
            None => Ok(()),
        }
    }
}

/// Checks that a job could run on these processors on some machine.
pub(crate) fn check_cpus(cpus: &[u32]) -> Result<(), SpecError> {
    match cpus.iter().find(|cpu| **cpu > MAX_CPU) {
        _ if cpus.is_empty() => Err(SpecError::NoCpus),
        Some(cpu) => Err(SpecError::NoSuchCpu(*cpu)),
        None => Ok(()),
    }
}
