//! The executor as a service of its own: `miserly daemon --serve-executor`, and a daemon with `--executor`.
//!
//! Such a daemon is started as its user, and never had the rights of root. So its unit can forbid what shims and jobs need.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use miserly_executor::{NoProgram, Program, Service, Started, hand_over, start};
use miserly_launch::shim;
use rustix::process::geteuid;

use crate::config::Configuration;
use crate::folder::{self, Use};
use crate::separation::{
    Separated, SeparationError, daemon_user, prepare_socket, prepare_state, remove_rights, settings, system,
};
use crate::service_manager;

/// The mode of the folder of the service's socket: the daemon's user enters it.
const FOLDER: u32 = 0o755;

/// Hands executors over to the daemons that connect to a path, one after the other. `read` reads the configuration, for each
/// daemon again. `exe` is this program.
///
/// # Errors
/// The configuration has no user, or a folder, a program or the socket is unsuitable.
pub fn serve(
    path: &Path,
    read: impl Fn() -> Result<Configuration, String>,
    exe: &Path,
) -> Result<Infallible, SeparationError> {
    if !geteuid().is_root() {
        return Err(SeparationError::ServiceOfOther);
    }
    let first = read().map_err(SeparationError::Configuration)?;
    let name = first.user.as_deref().ok_or(SeparationError::NoUser)?;
    let user = daemon_user(name)?;
    // The units of daemons may let them write to these folders only, so they have to be there.
    prepare(&first)?;
    if let Some(folder) = path.parent() {
        folder::open(folder, Use::Socket(FOLDER))?;
    }
    let failed = |error: io::Error| system(format!("cannot listen on {}", path.display()))(error);
    let mut service = Service::listen(path, user.uid.as_raw()).map_err(failed)?;
    service_manager::ready();
    tracing::info!("an executor for daemons of {name} is on {}", path.display());
    loop {
        let start = || {
            let configuration = read()?;
            if configuration.user.as_deref() != Some(name) {
                return Err(format!("the configuration has not user = {name:?}"));
            }
            prepare(&configuration)
                .and_then(|()| executor(&configuration, exe))
                .map_err(|error| error.to_string())
        };
        if let Some(problem) = service.serve_one(start).map_err(failed)? {
            tracing::error!("a daemon got no executor: {problem}");
        } else {
            tracing::info!("a daemon has an executor");
        }
    }
}

/// Gives the folders of the state and of the socket to the daemon's user.
fn prepare(configuration: &Configuration) -> Result<(), SeparationError> {
    let user = daemon_user(configuration.user.as_deref().ok_or(SeparationError::NoUser)?)?;
    prepare_state(&configuration.state, &user)?;
    prepare_socket(&configuration.socket, configuration.access, &user)
}

fn executor(configuration: &Configuration, exe: &Path) -> Result<Started, SeparationError> {
    let beside = |name, identity: &str| Program::beside(exe, name, identity).map_err(NoProgram::into);
    let program: Result<_, SeparationError> = beside("miserly-executor", &miserly_executor::identity());
    let shim: Result<_, SeparationError> = beside("miserly-shim", &shim::identity());
    let user = daemon_user(configuration.user.as_deref().ok_or(SeparationError::NoUser)?)?;
    Ok(start(&program?, settings(configuration, &user), &shim?)?)
}

/// Gets an executor from the service at a path, as a daemon that has no rights.
///
/// # Errors
/// This process is not one of the configuration's user, or has rights; or the service gives it no executor.
pub fn take(configuration: &Configuration, path: &Path) -> Result<Separated, SeparationError> {
    let name = configuration.user.as_deref().ok_or(SeparationError::NoUser)?;
    let user = daemon_user(name)?;
    if geteuid().as_raw() != user.uid.as_raw() {
        return Err(SeparationError::NotUser(name.to_owned()));
    }
    let handed = hand_over(path)?;
    for warning in &handed.warnings {
        tracing::warn!("{warning}");
    }
    remove_rights(&user)?;
    Ok(Separated { socket: handed.socket, groups: handed.groups, no_shim_program: None })
}
