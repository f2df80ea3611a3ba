//! The start of a relay by the program that becomes the command.

use miserly_attempt::Interaction;
use std::env;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde::{Deserialize, Serialize};

use crate::session::MARK;
use crate::shim::{RELAY, RELAY_PARENT, call};
use crate::sys;

/// Environment variable with the [`RelaySettings`].
const SETTINGS: &str = "MISERLY_RELAY";

/// What a relay cannot find out by itself.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RelaySettings {
    /// The main process of the job.
    pub(super) main: u32,
    pub(super) terminal: bool,
    pub(super) takes_input: bool,
    /// The length of the output file at the start.
    pub(super) base: u64,
}

/// Returns the settings of this relay.
pub(super) fn settings() -> io::Result<RelaySettings> {
    let text = env::var(SETTINGS).map_err(io::Error::other)?;
    Ok(serde_json::from_str(&text)?)
}

/// What the preparing program passes to a relay.
#[derive(Debug)]
pub(in crate::shim) struct RelayParts<'a> {
    /// Folder of the attempt.
    pub(in crate::shim) folder: &'a Path,
    /// The socket of the relay.
    pub(in crate::shim) socket: OwnedFd,
    pub(in crate::shim) interaction: Interaction,
    /// Whether the input is a file, so that clients have none.
    pub(in crate::shim) has_input_file: bool,
    /// The output file, for a terminal.
    pub(in crate::shim) output: &'a File,
}

/// Starts the relay. Returns the standard input of the command, or its terminal, which this process then has as its controlling
/// one.
///
/// The relay is no child of this process, which becomes the command.
///
/// # Errors
/// A shortage of the machine, or a machine without pseudo-terminals.
pub(in crate::shim) fn start(parts: RelayParts<'_>) -> io::Result<Option<OwnedFd>> {
    let (ours, theirs, output) = match parts.interaction {
        Interaction::Terminal { rows, columns } => {
            let (master, slave) = open_terminal(rows, columns)?;
            ioctl_tiocsctty(&slave)?;
            (Some(slave), Some(master), Some(parts.output.try_clone()?))
        }
        Interaction::Stdin if parts.has_input_file => (None, None, None),
        Interaction::Stdin => {
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
            (Some(reader), Some(writer), None)
        }
    };
    let settings = RelaySettings {
        main: std::process::id(),
        terminal: output.is_some(),
        takes_input: theirs.is_some(),
        base: output.as_ref().map_or(Ok(0), length)?,
    };
    let mut command = call(parts.folder, RELAY_PARENT);
    command.env(SETTINGS, serde_json::to_string(&settings)?).env(MARK, parts.folder);
    command.stdin(parts.socket).stdout(theirs.map_or_else(Stdio::null, Stdio::from));
    command.stderr(output.map_or_else(Stdio::null, Stdio::from));
    let status = command.spawn()?.wait()?;
    if status.success() { Ok(ours) } else { Err(io::Error::other(format!("the relay: {status}"))) }
}

/// Spawns the relay in a session of its own without waiting for it. The shim adopts it.
pub(in crate::shim) fn detach(dir: &Path) -> io::Result<()> {
    setsid()?;
    // The relay ends with the job, and by no signal of it before. It inherits what is blocked, because a short job may end
    // before the relay has begun.
    sys::signals()?;
    let mut command = call(dir, RELAY);
    for name in [SETTINGS, MARK] {
        command.envs(env::var_os(name).map(|value| (name, value)));
    }
    command.spawn().map(drop)
}

/// The lines and the characters of a terminal whose size is unknown. Programs cannot draw on one of 0 x 0.
const USUAL_SIZE: (u16, u16) = (24, 80);

/// Returns both ends of a new terminal of this process's user. A side of 0 has its usual length.
pub(super) fn open_terminal(rows: u16, columns: u16) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = match ioctl_tiocgptpeer(&master, flags) {
        // Kernels before 4.13 do not have the call.
        Err(Errno::INVAL | Errno::NOTTY) => open_by_name(&master)?,
        opened => opened?,
    };
    let or = |side, usual| if side > 0 { side } else { usual };
    let (ws_row, ws_col) = (or(rows, USUAL_SIZE.0), or(columns, USUAL_SIZE.1));
    tcsetwinsize(&slave, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 })?;
    Ok((master, slave))
}

fn open_by_name(master: impl AsFd) -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    let name = ptsname(master, Vec::new())?;
    Ok(open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Returns where the output begins. A file that is not appended to is emptied before the command runs.
fn length(file: &File) -> io::Result<u64> {
    use rustix::fs::{OFlags, fcntl_getfl};
    let appends = fcntl_getfl(file)?.contains(OFlags::APPEND);
    if appends { file.metadata().map(|found| found.len()) } else { Ok(0) }
}
