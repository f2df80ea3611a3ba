//! The sources of the facts that a page and a terminal show: a daemon, a simulated run, the state of a daemon, a Slurm cluster.

mod journal;

mod numbers;

mod run;

mod slurm;

mod users;

pub(super) use self::users::Users;

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
        ("--drop", !args.run.drop.is_empty()),
    ];
    for (option, is_given) in of_run {
        ensure!(!is_given, "{option}: needs --run and a log");
    }
    Ok(Some(find(args.daemon.socket.as_deref())?))
}

/// Returns the facts of a source that is no daemon.
pub(crate) fn board(args: &SourceArgs) -> anyhow::Result<Board> {
    match (&args.journal, &args.run_log) {
        (Some(state), _) => Ok(Board::new(journal::stored(state)?)),
        (None, Some(log)) => Ok(Board::new(run::simulated(log, &args.policy, &args.run)?)),
        (None, None) => slurm::follow(args.cluster.slurm()),
    }
}
