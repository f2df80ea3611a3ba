//! The sources of the facts that a page and a terminal show: a daemon, a simulated run, the state of a daemon, a Slurm cluster.

#[cfg(feature = "daemon")]
mod journal;

#[cfg(feature = "slurm")]
mod numbers;

mod run;

#[cfg(feature = "slurm")]
mod slurm;

use std::path::Path;

use anyhow::ensure;
use miserly_api::client::{DaemonSocket, find};
use miserly_follow::Board;

use crate::args::SourceArgs;

/// Returns the socket of the daemon, or `None` if another source is chosen.
pub(crate) fn daemon(args: &SourceArgs) -> anyhow::Result<Option<DaemonSocket>> {
    if args.journal.is_some() || args.run_log.is_some() || args.slurm {
        return Ok(None);
    }
    let of_run = [
        ("--policy", !args.policy.is_empty()),
        ("--procs", !args.run.procs.is_empty()),
        ("--machine", args.run.machine.is_some()),
        ("--estimates", args.run.estimates.is_some()),
        ("--drop and --keep", args.run.filter.is_given()),
    ];
    for (option, is_given) in of_run {
        ensure!(!is_given, "{option}: needs --run and a log");
    }
    Ok(Some(find(args.daemon.socket.as_deref())?))
}

/// Returns the facts of a source that is no daemon.
pub(crate) fn board(args: &SourceArgs) -> anyhow::Result<Board> {
    match (&args.journal, &args.run_log) {
        (Some(state), _) => of_state(state),
        (None, Some(log)) => Ok(Board::new(run::simulated(log, &args.policy, &args.run)?)),
        (None, None) => of_cluster(args),
    }
}

/// Returns the finished jobs in the state of a daemon.
#[cfg(feature = "daemon")]
fn of_state(state: &Path) -> anyhow::Result<Board> {
    Ok(Board::new(journal::stored(state)?))
}

/// This build has no daemon.
#[cfg(not(feature = "daemon"))]
fn of_state(_: &Path) -> anyhow::Result<Board> {
    Err(crate::features::DAEMON.absent("--journal"))
}

/// Returns the jobs of a Slurm cluster.
#[cfg(feature = "slurm")]
fn of_cluster(args: &SourceArgs) -> anyhow::Result<Board> {
    slurm::follow(args.cluster.slurm())
}

/// This build knows no clusters.
#[cfg(not(feature = "slurm"))]
fn of_cluster(_: &SourceArgs) -> anyhow::Result<Board> {
    Err(crate::features::SLURM.absent("--slurm"))
}
