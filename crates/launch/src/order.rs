//! What is to be run, where, and until when.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lossless;
use crate::time::BootTime;

/// One attempt at a job, complete: the shim asks nobody for more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The job's number.
    pub job: u64,
    /// Which attempt at it this is, from 1.
    pub attempt: u32,
    /// The program and its arguments; with a script, the script's arguments alone. A program without a slash is looked
    /// for in the `PATH` of `env`.
    #[serde(with = "lossless")]
    pub argv: Vec<OsString>,
    /// The text of a script, which is written to a file of the attempt's folder and run by its interpreter line, and
    /// without one by `/bin/sh`.
    pub script: Option<String>,
    /// The directory in which the command begins; absolute. Where it does not exist, the attempt fails.
    #[serde(with = "lossless")]
    pub cwd: PathBuf,
    /// The environment: exactly this and nothing else.
    #[serde(with = "lossless")]
    pub env: Vec<(OsString, OsString)>,
    /// Where standard output goes. Standard input is empty.
    pub stdout: Output,
    /// Where standard error goes; `None`: with standard output, in the order in which things are written.
    pub stderr: Option<Output>,
    /// The mask of the permissions of new files, the outputs among them; 0 to 0o777.
    pub umask: u32,
    /// What the kernel keeps the processes from.
    pub limits: Limits,
    /// How much the processes give way to others of their class, 0 to 19.
    pub nice: i32,
    /// The window, or before it.
    pub mode: Mode,
    /// How long before the end of the window the job is asked to leave (`SIGTERM`). At the end it is killed.
    pub grace: Duration,
    /// How long the job stays stopped while no daemon is connected; after that it goes on.
    pub alone: Duration,
    /// For a job that takes turns with others on its processors: how long it may run, and the time in which it is stopped does not count. It
    /// begins stopped, until its turn comes. The end of its window is then whatever that comes to, and that of `mode` means nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Duration>,
}

/// A file for output. It is created where it does not exist, its folder is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The file, every pattern expanded; relative to the directory of the job.
    #[serde(with = "lossless")]
    pub path: PathBuf,
    /// Whether what is in it stays.
    pub append: bool,
}

/// Limits of each process of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of data: heap, private writable mappings (`RLIMIT_DATA`).
    ///
    /// Not `RLIMIT_AS`: runtimes of many languages reserve far more address space than they ever use, and would fail
    /// under a limit that their job honours. Neither sees the sum over the processes of a job.
    pub memory: Option<u64>,
    /// Bytes of a core file; 0 for none.
    pub core: Option<u64>,
    /// Open files, as far as the job does not ask for more itself (the soft limit of `RLIMIT_NOFILE`); as its daemon has it, if not
    /// given.
    #[serde(default)]
    pub files: Option<u64>,
}

/// How a job runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// In its window: on processors of its own, until the end.
    Critical {
        /// The processors, by number.
        cpus: Vec<u32>,
        /// The end of the window.
        end: BootTime,
    },
    /// Before its window, on what others leave idle (`SCHED_IDLE`).
    Early {
        /// The processors on which it may run, by number.
        cpus: Vec<u32>,
        /// Its window, as far as it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<Window>,
    },
}

/// A window that has not begun. Where no daemon says otherwise, the shim begins and ends it by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// When it begins.
    pub start: BootTime,
    /// When it ends.
    pub end: BootTime,
    /// The processors that are the job's own in it, by number.
    pub cpus: Vec<u32>,
}

impl Mode {
    /// The processors on which the job may run.
    pub fn cpus(&self) -> &[u32] {
        match self {
            Mode::Critical { cpus, .. } | Mode::Early { cpus, .. } => cpus,
        }
    }

    /// The end of the window, if it has begun.
    pub fn end(&self) -> Option<BootTime> {
        match self {
            Mode::Critical { end, .. } => Some(*end),
            Mode::Early { .. } => None,
        }
    }

    /// The window, if it is still to begin, as far as it is known.
    pub fn window(&self) -> Option<&Window> {
        match self {
            Mode::Critical { .. } => None,
            Mode::Early { window, .. } => window.as_ref(),
        }
    }
}

/// An order that cannot be carried out, whatever the state of the machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// Neither a program nor a script.
    #[error("there is nothing to run: no program and no script")]
    NoCommand,
    /// A path that would depend on where the daemon runs.
    #[error("the working directory {} is not absolute", .0.display())]
    Relative(PathBuf),
    /// No processors.
    #[error("there are no processors to run on")]
    NoCpus,
    /// A processor that the kernel's sets of processors cannot hold.
    #[error("there is no processor {0}; the highest is {max}", max = crate::cpus::MAX)]
    NoSuchCpu(u32),
    /// A string that the kernel would cut short.
    #[error("{what} {text:?} contains a zero byte")]
    ZeroByte {
        /// What it is.
        what: &'static str,
        /// The string.
        text: OsString,
    },
    /// A name in the environment that would be read as another.
    #[error("a variable of the environment is called {0:?}; a name is not empty and has no =")]
    Variable(OsString),
    /// Out of range.
    #[error("{what} is {value}, which is not within {range}")]
    Range {
        /// What it is.
        what: &'static str,
        /// Its value.
        value: i64,
        /// The range.
        range: &'static str,
    },
}

impl Order {
    /// Whether the order makes sense by itself.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn check(&self) -> Result<(), OrderError> {
        self.draft().check()?;
        check_cpus(self.mode.cpus())?;
        self.mode.window().map_or(Ok(()), |window| check_cpus(&window.cpus))?;
        check_range("nice", self.nice.into(), 0..=19, "0 to 19")
    }

    fn draft(&self) -> Draft<'_> {
        let outputs = [Some(&self.stdout), self.stderr.as_ref()];
        Draft {
            argv: self.argv.iter().map(OsString::as_os_str).collect(),
            has_script: self.script.is_some(),
            cwd: &self.cwd,
            env: self.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())).collect(),
            outputs: outputs.into_iter().flatten().map(|output| output.path.as_path()).collect(),
            umask: self.umask,
        }
    }
}

/// The part of an order that whoever submits a job says, to be checked before there is an order.
#[derive(Clone, Debug)]
pub struct Draft<'a> {
    /// As [`Order::argv`].
    pub argv: Vec<&'a OsStr>,
    /// Whether there is an [`Order::script`].
    pub has_script: bool,
    /// As [`Order::cwd`].
    pub cwd: &'a Path,
    /// As [`Order::env`].
    pub env: Vec<(&'a OsStr, &'a OsStr)>,
    /// The files for output.
    pub outputs: Vec<&'a Path>,
    /// As [`Order::umask`].
    pub umask: u32,
}

impl Draft<'_> {
    /// Whether an order of it makes sense by itself.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn check(&self) -> Result<(), OrderError> {
        if !self.has_script && self.argv.is_empty() {
            return Err(OrderError::NoCommand);
        }
        if !self.cwd.is_absolute() {
            return Err(OrderError::Relative(self.cwd.to_owned()));
        }
        check_range("the umask", self.umask.into(), 0..=0o777, "0 to 0o777")?;
        self.check_strings()?;
        let wrong = |name: &OsStr| name.is_empty() || name.as_bytes().contains(&b'=');
        match self.env.iter().find(|(name, _)| wrong(name)) {
            Some((name, _)) => Err(OrderError::Variable((*name).to_owned())),
            None => Ok(()),
        }
    }

    fn check_strings(&self) -> Result<(), OrderError> {
        let arguments = self.argv.iter().map(|text| ("the argument", *text));
        let values = self.env.iter().flat_map(|(name, value)| [*name, *value]);
        let values = values.map(|text| ("in the environment,", text));
        let outputs = self.outputs.iter().map(|path| ("the output file", path.as_os_str()));
        let folder = [("the working directory", self.cwd.as_os_str())];
        let mut all = arguments.chain(values).chain(outputs).chain(folder);
        match all.find(|(_, text)| text.as_bytes().contains(&0)) {
            Some((what, text)) => Err(OrderError::ZeroByte { what, text: text.to_owned() }),
            None => Ok(()),
        }
    }
}

/// Whether a job could run on these processors on some machine.
pub(crate) fn check_cpus(cpus: &[u32]) -> Result<(), OrderError> {
    match cpus.iter().find(|cpu| **cpu > crate::cpus::MAX) {
        _ if cpus.is_empty() => Err(OrderError::NoCpus),
        Some(cpu) => Err(OrderError::NoSuchCpu(*cpu)),
        None => Ok(()),
    }
}

fn check_range(
    what: &'static str,
    value: i64,
    within: std::ops::RangeInclusive<i64>,
    range: &'static str,
) -> Result<(), OrderError> {
    if within.contains(&value) { Ok(()) } else { Err(OrderError::Range { what, value, range }) }
}
