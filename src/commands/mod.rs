//! One file per command.

pub(crate) mod simulate;

pub(crate) mod compare;

pub(crate) mod wait_of;

pub(crate) mod forecast;

pub(crate) mod what_if;

pub(crate) mod explain;

pub(crate) mod matrix;

pub(crate) mod policies;

pub(crate) mod workload;

mod columns;

mod convert;

mod import;

mod slice;

pub(crate) mod shell;

pub(crate) mod bench;

pub(crate) mod experiment;

#[cfg(feature = "measured")]
pub(crate) mod measured;

#[cfg(feature = "daemon")]
pub(crate) mod live;

#[cfg(not(feature = "daemon"))]
#[path = "without_daemon.rs"]
pub(crate) mod live;

#[cfg(feature = "slurm")]
pub(crate) mod slurm;

#[cfg(feature = "page")]
mod source;

#[cfg(feature = "page")]
pub(crate) mod top;

#[cfg(feature = "page")]
pub(crate) mod ui;

#[cfg(any(feature = "slurm", all(feature = "daemon", feature = "page")))]
mod users;

use std::process::ExitCode;

/// Returns a client of the daemon at a socket.
#[cfg(feature = "client")]
pub(crate) fn talk(socket: miserly_api::client::DaemonSocket) -> anyhow::Result<miserly_api::client::Client> {
    anyhow::Context::context(miserly_api::client::Client::from_socket(socket), "cannot connect to the daemon")
}

/// Returns the exit code of a command that has no exit code of its own.
pub(crate) fn success_of(result: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    result.map(|()| ExitCode::SUCCESS)
}
