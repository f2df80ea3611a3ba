//! Why the ledger is made again from the state of Slurm.

/// Why the ledger is made again. If there are several causes, the last one in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RebuildCause {
    /// Requests refer to another group of nodes.
    Groups,
    /// The passes of a step had no end.
    Unfinished,
    /// The run of a job for a quantum goes on, or has no nodes.
    Quantum,
    /// A job was suspended or resumed by others, or cannot be suspended.
    Suspension,
    /// The driver found other nodes for a job than the policy.
    MovedStart,
    /// A job that ran ahead of its start keeps its nodes.
    EarlyRunStays,
    /// A node has had more jobs than processors.
    Overcommitted,
    /// A job has other nodes or processors than in the ledger.
    OtherNodes,
    /// A job runs that waits in the ledger.
    UnplannedStart,
    /// The driver has just begun.
    Restart,
    /// Other nodes are in service.
    Nodes,
}

impl RebuildCause {
    /// Returns the cause of a promise that the new ledger breaks, in words.
    pub(super) fn words(self) -> &'static str {
        match self {
            RebuildCause::Groups => "other nodes are of the kind that a job asks for",
            RebuildCause::Unfinished => "a job was not placed as planned",
            RebuildCause::Quantum => "a job did not run for a quantum as planned",
            RebuildCause::Suspension => "a job was not suspended or resumed as planned",
            RebuildCause::MovedStart => "a job starts on other nodes or processors than planned",
            RebuildCause::EarlyRunStays => "a job that ran ahead of its start keeps its nodes",
            RebuildCause::Overcommitted => "a job was resumed on the processors of others",
            RebuildCause::OtherNodes => "Slurm gave a job other nodes or processors than planned",
            RebuildCause::UnplannedStart => "a job runs before its start",
            RebuildCause::Restart => "nodes or jobs have changed while the driver was away",
            RebuildCause::Nodes => "other nodes are in service than before",
        }
    }
}
