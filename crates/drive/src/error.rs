//! What stops a driver.

use std::path::PathBuf;

use miserly_core::Violation;
use miserly_policies::PolicyError;
use miserly_slurm::SlurmError;

/// Why the driver cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The cluster.
    #[error(transparent)]
    Slurm(#[from] SlurmError),
    /// The policy cannot be made.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The policy made a mistake.
    #[error("the policy made a mistake: {0}")]
    Violation(#[from] Violation),
    /// The partitions have no nodes.
    #[error("the driven partitions have no nodes")]
    NoNodes,

    /// The policy needs another machine.
    #[error("{policy} needs {machine}")]
    Machine {
        /// The policy.
        policy: String,
        /// The machine that it needs.
        machine: &'static str,
    },
    /// The policy needs something that a driver of Slurm cannot do.
    #[error(
        "{policy} cannot drive a cluster: it needs {need}; choose another policy (miserly policies lists those that run on Slurm)"
    )]
    Needs {
        /// The policy.
        policy: String,
        /// Its need.
        need: &'static str,
    },
    /// The policy requeues jobs itself.
    #[error("{policy} requeues jobs itself, so there is no --opportunistic with it")]
    NotOpportunistic {
        /// The policy.
        policy: String,
    },
    /// Slurm refuses the reservation.
    #[error(
        "Slurm refuses the reservation {reservation}: {message}; is this user an operator? (sacctmgr modify user NAME set adminlevel=Operator)"
    )]
    Rights {
        /// The reservation.
        reservation: String,
        /// Slurm's words.
        message: String,
    },
    /// The reservation is there already.
    #[error(
        "the reservation {reservation} is there already, and is not that of a driver with its state in {}; another driver may hold nodes by it: choose another name (--reservation), or end it (miserly slurm hand-back --reservation {reservation})",
        folder.display()
    )]
    Reserved {
        /// The reservation.
        reservation: String,
        /// The folder of the state.
        folder: PathBuf,
    },
    /// The driver of a state holds nodes by another reservation.
    #[error(
        "the driver with its state in {} holds nodes by the reservation {before}: hand them back first (miserly slurm hand-back --reservation {before}), or drive with --reservation {before}",
        folder.display()
    )]
    OtherReservation {
        /// The other reservation.
        before: String,
        /// The folder of the state.
        folder: PathBuf,
    },
    /// Another driver holds nodes of the driven partitions.
    #[error(
        "another driver holds the nodes {nodes} by the reservation {reservation}: drive other partitions, or end it (miserly slurm hand-back --reservation {reservation})"
    )]
    NodesReserved {
        /// The first nodes, and the number of others.
        nodes: String,
        /// The reservation of the other driver.
        reservation: String,
    },
    /// The reservation is not that of a driver.
    #[error(
        "the reservation {reservation} is not that of a driver, because it has the flags {flags}; nothing was changed"
    )]
    NotOfDriver {
        /// The reservation.
        reservation: String,
        /// Its flags.
        flags: String,
    },
    /// The state of Slurm is impossible.
    #[error("the jobs that Slurm shows do not fit its nodes: {0}")]
    Ledger(String),
    /// The folder of the state cannot be used.
    #[error("cannot use {}: {error}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The error.
        error: std::io::Error,
    },
    /// The nodes were handed back.
    #[error("the nodes were handed back")]
    HandedBack,
    /// Another driver has the folder.
    #[error("another driver uses {}", folder.display())]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// There is no state.
    #[error("no driver has its state in {}", folder.display())]
    NoState {
        /// The folder.
        folder: PathBuf,
    },
    /// The database fails.
    #[error("{}: {error}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// The error.
        error: rusqlite::Error,
    },
    /// The database is of a later version.
    #[error("{} has format {format}, of a later version of this program", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// There is no thread for forecasts.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The stored state cannot be read.
    #[error("the stored state is damaged: {0}")]
    Damaged(String),
}
