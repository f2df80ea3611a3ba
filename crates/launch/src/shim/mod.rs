//! The process that supervises a job from its launch to the record of its end.
//!
//! Several programs are called as `shim DIR`. The first copies itself and exits, so that the shim has no parent that must reap
//! it. The copy is the shim. A copy of the shim prepares itself and becomes the command. None has another thread, so a copy may
//! do whatever a new program may, and is ready sooner. The relay of an interactive job and its parent are called. Two programs
//! run a program of the queue. The last one closes a session of PAM after the end.
//!
//! The shim blocks in a single `poll` for its children, its timer and the daemon. It holds no file
//! of the user.

mod system;

mod job_processes;

mod job_cgroup;

mod alarm;

mod exec;

mod user_part;

mod user;

mod private_folders;

mod pam_session;

mod program_runner;

mod program;

mod relay;

use std::env;
use std::fmt::Display;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, ExitCode};

use miserly_attempt::shim::Shim;
use rustix::process::setsid;
use rustix::stdio::dup2_stdin;

pub use self::program::{hash, identity, main};
use self::system::System;
use crate::connection::Connection;
use crate::shortage::LaunchStep;
use crate::{fault, sys};

/// Environment variable that selects one of the programs.
const STAGE: &str = "MISERLY_SHIM";
const SESSION: &str = "session";
const RELAY_PARENT: &str = "relay-parent";
const RELAY: &str = "relay";
const RUNNER: &str = "program-runner";
const PROGRAM: &str = "program";

/// Implements `shim DIR`, where `DIR` is the folder of an attempt.
///
/// The process must have no other thread and no signal handlers. Only [`launch`](crate::launch())
/// calls this program. It changes nothing if the folder has had a shim or is not the folder of an
/// attempt.
pub fn run(dir: &Path) -> ExitCode {
    let stage = env::var_os(STAGE);
    let done = match stage.as_ref().and_then(|stage| stage.to_str()) {
        None => spawn_shim(dir).map_err(|error| error.to_string()),
        Some(RELAY_PARENT) => relay::detach(dir).map_err(|error| error.to_string()),
        Some(RELAY) => relay::run(),
        Some(RUNNER) => program_runner::run(dir).map_err(|error| error.to_string()),
        Some(PROGRAM) => program_runner::become_program(dir).map_err(|error| error.to_string()),
        Some(SESSION) => pam_session::close().map_err(|error| error.to_string()),
        Some(other) => Err(format!("there is no program {other}")),
    };
    if succeeds(dir, &done) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns whether a program has succeeded. Logs its error.
fn succeeds(dir: &Path, done: &Result<(), String>) -> bool {
    if let Err(error) = done {
        log(&format_args!("miserly shim {}: {error}", dir.display()));
    }
    done.is_ok()
}

/// Writes to the log of the folder. A failed write, for example on a full disk, is ignored.
fn log(message: &dyn Display) {
    let _ = writeln!(io::stderr(), "{message}");
}

/// Begins the shim in a session of its own without waiting for it.
fn spawn_shim(dir: &Path) -> io::Result<()> {
    // Fails for the leader of a process group, such as a program started by a shell. Its child
    // leads none.
    let _ = setsid();
    LaunchStep::SpawnShim.pass(dir)?;
    copy(dir, None, supervise).map(drop)
}

/// Supervises the attempt in a folder until its end is recorded.
fn supervise(dir: &Path) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let system = System::new(dir);
    let launcher = launcher_connection().map_err(text)?;
    let mut shim = Shim::begin(system, launcher).map_err(|refusal| refusal.to_string())?;
    while let Some(system) = shim.host() {
        system.wait(&shim).map_err(text)?;
        shim.step();
    }
    Ok(())
}

/// Returns the connection on standard input, or `None` if no launcher started this shim.
fn launcher_connection() -> io::Result<Option<Connection>> {
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    if stream.peer_addr().is_err() {
        return Ok(None);
    }
    // The connection must close when its only descriptor is dropped.
    dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Connection::new(stream).map(Some)
}

/// Runs a program in a copy of this process, which exits with it. Returns the number of the copy.
///
/// The copy has `stdin`, or that of this process, and no file but the first three. It is ready sooner than a new program.
fn copy(
    dir: &Path,
    stdin: Option<&OwnedFd>,
    program: impl FnOnce(&Path) -> Result<(), String>,
) -> io::Result<u32> {
    if let Some(copy) = sys::fork()? {
        return Ok(copy);
    }
    let run = || {
        stdin.map_or(Ok(()), dup2_stdin).map_err(|error| error.to_string())?;
        sys::close_files();
        program(dir)
    };
    // Nothing below this call on the stack may run here, not even after a panic: it belongs to the other process.
    let is_done = catch_unwind(AssertUnwindSafe(|| succeeds(dir, &run()))).unwrap_or(false);
    std::process::exit(i32::from(!is_done))
}

/// Returns a call of this program for a stage, valid even after its file was replaced.
fn call(dir: &Path, stage: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("miserly").arg("shim").arg(dir).env_clear().env(STAGE, stage);
    fault::pass_on(&mut command);
    command
}
