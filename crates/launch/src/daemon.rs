//! Launching and finding an attempt on this machine.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use miserly_attempt::{
    AttemptSpec, BootId, BootTime, DaemonHost, Files as _, FindError, Identity, KillResult, LaunchError,
    REPLY_TIMEOUT, RecordError, StartRecord,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::clock::{MachineClock as _, current_boot};
use crate::connection::Connection;
use crate::folder::{Folder, LOG};
use crate::handle::Shim;
use crate::session::JobSession;
use crate::shortage::LaunchStep;
use crate::{fault, identity, wait};

/// The state of an attempt.
pub type FoundAttempt = miserly_attempt::FoundAttempt<Shim>;

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
    miserly_attempt::launch(&mut Daemon { exe, dir }, spec).map(|shim| Shim::new(dir, shim))
}

/// Determines the state of the attempt in a folder and resolves it.
///
/// An attempt that was not started becomes void. The remaining processes of an attempt without a
/// shim are killed. Blocks for some seconds if processes die slowly, and at most [`REPLY_TIMEOUT`]
/// for a held lock.
///
/// # Errors
/// [`FindError`]. Nothing is resolved then, and the call can be repeated.
pub fn find(dir: &Path) -> Result<FoundAttempt, FindError> {
    find_until(dir, BootTime::now().after(REPLY_TIMEOUT))
}

/// As [`find`], but waits at most until an instant. If it is past, tries once.
///
/// # Errors
/// As [`find`].
pub fn find_until(dir: &Path, until: BootTime) -> Result<FoundAttempt, FindError> {
    let found = miserly_attempt::find(&mut Daemon { exe: Path::new(""), dir }, until)?;
    Ok(found.map(|shim| Shim::new(dir, shim)))
}

/// A daemon, for the attempt in a folder.
struct Daemon<'a> {
    /// Program of the shim, for a launch.
    exe: &'a Path,
    dir: &'a Path,
}

impl DaemonHost for Daemon<'_> {
    type Files = Folder;
    type Connection = Connection;
    type Process = OwnedFd;

    fn now(&self) -> BootTime {
        BootTime::now()
    }

    fn boot(&self) -> io::Result<BootId> {
        current_boot()
    }

    fn pause(&mut self, length: Duration) {
        thread::sleep(length);
    }

    fn wait_for(&mut self, connection: &Connection, until: BootTime) -> io::Result<bool> {
        wait::readable(&[connection.as_fd()], until)
    }

    fn create(&mut self) -> Result<Folder, RecordError> {
        Folder::create(self.dir)
    }

    fn open(&mut self) -> Result<Option<Folder>, RecordError> {
        self.dir.exists().then(|| Folder::open(self.dir)).transpose()
    }

    fn spawn(&mut self, folder: &Folder) -> Result<Connection, LaunchError> {
        let spawn = || {
            LaunchStep::Spawn.pass(folder.path())?;
            let (ours, theirs) = UnixStream::pair()?;
            let mut command = Command::new(self.exe);
            command.arg0("miserly").arg("shim").arg(folder.path()).env_clear();
            fault::pass_on(&mut command);
            command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(folder.log()?);
            // The program copies itself and exits at once. The copy is the shim.
            let status = exit_in_time(command.spawn()?)?;
            if status.success() { Connection::new(ours) } else { Err(io::Error::other(status.to_string())) }
        };
        spawn().map_err(|error| LaunchError::Spawn { exe: self.exe.to_owned(), error })
    }

    fn log(&self, folder: &Folder) -> String {
        fs::read_to_string(folder.file(LOG)).unwrap_or_default()
    }

    fn connect(&mut self, folder: &Folder) -> io::Result<Connection> {
        folder.connect().and_then(Connection::new)
    }

    fn process(&mut self, identity: &Identity) -> io::Result<Option<OwnedFd>> {
        identity::open_same(identity)
    }

    fn kill_job(
        &mut self,
        folder: &Folder,
        started: &StartRecord,
        until: BootTime,
    ) -> io::Result<KillResult> {
        JobSession::new(started, folder.path()).kill(until)
    }
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
