//! The process that ends what a measurement has started, should the measurement be killed.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::setsid;

use crate::processes::{self, ChildId, kill_of, remove_groups};

/// Starts the guard of a measurement: this program, over the folder and perhaps a control group. It waits for the end of the pipe that is
/// its standard input, which only this process has the other end of. A measurement that ends kills its guard.
pub(crate) fn start(exe: &Path, folder: &Path, group: Option<&Path>) -> io::Result<ChildId> {
    let mut command = Command::new(exe);
    command.args(["kernel", "guard", "--folder"]).arg(folder);
    if let Some(group) = group {
        command.arg("--group").arg(group);
    }
    processes::start(command.stdin(Stdio::piped()).stdout(Stdio::null()))
}

/// Waits for the end of the measurement. Then ends its daemon and its jobs, and removes its folder and its control group.
///
/// # Errors
/// Standard input cannot be read.
pub fn guard(folder: &Path, group: Option<&Path>) -> io::Result<()> {
    // Signals from the terminal are for the measurement. A leader of a process group stays in its session.
    let _ = setsid();
    io::copy(&mut io::stdin(), &mut io::sink())?;
    kill_of(folder);
    let _ = fs::remove_dir_all(folder);
    if let Some(group) = group {
        remove_groups(group);
    }
    Ok(())
}
