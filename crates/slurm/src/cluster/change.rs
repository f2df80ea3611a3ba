//! What differs between two states of a cluster.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Cluster, Job, JobState, Node};

/// A difference between two states of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// A job is new.
    Submitted {
        /// The job.
        job: String,
    },
    /// The state of a job changed.
    State {
        /// The job.
        job: String,
        /// The state before.
        from: JobState,
        /// The state now.
        to: JobState,
    },
    /// Something else of a job changed: its limit, its priority, its nodes.
    Updated {
        /// The job.
        job: String,
    },
    /// A job is gone: it ended, or was cancelled.
    Gone {
        /// The job.
        job: String,
        /// Its last state.
        from: JobState,
    },
    /// A node changed whether jobs can start there, or is new or gone.
    Node {
        /// The node.
        node: String,
        /// Whether jobs can start there now.
        usable: bool,
    },
}

/// Returns the changes from one state to the next: jobs by number, then nodes by name.
pub fn changes(before: &Cluster, after: &Cluster) -> Vec<Change> {
    let mut changes = vec![];
    let jobs: BTreeSet<&String> = before.jobs.keys().chain(after.jobs.keys()).collect();
    for number in jobs {
        let job = number.clone();
        // The expected start of a waiting job changes all the time.
        let known = |job: &Job| {
            let waits = job.state == JobState::Pending;
            let (start, end) = if waits { (None, None) } else { (job.start, job.end) };
            Job { start, end, reason: None, ..job.clone() }
        };
        match (before.jobs.get(number), after.jobs.get(number)) {
            (None, Some(_)) => changes.push(Change::Submitted { job }),
            (Some(old), None) => changes.push(Change::Gone { job, from: old.state.clone() }),
            (Some(old), Some(new)) if old.state != new.state => {
                changes.push(Change::State { job, from: old.state.clone(), to: new.state.clone() });
            }
            (Some(old), Some(new)) if known(old) != known(new) => changes.push(Change::Updated { job }),
            _ => {}
        }
    }
    let nodes: BTreeSet<&String> = before.nodes.keys().chain(after.nodes.keys()).collect();
    for node in nodes {
        let usable = |cluster: &Cluster| cluster.nodes.get(node).map(Node::is_usable);
        let (old, new) = (usable(before), usable(after));
        if old != new {
            changes.push(Change::Node { node: node.clone(), usable: new.unwrap_or(false) });
        }
    }
    changes
}
