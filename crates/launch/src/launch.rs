//! Launching an attempt: creates the folder, spawns the shim and performs the handshake.

use miserly_attempt::{
    AttemptSpec, BootTime, Connection as _, Files as _, Handshake, LaunchError, REPLY_TIMEOUT, ShimCommand,
    SpecRecord, files,
};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::clock::MachineClock as _;
use crate::clock::current_boot;
use crate::connection::Connection;
use crate::fault;
use crate::folder::{self, Folder};
use crate::handle::Shim;
use crate::shortage::LaunchStep;
use crate::wait;

/// Starts an attempt under a shim of its own. The caller need not wait for the shim process.
///
/// `exe shim DIR` must call [`shim::run`](crate::shim::run). `dir` must not exist; it is created.
/// On return, the shim holds the lock and is starting the command.
/// [`Shim::end`] reports a command that could not be started.
///
/// Blocks on the disk and on the shim: about ten milliseconds, at most [`REPLY_TIMEOUT`].
///
/// # Errors
/// Except after [`LaunchError::Unclear`], the command has not run and never will.
pub fn launch(exe: &Path, dir: &Path, spec: &AttemptSpec) -> Result<Shim, LaunchError> {
    spec.check()?;
    let folder = Folder::create(dir)?;
    // The lock file must exist before the disk is full.
    folder.create_lock()?;
    let boot_id = current_boot().ok();
    folder.write(files::SPEC, &SpecRecord { spec, boot_id })?;
    let launched = spawn(exe, &folder).and_then(|stream| handshake(&folder, stream));
    launched.map_err(|error| void_failed(dir, error))
}

/// Spawns the shim and returns the connection to it.
fn spawn(exe: &Path, folder: &Folder) -> Result<UnixStream, LaunchError> {
    let spawn = || {
        LaunchStep::Spawn.pass(folder.path())?;
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(exe);
        command.arg0("miserly").arg("shim").arg(folder.path()).env_clear();
        fault::pass_on(&mut command);
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(folder.log()?);
        // The program copies itself and exits at once. The copy is the shim.
        let status = exit_in_time(command.spawn()?)?;
        if status.success() { Ok(ours) } else { Err(io::Error::other(status.to_string())) }
    };
    spawn().map_err(|error| LaunchError::Spawn { exe: exe.to_owned(), error })
}

/// Waits for the exit of a program. Kills it if it takes too long, because it was stopped.
fn exit_in_time(mut program: Child) -> io::Result<ExitStatus> {
    let until = BootTime::now().after(REPLY_TIMEOUT);
    let exit = pidfd_open(Pid::from_child(&program), PidfdFlags::empty())?;
    if !wait::readable(&[exit.as_fd()], until)? {
        program.kill()?;
    }
    program.wait()
}

/// Waits for the handshake and lets the shim continue.
fn handshake(folder: &Folder, stream: UnixStream) -> Result<Shim, LaunchError> {
    let log = folder.file(folder::LOG);
    let died = || LaunchError::Died { reason: fs::read_to_string(&log).unwrap_or_default() };
    let broken = |error: &dyn ToString| LaunchError::Died { reason: error.to_string() };
    let message = receive_handshake(stream).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => died(),
        _ => broken(&error),
    });
    let (message, connection) = message?;
    if let Handshake::Refused(refusal) = message {
        return Err(refusal.into());
    }
    let identity = folder.read(files::SHIM)?.ok_or_else(died)?;
    let connected = Shim::from_connection(folder, identity, connection).map_err(|error| broken(&error))?;
    let mut shim = connected.ok_or_else(died)?;
    // The shim waits for this command, so it cannot exit before its pidfd is open.
    shim.request(&ShimCommand::Status).map_err(|error| broken(&error))?;
    Ok(shim)
}

fn receive_handshake(stream: UnixStream) -> io::Result<(Handshake, Connection)> {
    let mut connection = Connection::new(stream)?;
    let until = BootTime::now().after(REPLY_TIMEOUT);
    loop {
        if let Some(message) = connection.receive()? {
            return Ok((message, connection));
        }
        if !wait::readable(&[connection.as_fd()], until)? {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the shim does not begin"));
        }
    }
}

/// Marks a failed launch as void so that it never runs.
fn void_failed(dir: &Path, error: LaunchError) -> LaunchError {
    let voided = || {
        let folder = Folder::open(dir).ok()?;
        let lock = folder.lock().ok()??;
        let ran = folder.has(files::STARTED).ok()?;
        if ran { None } else { folder.void(&lock).ok() }
    };
    match (voided(), error) {
        (Some(()), error) => error,
        (None, error) => LaunchError::Unclear { dir: dir.to_owned(), error: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, kill_process};

    use super::*;

    #[test]
    fn a_program_that_is_stopped_is_killed_in_time() {
        let program = Command::new("sleep").arg("300").spawn().unwrap();
        kill_process(Pid::from_child(&program), Signal::STOP).unwrap();
        assert!(!exit_in_time(program).unwrap().success());
        let program = Command::new("true").spawn().unwrap();
        assert!(exit_in_time(program).unwrap().success());
    }
}
