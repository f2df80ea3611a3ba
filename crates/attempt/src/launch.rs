//! Launching an attempt: creates the folder, spawns the shim and performs the handshake.

use std::io;

use miserly_marks::mark;

use crate::commands::{Commands, ConnectedShim};
use crate::connection::Connection;
use crate::daemon_host::{DaemonHost, ShimOf};
use crate::error::LaunchError;
use crate::files::{Files, SHIM, SPEC, STARTED};
use crate::message::{Handshake, REPLY_TIMEOUT};
use crate::protocol::ShimCommand;
use crate::spec::{AttemptSpec, SpecRecord};

/// Starts an attempt under a shim of its own. On return, the shim holds the lock and is starting the command.
///
/// # Errors
/// Except after [`LaunchError::Unclear`], the command has not run and never will.
pub fn launch<D: DaemonHost>(host: &mut D, spec: &AttemptSpec) -> Result<ShimOf<D>, LaunchError> {
    spec.check()?;
    let files = host.create()?;
    // The lock file must exist before the disk is full.
    files.create_lock()?;
    let boot_id = host.boot().ok();
    files.write(SPEC, &SpecRecord { spec, boot_id })?;
    let launched = host.spawn(&files).and_then(|connection| handshake(host, &files, connection));
    launched.map_err(|error| void_failed(&files, error))
}

/// Waits for the handshake and lets the shim continue.
fn handshake<D: DaemonHost>(
    host: &mut D,
    files: &D::Files,
    mut connection: D::Connection,
) -> Result<ShimOf<D>, LaunchError> {
    let broken = |error: &dyn ToString| LaunchError::Died { reason: error.to_string() };
    let message = receive_handshake(host, &mut connection).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => LaunchError::Died { reason: host.log(files) },
        _ => broken(&error),
    });
    if let Handshake::Refused(refusal) = message? {
        mark!("the shim refuses");
        return Err(refusal.into());
    }
    let died = |host: &D| LaunchError::Died { reason: host.log(files) };
    let identity = files.read(SHIM)?.ok_or_else(|| died(host))?;
    let process = host.process(&identity).map_err(|error| broken(&error))?.ok_or_else(|| died(host))?;
    let mut commands = Commands::new(connection, 0);
    // The shim waits for this command, so it cannot exit before its process is open.
    let until = host.now().after(REPLY_TIMEOUT);
    commands
        .request(&ShimCommand::Status, |connection| host.wait_for(connection, until))
        .map_err(|error| broken(&error))?;
    mark!("launched");
    Ok(ConnectedShim { identity, process, commands })
}

fn receive_handshake<D: DaemonHost>(host: &mut D, connection: &mut D::Connection) -> io::Result<Handshake> {
    let until = host.now().after(REPLY_TIMEOUT);
    loop {
        if let Some(message) = connection.receive()? {
            return Ok(message);
        }
        if !host.wait_for(connection, until)? {
            mark!("the shim does not begin");
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the shim does not begin"));
        }
    }
}

/// Marks a failed launch as void so that it never runs.
fn void_failed<F: Files>(files: &F, error: LaunchError) -> LaunchError {
    let voided = || {
        let lock = files.lock().ok()??;
        let ran = files.has(STARTED).ok()?;
        if ran { None } else { files.void(&lock).ok() }
    };
    match (voided(), error) {
        (Some(()), error) => {
            mark!("a failed launch is void");
            error
        }
        (None, error) => {
            mark!("a failed launch is unclear");
            LaunchError::Unclear { dir: files.path().to_owned(), error: error.to_string() }
        }
    }
}
