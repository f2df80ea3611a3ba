//! From an order to a shim.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::LaunchError;
use crate::folder::{self, Folder};
use crate::handle::{PATIENCE, Shim};
use crate::line::Line;
use crate::order::Order;
use crate::time::BootTime;
use crate::told::{FirstWord, Told};
use crate::wait;

/// Starts an attempt under a shim of its own, which nobody has to wait for.
///
/// `exe shim DIR` must call [`shim::run`](crate::shim::run). `dir` is made, and must not exist. When this returns, the shim
/// has the lock and goes about starting the command; whether that succeeds is told by [`Shim::end`].
///
/// It waits for the disk and for the shim: some ten milliseconds, and [`PATIENCE`] at most.
///
/// # Errors
/// After any but [`LaunchError::Unclear`] the command has not run and never will.
pub fn launch(exe: &Path, dir: &Path, order: &Order) -> Result<Shim, LaunchError> {
    order.check()?;
    let folder = Folder::create(dir)?;
    // So that there is a lock to take when the disk is full.
    drop(folder.lock()?);
    folder.write(folder::ORDER, order)?;
    let launched = spawn(exe, &folder).and_then(|stream| meet(folder, stream));
    launched.map_err(|error| give_up(dir, error))
}

/// Starts the shim; a connection to it.
fn spawn(exe: &Path, folder: &Folder) -> Result<UnixStream, LaunchError> {
    let spawn = || {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(exe);
        command.arg("shim").arg(folder.path()).env_clear();
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(folder.log()?);
        // It leaves the shim behind and ends at once.
        let status = command.status()?;
        if status.success() { Ok(ours) } else { Err(io::Error::other(status.to_string())) }
    };
    spawn().map_err(|error| LaunchError::Spawn { exe: exe.to_owned(), error })
}

/// Waits for the first word of the shim, and lets it go on.
fn meet(folder: Folder, stream: UnixStream) -> Result<Shim, LaunchError> {
    let log = folder.file(folder::LOG);
    let died = || LaunchError::Died { said: fs::read_to_string(&log).unwrap_or_default() };
    let broken = |error: &dyn ToString| LaunchError::Died { said: error.to_string() };
    let word = first_word(stream).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => died(),
        _ => broken(&error),
    });
    let (word, line) = word?;
    if let FirstWord::Refused(refusal) = word {
        return Err(refusal.into());
    }
    let identity = folder.read(folder::SHIM)?.ok_or_else(died)?;
    let met = Shim::meet(folder, identity, line).map_err(|error| broken(&error))?;
    let mut shim = met.map_err(|_| died())?;
    // The shim waits for this, so that it cannot have gone before it was looked at.
    shim.tell(&Told::Hello).map_err(|error| broken(&error))?;
    Ok(shim)
}

fn first_word(stream: UnixStream) -> io::Result<(FirstWord, Line)> {
    let mut line = Line::new(stream)?;
    let until = BootTime::now().after(PATIENCE);
    loop {
        if let Some(word) = line.receive()? {
            return Ok((word, line));
        }
        if !wait::readable(&[line.as_fd()], until)? {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the shim does not begin"));
        }
    }
}

/// Sees to it that an attempt that failed to launch never runs, so that the error can say so.
fn give_up(dir: &Path, error: LaunchError) -> LaunchError {
    let given_up = || {
        let folder = Folder::open(dir).ok()?;
        let lock = folder.lock().ok()??;
        let ran = folder.has(folder::STARTED).ok()?;
        if ran { None } else { folder.void(&lock).ok() }
    };
    match (given_up(), error) {
        (Some(()), error) => error,
        (None, error) => LaunchError::Unclear { dir: dir.to_owned(), error: error.to_string() },
    }
}
