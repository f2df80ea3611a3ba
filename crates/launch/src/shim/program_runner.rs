//! The process that runs the prolog, the epilog or the checkpoint command of a queue for the shim.
//!
//! It adopts the orphans of the program (`PR_SET_CHILD_SUBREAPER`), so that all processes of the program are its descendants.
//! It reports to the shim and exits when none of them is left. The signals that the shim blocks stay blocked here.
//!
//! Its standard input is the connection to the shim, whose death ends the program. Its standard output is the lock of the
//! attempt, so that no other process resolves the attempt before.

use miserly_attempt::{
    AttemptSpec, BootTime, Connection as _, Files as _, ProgramFailure, ProgramKind, ProgramReport,
    QueueProgram, StartRecord, files,
};
use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, set_child_subreaper, setsid, umask};
use rustix::stdio::dup2_stdin;

use super::{PROGRAM, RUNNER, call, exec};
use crate::check_program::check_program;
use crate::clock::{self, MachineClock as _};
use crate::connection::Connection;
use crate::folder::Folder;
use crate::identity;
use crate::procfs::{self, Stat};
use crate::session::MARK;
use crate::sys;
use crate::wait;

/// The bytes of output that a report has.
const KEPT: usize = 1000;
/// The first and the longest pause between scans for processes that are dying.
const FIRST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(500);

/// Environment variable with the kind of the program.
const KIND: &str = "MISERLY_QUEUE_PROGRAM";
/// Environment variable of a checkpoint command with the number of the job's main process.
const MAIN_PROCESS: &str = "MISERLY_PID";

/// Returns a call of the process that runs a program of the attempt in a folder.
pub(super) fn runner(dir: &Path, kind: ProgramKind) -> Command {
    let mut command = call(dir, RUNNER);
    command.env(KIND, kind.name());
    command
}

/// Runs the program of the attempt in a folder, and reports its end to the shim.
pub(super) fn run(dir: &Path) -> io::Result<()> {
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    dup2_stdin(File::open("/dev/null")?)?;
    let mut shim = Connection::new(stream)?;
    let limit = wait_until_placed(&mut shim)?;
    let report = begin(dir, limit).and_then(|program| program.watch(&shim));
    let not_run =
        |error: io::Error| ProgramReport::failed(ProgramFailure::NotRun { error: error.to_string() });
    shim.send(&report.unwrap_or_else(not_run))
}

/// Waits until the shim has chosen the processors of this process. Returns the time limit of the program.
fn wait_until_placed(shim: &mut Connection) -> io::Result<Duration> {
    loop {
        if let Some(limit) = shim.receive()? {
            return Ok(limit);
        }
        wait::readable(&[shim.as_fd()], BootTime::MAX)?;
    }
}

/// Becomes the program. Returns only on failure, and the error is part of the program's output.
pub(super) fn become_program(dir: &Path) -> io::Result<()> {
    let (program, env) = read(dir)?;
    let main = main_process(dir)?;
    setsid()?;
    sys::default_signals();
    exec::reset_inherited();
    umask(Mode::from_raw_mode(0o022));
    let mut command = Command::new(&program.path);
    let arguments = program.argv.get(1..).unwrap_or_default();
    command.args(arguments).current_dir("/").env_clear().envs(env).env(MARK, dir);
    command.envs(main.map(|main| (MAIN_PROCESS, main.to_string())));
    if let Some(name) = program.argv.first() {
        command.arg0(name);
    }
    let error = command.exec();
    Err(io::Error::new(error.kind(), format!("cannot run {}: {error}", program.path.display())))
}

/// Returns the number of the main process of the job, for a program that runs beside it.
fn main_process(dir: &Path) -> io::Result<Option<u32>> {
    if kind()? != ProgramKind::Checkpoint {
        return Ok(None);
    }
    let folder = Folder::open(dir).map_err(io::Error::other)?;
    let started: Option<StartRecord> = folder.read(files::STARTED).map_err(io::Error::other)?;
    Ok(started.map(|started| started.sid))
}

/// Returns the kind of the program that this process runs.
fn kind() -> io::Result<ProgramKind> {
    let name = env::var(KIND).map_err(io::Error::other)?;
    let kind = ProgramKind::ALL.into_iter().find(|kind| kind.name() == name);
    kind.ok_or_else(|| io::Error::other(format!("there is no program {name}")))
}

/// Returns the program that this process runs, and its environment.
fn read(dir: &Path) -> io::Result<(QueueProgram, Vec<(OsString, OsString)>)> {
    let kind = kind()?;
    let folder = Folder::open(dir).map_err(io::Error::other)?;
    let spec: Option<AttemptSpec> = folder.read(files::SPEC).map_err(io::Error::other)?;
    let programs = spec.and_then(|spec| spec.queue_programs);
    let found = programs.and_then(|programs| Some((programs.get(kind)?.clone(), programs.env)));
    found.ok_or_else(|| io::Error::other(format!("the specification has no {}", kind.name())))
}

/// A program that runs.
struct Running {
    child: Child,
    exit: OwnedFd,
    output: Output,
    limit: Duration,
    kill_at: BootTime,
}

/// Starts the program in a session of its own.
fn begin(dir: &Path, limit: Duration) -> io::Result<Running> {
    let (QueueProgram { path, .. }, _) = read(dir)?;
    check_program(&path)?;
    set_child_subreaper(Some(getpid()))?;
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setfl(&reader, OFlags::NONBLOCK)?;
    let mut command = call(dir, PROGRAM);
    command.envs(env::var_os(KIND).map(|kind| (KIND, kind)));
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let child = command.spawn()?;
    let exit = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    let output = Output { pipe: Some(File::from(reader)), kept: vec![] };
    Ok(Running { child, exit, output, limit, kill_at: BootTime::now().after(limit) })
}

impl Running {
    /// Waits for the end of the program, of its time or of the shim. Then kills all processes that are left.
    fn watch(mut self, shim: &Connection) -> io::Result<ProgramReport> {
        let failure = self.wait(shim);
        // Also after an error: this process is the last one that knows them.
        kill_descendants()?;
        self.output.read();
        Ok(ProgramReport { failure: failure?, output: self.output.text() })
    }

    fn wait(&mut self, shim: &Connection) -> io::Result<Option<ProgramFailure>> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(failure_of(status));
            }
            let left = self.kill_at.since(BootTime::now());
            if left.is_zero() {
                return Ok(Some(ProgramFailure::TimeLimit { limit: self.limit }));
            }
            let mut polled = vec![
                PollFd::new(&self.exit, PollFlags::IN),
                PollFd::from_borrowed_fd(shim.as_fd(), PollFlags::IN),
            ];
            polled.extend(self.output.pipe.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
            match poll(&mut polled, Some(&clock::timespec(BootTime(0).after(left)))) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            // The shim sends nothing more, so this is its death.
            if !polled[1].revents().is_empty() {
                return Ok(Some(ProgramFailure::Killed));
            }
            self.output.read();
        }
    }
}

fn failure_of(status: ExitStatus) -> Option<ProgramFailure> {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(ProgramFailure::Code(code)),
        (None, Some(signal)) => Some(ProgramFailure::Signal(signal)),
        (None, None) => Some(ProgramFailure::Killed),
    }
}

/// Kills the descendants of this process until none is left.
fn kill_descendants() -> io::Result<()> {
    let mut pause = FIRST;
    loop {
        while let Ok(Some(_)) = sys::reap() {}
        let left = descendants()?;
        if left.is_empty() {
            return Ok(());
        }
        for stat in &left {
            identity::signal(stat, Signal::KILL)?;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST);
    }
}

fn descendants() -> io::Result<Vec<Stat>> {
    let (me, mut all) = (std::process::id(), procfs::processes()?);
    let members = procfs::descendants(&all, BTreeSet::from([me]));
    all.retain(|stat| stat.pid != me && members.contains(&stat.pid) && !stat.is_dead());
    Ok(all)
}

/// The output of a program, of which the end is kept.
struct Output {
    /// `None` once all writers have closed it.
    pipe: Option<File>,
    kept: Vec<u8>,
}

impl Output {
    /// Reads what is available, at most some kilobytes at a time.
    fn read(&mut self) {
        let mut buffer = [0; 8192];
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.read(&mut buffer) {
            Ok(0) => self.pipe = None,
            Ok(read) => {
                self.kept.extend_from_slice(&buffer[..read]);
                self.kept.drain(..self.kept.len().saturating_sub(KEPT));
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.pipe = None,
        }
    }

    /// Returns the end of the output as one line without control characters.
    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.kept);
        let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
        text.trim().chars().map(plain).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_end_of_an_output_is_kept_as_a_line() {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        fcntl_setfl(&reader, OFlags::NONBLOCK).unwrap();
        let mut output = Output { pipe: Some(File::from(reader)), kept: vec![] };
        output.read();
        assert_eq!(output.text(), "");
        let mut writer = File::from(writer);
        for _ in 0..20 {
            writer.write_all(&[b'x'; KEPT]).unwrap();
            output.read();
        }
        writer.write_all(b"\x1b[31mno\n device\xff \n").unwrap();
        drop(writer);
        for _ in 0..20 {
            output.read();
        }
        assert!(output.pipe.is_none() && output.kept.len() == KEPT);
        assert!(output.text().ends_with("xxx [31mno  device\u{fffd}"), "{}", output.text());
    }
}
