//! The program that becomes the command.
//!
//! Operations that may block for long happen here, because the shim can kill this process. `user_part` has those that the user
//! of the job can make block.

use miserly_attempt::{AttemptSpec, Files as _, OutputFile, RecordError, StartFailure, files};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use miserly_cgroup::Capability;
use rustix::process::{
    Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setpriority_process, setrlimit,
    setsid,
};

use super::user_part::UserPart;
use super::{job_cgroup, private_folders, user};
use crate::folder::Folder;
use crate::session::MARK;
use crate::shortage::{LaunchStep, is_shortage, is_shortage_of_record};
use crate::sys;
use miserly_attempt::shim::{SetupFailure, SetupMessage};

/// Prepares, waits for permission and becomes the command. Returns only on failure.
pub(super) fn become_command(dir: &Path) -> Result<(), String> {
    let stream =
        UnixStream::from(io::stdin().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?);
    if let Err(failure) = execute(&stream, dir) {
        // Without a shim there is no recipient.
        let _ = send(&stream, &SetupMessage::Failed(failure));
    }
    Ok(())
}

/// Leads a new session, ordered to die with the shim, and executes the command when permitted.
///
/// What needs resources of the machine is done first. A shortage there leaves an attempt that never ran. All that follows has
/// the rights of the job's user, and is part of the job's window.
fn execute(stream: &UnixStream, dir: &Path) -> Result<(), SetupFailure> {
    lead_session().map_err(|error| short_or(&error, StartFailure::setup("a session", &error)))?;
    let folder = Folder::open(dir)
        .map_err(|error| short_record_or(&error, StartFailure::setup("its folder", &error)))?;
    let spec = folder
        .read::<AttemptSpec>(files::SPEC)
        .map_err(|error| short_record_or(&error, StartFailure::setup("its specification", &error)))?;
    let Some(spec) = spec else { return Err(StartFailure::Ended.into()) };
    // From here on a kill of the group reaches this process and all its children.
    job_cgroup::enter(&spec).map_err(|error| StartFailure::setup("its control group", &error))?;
    reset_inherited();
    // The user of the job cannot change the folder.
    let socket = spec.interaction.map(|_| folder.relay_socket()).transpose();
    let socket = socket.map_err(|error| short_or(&error, StartFailure::setup("its socket", &error)))?;
    let program = program(&folder, &spec)?;
    if let Some(folders) = &spec.private_folders {
        private_folders::enter(folders)
            .map_err(|error| short_or(&error, StartFailure::setup("its private folders", &error)))?;
    }
    let prepared = UserPart { stream, folder: &folder, spec: &spec }.prepare(program, socket)?;
    send(stream, &SetupMessage::Here)
        .map_err(|error| short_or(&error, StartFailure::setup("its shim", &error)))?;
    // Without permission the shim is dead, or ends the job.
    if is_permitted(stream) {
        Err(prepared.run(&folder, &spec).into())
    } else {
        Err(StartFailure::Ended.into())
    }
}

fn lead_session() -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    setsid()?;
    sys::default_signals();
    Ok(())
}

fn short_or(error: &io::Error, failure: StartFailure) -> SetupFailure {
    SetupFailure::new(failure, is_shortage(error))
}

fn short_record_or(error: &RecordError, failure: StartFailure) -> SetupFailure {
    SetupFailure::new(failure, is_shortage_of_record(error))
}

pub(super) fn send(mut stream: &UnixStream, message: &SetupMessage) -> io::Result<()> {
    stream.write_all(format!("{}\n", serde_json::to_string(message)?).as_bytes())
}

fn is_permitted(stream: &UnixStream) -> bool {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).is_ok_and(|read| read > 0)
}

/// What the command needs: its program and its open files.
pub(super) struct Prepared {
    pub(super) program: PathBuf,
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: File,
    pub(super) stderr: File,
    /// Whether the input is a terminal, which is also output and error.
    pub(super) has_terminal: bool,
    /// Variables of the user's session. Those of the submission precede them.
    pub(super) variables: Vec<(OsString, OsString)>,
}

impl Prepared {
    /// Executes the command. Returns the reason of a failure.
    fn run(self, folder: &Folder, spec: &AttemptSpec) -> StartFailure {
        if let Err(failure) = self.finish(spec) {
            return failure;
        }
        let arguments =
            if spec.script.is_some() { &spec.argv[..] } else { spec.argv.get(1..).unwrap_or_default() };
        let mut command = Command::new(&self.program);
        command.args(arguments).env_clear().envs(self.variables);
        command.envs(spec.env.iter().map(|(name, value)| (name, value)));
        // By it a daemon finds the processes that left the session of a job without a shim.
        command.env(MARK, folder.path());
        let (stdout, stderr) = match self.stdin.as_ref().filter(|_| self.has_terminal) {
            Some(terminal) => match (terminal.try_clone(), terminal.try_clone()) {
                (Ok(stdout), Ok(stderr)) => (stdout, stderr),
                (Err(error), _) | (_, Err(error)) => return StartFailure::setup("its terminal", &error),
            },
            None => (self.stdout.into(), self.stderr.into()),
        };
        command.stdin(self.stdin.map_or_else(Stdio::null, Stdio::from)).stdout(stdout).stderr(stderr);
        let error = command.exec();
        StartFailure::Program { path: self.program, error: error.to_string() }
    }

    /// Does what has effects outside the attempt, and sets all other inherited properties.
    fn finish(&self, spec: &AttemptSpec) -> Result<(), StartFailure> {
        truncate(&self.stdout, &spec.stdout)?;
        if let Some(output) = &spec.stderr {
            truncate(&self.stderr, output)?;
        }
        lower(Resource::Data, spec.limits.memory.filter(|_| !limits_memory(spec)))
            .map_err(|error| StartFailure::setup("its memory limit", &error))?;
        // A process of another user cannot raise its own priority, whatever the daemon or PAM permit.
        for resource in [Resource::Nice, Resource::Rtprio] {
            lower(resource, spec.user.as_ref().map(|_| 0))
                .map_err(|error| StartFailure::setup("its limit of priority", &error))?;
        }
        limit_files(spec.limits.files)
            .map_err(|error| StartFailure::setup("its limit of open files", &error))?;
        let in_group = spec.cgroup.as_ref().is_some_and(|cgroup| cgroup.can.contains(&Capability::Pids));
        lower(Resource::Nproc, spec.limits.processes.filter(|_| !in_group))
            .map_err(|error| StartFailure::setup("its limit of processes", &error))
    }
}

/// Returns whether the control group limits the memory of all processes together.
fn limits_memory(spec: &AttemptSpec) -> bool {
    spec.cgroup.as_ref().is_some_and(|cgroup| cgroup.can.contains(&Capability::MemoryMax))
}

/// Removes the content of an output file that is not appended to. A device has none.
fn truncate(file: &File, output: &OutputFile) -> Result<(), StartFailure> {
    let truncate = || {
        let has_content = file.metadata()?.is_file();
        if has_content && !output.append { file.set_len(0) } else { Ok(()) }
    };
    truncate()
        .map_err(|error| StartFailure::OutputFile { path: output.path.clone(), error: error.to_string() })
}

/// Resets what the daemon may have inherited: its nice value, its weight for the kernel's
/// out-of-memory killer, and its limit of core dumps, which the job may raise.
///
/// Without the right to do so, the value of the daemon stays.
pub(super) fn reset_inherited() {
    let _ = setpriority_process(None, 0);
    let _ = std::fs::write("/proc/self/oom_score_adj", "0");
    let maximum = getrlimit(Resource::Core).maximum;
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum });
}

/// Lowers a soft and hard limit.
fn lower(resource: Resource, limit: Option<u64>) -> io::Result<()> {
    let Some(limit) = limit else { return Ok(()) };
    let maximum = getrlimit(resource).maximum.map_or(limit, |maximum| maximum.min(limit));
    Ok(setrlimit(resource, Rlimit { current: Some(maximum), maximum: Some(maximum) })?)
}

/// Sets the soft limit of open files, which the job may raise.
fn limit_files(soft: Option<u64>) -> io::Result<()> {
    let Some(soft) = soft else { return Ok(()) };
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = Some(maximum.map_or(soft, |maximum| maximum.min(soft)));
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
}

/// Returns the program: the script, which is written, or the first argument.
fn program(folder: &Folder, spec: &AttemptSpec) -> Result<PathBuf, SetupFailure> {
    let in_memory = |text| {
        LaunchStep::WriteScript.pass(folder.path())?;
        user::script_in_memory(text)
    };
    match (&spec.script, spec.argv.first()) {
        (Some(text), _) => if spec.user.is_some() { in_memory(text) } else { folder.write_script(text) }
            .map_err(|error| short_or(&error, StartFailure::setup("its script", &error))),
        (None, Some(program)) => Ok(program.into()),
        (None, None) => Err(StartFailure::setup("its command", &"there is none").into()),
    }
}
