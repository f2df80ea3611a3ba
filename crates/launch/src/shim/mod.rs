//! The process that owns a job, from the launch to the record of its end.
//!
//! It is three programs, all called as `shim DIR`: the first leaves the second behind, with no parent that would have to wait for
//! it; the second is the shim; the third makes itself ready and becomes the command. So nothing but ordinary programs ever runs
//! between a fork and an exec.
//!
//! The shim waits in one `poll` for its children, its clock and the daemon, and nowhere else. It holds no file of the user.

mod begin;

mod owner;

mod course;

mod tell;

mod go_on;

mod stop;

mod processes;

mod main_process;

mod finish;

mod alarm;

mod command;

use std::env;
use std::fmt::Display;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::setsid;

pub use self::stop::STOP_PATIENCE;
use crate::sys;

/// Says to a program which of the three it is.
const STAGE: &str = "MISERLY_SHIM";
const OWNER: &str = "owner";
const COMMAND: &str = "command";

/// What `shim DIR` does, where `DIR` is the folder of an attempt. The process must have no other thread, and no handlers of signals.
///
/// For [`launch`](crate::launch()) alone: where the folder has had a shim already, or is none, it changes nothing.
pub fn run(dir: &Path) -> ExitCode {
    let stage = env::var_os(STAGE);
    let done = match stage.as_ref().and_then(|stage| stage.to_str()) {
        None => leave_behind(dir).map_err(|error| error.to_string()),
        Some(COMMAND) => command::become_it(dir),
        Some(_) => owner::own(dir),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format_args!("miserly shim {}: {error}", dir.display()));
            ExitCode::FAILURE
        }
    }
}

/// Writes to the log of the folder. Where that is not possible, on a full disk, the job goes on all the same.
fn complain(complaint: &dyn Display) {
    let _ = writeln!(io::stderr(), "{complaint}");
}

/// Starts the shim in a session of its own and does not wait for it.
fn leave_behind(dir: &Path) -> io::Result<()> {
    // Fails for the leader of a process group, which a program is that a shell started; its child is none.
    let _ = setsid();
    sys::leave_files_behind();
    program(dir, OWNER).stdout(Stdio::null()).spawn().map(drop)
}

/// This very program again, also when its file has been replaced.
fn program(dir: &Path, stage: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("miserly").arg("shim").arg(dir).env_clear().env(STAGE, stage);
    command
}
