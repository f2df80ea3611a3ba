//! The part of a start that has the rights of the job's user: the session, the folder and the files.
//!
//! The user chooses all of it, and can make each step block or fail: by a FIFO, a dead mount, a lease, a file system or a module
//! of PAM. So it belongs to the window of the job, which does not move for it. The preparing program announces each step as the
//! failure that the job has if the window ends in it. It repeats a step that lacks a resource, and asks for no other attempt.
//!
//! > **Architecture invariant:** nothing of this part leaves an attempt that never ran.

use miserly_attempt::{AttemptSpec, Files as _, Interaction, OutputFile, StartFailure};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, tee};
use rustix::process::umask;

use super::exec::{Prepared, send};
use super::relay::{self, RelayParts};
use super::{private_folders, user};
use crate::fault::FaultPoint;
use crate::folder::Folder;
use crate::shortage::{LaunchStep, is_shortage};
use miserly_attempt::shim::SetupMessage;

/// Text of a step in which the window ends.
const NO_ANSWER: &str = "no answer before the end of the window";
/// Pause before a step that lacked a resource is repeated.
const PAUSE: Duration = Duration::from_millis(100);

/// The part of a start that has the rights of the job's user.
pub(super) struct UserPart<'a> {
    /// Connection to the shim.
    pub(super) stream: &'a UnixStream,
    pub(super) folder: &'a Folder,
    pub(super) spec: &'a AttemptSpec,
}

impl UserPart<'_> {
    /// Becomes the user, enters the working directory, opens the files and starts the relay of an interactive job.
    pub(super) fn prepare(
        &self,
        program: PathBuf,
        socket: Option<OwnedFd>,
    ) -> Result<Prepared, StartFailure> {
        let variables = self.become_user()?;
        umask(Mode::from_raw_mode(self.spec.umask));
        self.enter_directory()?;
        let stdin = self.spec.stdin.as_deref().map(|path| self.open_input(path)).transpose()?;
        let stdout = self.open_output(&self.spec.stdout, self.has_terminal())?;
        let stderr = match &self.spec.stderr {
            Some(output) => self.open_output(output, false)?,
            None => stdout.try_clone().map_err(|error| StartFailure::setup("its outputs", &error))?,
        };
        let (stdin, has_terminal) = self.start_relay(stdin, &stdout, socket)?;
        Ok(Prepared { program, stdin, stdout, stderr, has_terminal, variables })
    }

    fn has_terminal(&self) -> bool {
        matches!(self.spec.interaction, Some(Interaction::Terminal { .. }))
    }

    /// Gives up the rights of the shim. Returns the variables of the user's session.
    fn become_user(&self) -> Result<Vec<(OsString, OsString)>, StartFailure> {
        let Some(user) = &self.spec.user else { return Ok(vec![]) };
        let failure = |error: &dyn ToString| StartFailure::setup("its user", error);
        if let Some(service) = &user.pam {
            self.announce(failure(&format!("{NO_ANSWER} (PAM, service {service})")));
        }
        user::become_user(user).map_err(|error| failure(&error))
    }

    fn enter_directory(&self) -> Result<(), StartFailure> {
        let path = &self.spec.cwd;
        let hidden = private_folders::hides(self.spec, path);
        let hint = if hidden { "; the job has a folder of its own there" } else { "" };
        self.repeat(
            || std::env::set_current_dir(path),
            |error| StartFailure::WorkingDirectory { path: path.clone(), error: format!("{error}{hint}") },
        )
    }

    fn open_input(&self, path: &Path) -> Result<OwnedFd, StartFailure> {
        self.repeat(
            || open_readable(path).map(OwnedFd::from),
            |error| StartFailure::InputFile { path: path.to_owned(), error },
        )
    }

    /// Opens an output file. Its content stays until the command is permitted. With `readable` the relay also reads from it, if
    /// it is a regular file that permits this.
    fn open_output(&self, output: &OutputFile, readable: bool) -> Result<File, StartFailure> {
        let open = || {
            LaunchStep::OpenOutputs.pass(self.folder.path())?;
            FaultPoint::Output.pass()?;
            let mut options = OpenOptions::new();
            options.create(true).append(output.append).write(true);
            if readable
                && let Ok(file) = without_wait(options.clone().read(true), &output.path)
                && file.metadata().is_ok_and(|found| found.is_file())
            {
                return Ok(file);
            }
            without_wait(&options, &output.path)
        };
        self.repeat(open, |error| StartFailure::OutputFile { path: output.path.clone(), error })
    }

    /// Starts the relay of an interactive job. Returns the standard input, and whether it is a terminal.
    fn start_relay(
        &self,
        stdin: Option<OwnedFd>,
        output: &File,
        socket: Option<OwnedFd>,
    ) -> Result<(Option<OwnedFd>, bool), StartFailure> {
        let (Some(interaction), Some(socket)) = (self.spec.interaction, socket) else {
            return Ok((stdin, false));
        };
        let has_input_file = stdin.is_some();
        let parts = RelayParts { folder: self.folder.path(), socket, interaction, has_input_file, output };
        let failure = |error: &dyn ToString| StartFailure::setup("its relay", error);
        self.announce(failure(&NO_ANSWER));
        let input = relay::start(parts).map_err(|error| failure(&error))?;
        Ok((input.or(stdin), self.has_terminal()))
    }

    /// Takes a step, again and again while it lacks a resource. `failure` makes the failure of the job from a text.
    fn repeat<T>(
        &self,
        step: impl Fn() -> io::Result<T>,
        failure: impl Fn(String) -> StartFailure,
    ) -> Result<T, StartFailure> {
        self.announce(failure(NO_ANSWER.to_owned()));
        let mut last = None;
        loop {
            let error = match step() {
                Ok(done) => return Ok(done),
                Err(error) if is_shortage(&error) => error.to_string(),
                Err(error) => return Err(failure(error.to_string())),
            };
            if last.as_ref() != Some(&error) {
                self.announce(failure(error.clone()));
                last = Some(error);
            }
            thread::sleep(PAUSE);
        }
    }

    /// Sends the failure that the job has if the next step does not end.
    fn announce(&self, failure: StartFailure) {
        // Without a shim there is no recipient, and this process dies.
        let _ = send(self.stream, &SetupMessage::Doing(failure));
    }
}

/// Opens a file for reading. A FIFO needs a process that writes: its reader would find an empty input.
fn open_readable(path: &Path) -> io::Result<File> {
    let file = without_wait(OpenOptions::new().read(true), path)?;
    if file.metadata()?.file_type().is_fifo() && !has_writer(&file)? {
        return Err(io::Error::other("it is a FIFO that no process writes"));
    }
    Ok(file)
}

/// Opens a file without waiting for another process. Later reads and writes of it wait.
fn without_wait(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = options.clone().custom_flags(flags.bits().cast_signed()).open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NXIO) if is_fifo(path) => io::Error::other("it is a FIFO that no process reads"),
        _ => error,
    })?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

fn is_fifo(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.file_type().is_fifo())
}

/// Returns whether a process has a FIFO open for writing, or has left something in it.
fn has_writer(fifo: &File) -> io::Result<bool> {
    let (_reader, copy) = pipe_with(PipeFlags::CLOEXEC)?;
    match tee(fifo.as_fd(), &copy, 1, SpliceFlags::NONBLOCK) {
        Ok(copied) => Ok(copied > 0),
        Err(Errno::AGAIN) => Ok(true),
        Err(error) => Err(error.into()),
    }
}
