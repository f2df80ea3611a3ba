//! What a daemon needs of its machine for one attempt.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::boot::BootId;
use crate::commands::ConnectedShim;
use crate::connection::Connection;
use crate::error::LaunchError;
use crate::files::{Files, RecordError, StartRecord};
use crate::identity::Identity;
use crate::time::BootTime;

/// The machine of a daemon that launches or finds one attempt.
///
/// The daemon may be killed before, in and after any call. [`pause`](DaemonHost::pause) and
/// [`wait_for`](DaemonHost::wait_for) are the only calls that wait for a shim, so a simulation runs the shim in them.
pub trait DaemonHost {
    /// The folder of the attempt.
    type Files: Files;

    /// A connection to the shim.
    type Connection: Connection;

    /// A shim process, which is not confused with a later process of the same number.
    type Process;

    /// Returns the present instant. It never decreases.
    fn now(&self) -> BootTime;

    /// Returns the present boot.
    ///
    /// # Errors
    /// The boot is not known.
    fn boot(&self) -> io::Result<BootId>;

    /// Waits.
    fn pause(&mut self, length: Duration);

    /// Waits until a connection has a line or is closed, or until an instant. Returns `false` if it has passed.
    ///
    /// # Errors
    /// The wait is not possible.
    fn wait_for(&mut self, connection: &Self::Connection, until: BootTime) -> io::Result<bool>;

    /// Creates the folder.
    ///
    /// # Errors
    /// The folder exists, or cannot be created.
    fn create(&mut self) -> Result<Self::Files, RecordError>;

    /// Opens the folder, or returns `None` if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be opened.
    fn open(&mut self) -> Result<Option<Self::Files>, RecordError>;

    /// Starts a shim for the attempt. Returns the connection to it, on which it sends a [`Handshake`](crate::Handshake).
    ///
    /// # Errors
    /// The shim may have begun.
    fn spawn(&mut self, files: &Self::Files) -> Result<Self::Connection, LaunchError>;

    /// Returns the log of the attempt, as far as it can be read.
    fn log(&self, files: &Self::Files) -> String;

    /// Connects to the shim.
    ///
    /// # Errors
    /// The shim has exited, or too many others connect.
    fn connect(&mut self, files: &Self::Files) -> io::Result<Self::Connection>;

    /// Opens a process, or returns `None` if it has exited.
    ///
    /// # Errors
    /// The processes cannot be inspected.
    fn process(&mut self, identity: &Identity) -> io::Result<Option<Self::Process>>;

    /// Kills the processes of a job without a shim until a scan finds none, or until an instant.
    ///
    /// # Errors
    /// The processes cannot be inspected. Some may have been killed.
    fn kill_job(
        &mut self,
        files: &Self::Files,
        started: &StartRecord,
        until: BootTime,
    ) -> io::Result<KillResult>;
}

/// The handle of a shim on a machine.
pub type ShimOf<D> = ConnectedShim<<D as DaemonHost>::Process, <D as DaemonHost>::Connection>;

/// The result of killing the processes of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KillResult {
    /// No process is left; these were killed.
    All(Vec<u32>),
    /// These do not die: they wait in the kernel or belong to another user.
    Survivors(Vec<u32>),
}
