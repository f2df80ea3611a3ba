//! The program that becomes the command.
//!
//! Operations that may block for long happen here, because the shim can kill this process.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::Mode;
use rustix::process::{
    Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setpriority_process, setrlimit,
    setsid, umask,
};

use super::main_process::SetupMessage;
use crate::end::StartFailure;
use crate::folder::{self, Folder};
use crate::session::MARK;
use crate::spec::{AttemptSpec, OutputFile};
use crate::sys;

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
fn execute(stream: &UnixStream, dir: &Path) -> Result<(), StartFailure> {
    let lead_session = || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        setsid()?;
        sys::default_signals();
        send(stream, &SetupMessage::Here)
    };
    lead_session().map_err(|error| StartFailure::setup("a session", &error))?;
    let folder = Folder::open(dir).map_err(|error| StartFailure::setup("its folder", &error))?;
    let spec = folder
        .read::<AttemptSpec>(folder::SPEC)
        .map_err(|error| StartFailure::setup("its specification", &error))?;
    // Without permission the shim is dead.
    match (spec, is_permitted(stream)) {
        (Some(spec), true) => Err(run(&folder, &spec)),
        _ => Err(StartFailure::Ended),
    }
}

fn send(mut stream: &UnixStream, message: &SetupMessage) -> io::Result<()> {
    stream.write_all(format!("{}\n", serde_json::to_string(message)?).as_bytes())
}

fn is_permitted(stream: &UnixStream) -> bool {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).is_ok_and(|read| read > 0)
}

/// Executes the command. Returns the reason of a failure.
fn run(folder: &Folder, spec: &AttemptSpec) -> StartFailure {
    match prepare(spec).and_then(|outputs| Ok((command(folder, spec)?, outputs))) {
        Ok(((mut command, path), (stdout, stderr))) => {
            let error = command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).exec();
            StartFailure::Program { path, error: error.to_string() }
        }
        Err(failure) => failure,
    }
}

/// Sets all inherited properties except arguments and environment. Returns the output files.
fn prepare(spec: &AttemptSpec) -> Result<(File, File), StartFailure> {
    umask(Mode::from_raw_mode(spec.umask));
    let failed = |error: io::Error| StartFailure::WorkingDirectory {
        path: spec.cwd.clone(),
        error: error.to_string(),
    };
    std::env::set_current_dir(&spec.cwd).map_err(failed)?;
    let stdout = open(&spec.stdout)?;
    let stderr = match &spec.stderr {
        Some(output) => open(output)?,
        None => stdout.try_clone().map_err(|error| StartFailure::setup("its outputs", &error))?,
    };
    reset_inherited();
    limit_memory(spec.limits.memory).map_err(|error| StartFailure::setup("its memory limit", &error))?;
    limit_files(spec.limits.files).map_err(|error| StartFailure::setup("its limit of open files", &error))?;
    Ok((stdout, stderr))
}

fn open(output: &OutputFile) -> Result<File, StartFailure> {
    let mut options = OpenOptions::new();
    options.create(true).append(output.append).write(true).truncate(!output.append);
    let failed =
        |error: io::Error| StartFailure::OutputFile { path: output.path.clone(), error: error.to_string() };
    options.open(&output.path).map_err(failed)
}

/// Resets what the daemon may have inherited: its nice value, its weight for the kernel's
/// out-of-memory killer, and its limit of core dumps, which the job may raise.
///
/// Without the right to do so, the value of the daemon stays.
fn reset_inherited() {
    let _ = setpriority_process(None, 0);
    let _ = std::fs::write("/proc/self/oom_score_adj", "0");
    let maximum = getrlimit(Resource::Core).maximum;
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum });
}

/// Lowers a soft and hard limit.
fn limit_memory(bytes: Option<u64>) -> io::Result<()> {
    let Some(bytes) = bytes else { return Ok(()) };
    let maximum = getrlimit(Resource::Data).maximum.map_or(bytes, |maximum| maximum.min(bytes));
    Ok(setrlimit(Resource::Data, Rlimit { current: Some(maximum), maximum: Some(maximum) })?)
}

/// Sets the soft limit of open files, which the job may raise.
fn limit_files(soft: Option<u64>) -> io::Result<()> {
    let Some(soft) = soft else { return Ok(()) };
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = Some(maximum.map_or(soft, |maximum| maximum.min(soft)));
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
}

/// Returns the command and the path of its program.
fn command(folder: &Folder, spec: &AttemptSpec) -> Result<(Command, PathBuf), StartFailure> {
    let (program, arguments) = match (&spec.script, spec.argv.split_first()) {
        (Some(text), _) => {
            let script =
                folder.write_script(text).map_err(|error| StartFailure::setup("its script", &error))?;
            (script, spec.argv.as_slice())
        }
        (None, Some((program, arguments))) => (program.into(), arguments),
        (None, None) => return Err(StartFailure::setup("its command", &"there is none")),
    };
    let mut command = Command::new(&program);
    command.args(arguments).env_clear().envs(spec.env.iter().map(|(name, value)| (name, value)));
    // By it a daemon finds the processes that left the session of a job without a shim.
    command.env(MARK, folder.path());
    Ok((command, program))
}
