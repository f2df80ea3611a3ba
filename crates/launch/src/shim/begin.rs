//! How a shim comes by its attempt.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::umask;
use rustix::stdio::dup2_stdin;

use crate::folder::{self, Folder, Lock};
use crate::handle::PATIENCE;
use crate::identity::Identity;
use crate::line::Line;
use crate::order::Order;
use crate::time::BootTime;
use crate::told::Refusal;
use crate::wait;

/// What a shim has once the attempt is its own.
pub(super) struct Begun {
    pub(super) folder: Folder,
    pub(super) order: Order,
    pub(super) listener: UnixListener,
    /// Whoever holds it has the attempt; to be held to the last.
    pub(super) _lock: Lock,
}

/// Takes the attempt, unless it was given up, or taken before.
pub(super) fn begin(dir: &Path) -> Result<Begun, Refusal> {
    umask(Mode::RWXG | Mode::RWXO);
    let begun = |error: &dyn ToString| Refusal::Begin { error: error.to_string() };
    let folder = Folder::open(dir).map_err(|error| begun(&error))?;
    let lock = folder.lock().map_err(|error| begun(&error))?.ok_or(Refusal::Taken)?;
    for mark in [folder::STARTED, folder::END, folder::SHIM] {
        if folder.has(mark).map_err(|error| begun(&error))? {
            return Err(Refusal::Taken);
        }
    }
    // The order is what is renamed when the attempt is given up.
    let order = folder.read(folder::ORDER).map_err(|error| begun(&error))?.ok_or(Refusal::Void)?;
    let listener = reachable(&folder).map_err(|error| begun(&error))?;
    let me = Identity::of(std::process::id()).map_err(|error| begun(&error))?;
    folder.make_room().map_err(|error| begun(&error))?;
    // The last, because whoever reads it calls.
    folder.write(folder::SHIM, &me).map_err(|error| begun(&error))?;
    Ok(Begun { folder, order, listener, _lock: lock })
}

fn reachable(folder: &Folder) -> io::Result<UnixListener> {
    let listener = folder.listen()?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The connection to the launcher, which is standard input; `None` for a shim that somebody else called.
pub(super) fn launcher() -> io::Result<Option<Line>> {
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    if stream.peer_addr().is_err() {
        return Ok(None);
    }
    // The connection is to be over when its one descriptor is closed.
    dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Line::new(stream).map(Some)
}

/// Gives the launcher time to look at this process before anything happens; one that has died closes its connection.
pub(super) fn wait_for(launcher: &Line) -> io::Result<()> {
    wait::readable(&[launcher.as_fd()], BootTime::now().after(PATIENCE)).map(|_| ())
}
