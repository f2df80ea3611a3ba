//! Why a cluster cannot be read.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The reason why a cluster cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SlurmError {
    /// A command is not there.
    #[error("{program}: not found; Slurm's client commands have to be installed and in PATH")]
    Missing {
        /// The command.
        program: String,
    },
    /// A command cannot be run.
    #[error("{program}: {error}")]
    Program {
        /// The command.
        program: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The configuration of the cluster is not there.
    #[error("{}: no such file; --slurm-conf or SLURM_CONF has to name the slurm.conf of the cluster", path.display())]
    NoConfiguration {
        /// The file.
        path: PathBuf,
    },
    /// A command gave no answer.
    #[error("{program} gave no answer within {} s{}{}", within.as_secs(), advice(message), said(message))]
    Late {
        /// The command.
        program: String,
        /// The time that it had.
        within: Duration,
        /// Its standard error.
        message: String,
    },
    /// A command failed.
    #[error("{program} failed{}{}", advice(message), said(message))]
    Failed {
        /// The command.
        program: String,
        /// Its standard error.
        message: String,
    },
    /// A line of an answer is not understood.
    #[error("{program}: {problem} in {line:?}; this version of Slurm may be unknown")]
    Unreadable {
        /// The command.
        program: String,
        /// The problem.
        problem: String,
        /// The line.
        line: String,
    },
    /// The version of the controller is too old.
    #[error("Slurm {version} is too old: version {oldest} or a later one is needed")]
    TooOld {
        /// The version.
        version: String,
        /// The oldest version that is read.
        oldest: String,
    },
    /// The version of the controller is none of those that are known.
    #[error(
        "Slurm {version} is unknown: the driver knows the versions from {oldest} to {newest}, and another one may print the same words with another meaning; call `miserly slurm check --probe`, and if it finds no difference, pass --untested-version"
    )]
    Untested {
        /// The version.
        version: String,
        /// The oldest known version.
        oldest: String,
        /// The newest known version.
        newest: String,
    },
    /// A partition does not exist.
    #[error("the cluster has no partition {partition}; it has {}", known.join(", "))]
    NoPartition {
        /// The partition.
        partition: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The accounting cannot be converted.
    #[error(transparent)]
    Accounting(#[from] miserly_import::ImportError),
}

/// Returns what may help, for a message of Slurm.
fn advice(message: &str) -> &'static str {
    const KNOWN: [(&str, &str); 6] = [
        ("unge", ": munge does not answer; munged has to run on this machine"),
        ("atabase", ": the accounting does not answer; slurmdbd has to run"),
        ("PersistInit", ": the accounting does not answer; slurmdbd has to run"),
        ("persist_conn", ": the accounting does not answer; slurmdbd has to run"),
        ("Unable to contact slurm controller", ": the controller does not answer; slurmctld has to run"),
        ("Connection refused", ": the controller does not answer; slurmctld has to run"),
    ];
    KNOWN.iter().find(|(part, _)| message.contains(part)).map_or("", |(_, advice)| advice)
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_slurm_comes_with_advice() {
        let failed = |message: &str| {
            SlurmError::Failed { program: "squeue".to_owned(), message: message.to_owned() }.to_string()
        };
        let munge =
            failed("Munge encode failed: Failed to access \"/run/munge\"; Protocol authentication error");
        assert!(
            munge.starts_with(
                "squeue failed: munge does not answer; munged has to run on this machine: Munge"
            )
        );
        let accounting = failed("Sending PersistInit msg: Connection refused");
        assert!(accounting.contains("slurmdbd has to run"), "{accounting}");
        let controller =
            failed("slurm_load_jobs error: Unable to contact slurm controller (connect failure)");
        assert!(controller.contains("slurmctld has to run"), "{controller}");
        assert_eq!(failed("Invalid job id specified"), "squeue failed: Invalid job id specified");
    }
}
