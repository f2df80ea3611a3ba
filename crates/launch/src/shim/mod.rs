//! The process that supervises a job from its launch to the record of its end.
//!
//! Several programs are called as `shim DIR`. The first spawns the second and exits, so that the shim
//! has no parent that must reap it. The second is the shim. The third prepares itself and becomes
//! the command. The relay of an interactive job and its parent are called, too. Two programs run the prolog or epilog of the
//! queue. The last one closes a session of PAM after the end. Between a fork and an exec, therefore, only ordinary programs run.
//!
//! The shim blocks in a single `poll` for its children, its timer and the daemon. It holds no file
//! of the user.

mod claim;

mod supervisor;

mod timeline;

mod commands;

mod resume;

mod stop;

mod user_signals;

mod job_processes;

mod job_cgroup;

mod main_process;

mod pending_end;

mod alarm;

mod exec;

mod user_part;

mod user;

mod private_folders;

mod pam_session;

mod queue_programs;

mod program_runner;

mod program;

mod relay;

use std::env;
use std::fmt::Display;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::setsid;

pub use self::program::{hash, identity, main};
pub use self::stop::STOP_TIMEOUT;
use crate::shortage::LaunchStep;
use crate::{fault, sys};

/// Environment variable that selects one of the programs.
const STAGE: &str = "MISERLY_SHIM";
const SUPERVISOR: &str = "supervisor";
const COMMAND: &str = "command";
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
        Some(COMMAND) => exec::become_command(dir),
        Some(RELAY_PARENT) => relay::detach(dir).map_err(|error| error.to_string()),
        Some(RELAY) => relay::run(),
        Some(RUNNER) => program_runner::run(dir).map_err(|error| error.to_string()),
        Some(PROGRAM) => program_runner::become_program(dir).map_err(|error| error.to_string()),
        Some(SESSION) => pam_session::close().map_err(|error| error.to_string()),
        Some(_) => supervisor::supervise(dir),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(&format_args!("miserly shim {}: {error}", dir.display()));
            ExitCode::FAILURE
        }
    }
}

/// Writes to the log of the folder. A failed write, for example on a full disk, is ignored.
fn log(message: &dyn Display) {
    let _ = writeln!(io::stderr(), "{message}");
}

/// Spawns the shim in a session of its own without waiting for it.
fn spawn_shim(dir: &Path) -> io::Result<()> {
    // Fails for the leader of a process group, such as a program started by a shell. Its child
    // leads none.
    let _ = setsid();
    LaunchStep::SpawnShim.pass(dir)?;
    sys::close_files_on_exec();
    call(dir, SUPERVISOR).stdout(Stdio::null()).spawn().map(drop)
}

/// Returns a call of this program for a stage, valid even after its file was replaced.
fn call(dir: &Path, stage: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("miserly").arg("shim").arg(dir).env_clear().env(STAGE, stage);
    fault::pass_on(&mut command);
    command
}
