//! The end of a session of PAM.
//!
//! The process that opened the session became the command. So a program of root closes it when no process of the job is left.
//! The shim does not wait for it, because a module may take any time.

use miserly_attempt::JobUser;
use std::env;
use std::io;
use std::path::Path;
use std::process::{Stdio, exit};
use std::thread;
use std::time::Duration;

use super::{SESSION, call};
use crate::sys::pam::Pam;

/// Environment variables for the service and the name of the user. The folder of the attempt may be gone.
const SERVICE: &str = "MISERLY_PAM_SERVICE";
const USER: &str = "MISERLY_PAM_USER";

/// Longest time for the modules.
const LIMIT: Duration = Duration::from_secs(30);

/// Starts the program that closes the session of a user, if the user has one.
///
/// # Errors
/// It cannot be started.
pub(super) fn begin_close(dir: &Path, user: &JobUser) -> io::Result<()> {
    let Some(service) = &user.pam else { return Ok(()) };
    let mut command = call(dir, SESSION);
    command.env(SERVICE, service).env(USER, &user.name).stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().map(drop)
}

/// Closes the session that the environment names.
///
/// # Errors
/// A module of PAM fails.
pub(super) fn close() -> io::Result<()> {
    let name = |variable| env::var(variable).map_err(io::Error::other);
    let (service, user) = (name(SERVICE)?, name(USER)?);
    thread::Builder::new().spawn(|| {
        thread::sleep(LIMIT);
        super::log(&"PAM has not closed the session in time");
        exit(1);
    })?;
    Pam::open(&service)?.close_session(&user)
}
