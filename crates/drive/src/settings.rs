//! What is driven, and how.

use std::collections::BTreeSet;

use miserly_core::{Span, Time};
use miserly_policies::PolicySpec;
use miserly_slurm::{Cluster, Limit};

use crate::DriveError;
use crate::scheduler::START_TIMEOUT;

/// The driven partitions, and the way of driving them.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The policy.
    pub policy: PolicySpec,
    /// The seed of its draws.
    pub seed: u64,
    /// The partitions; all, if there are none.
    pub partitions: Vec<String>,
    /// The name of the reservation.
    pub reservation: String,
    /// The user of the driver, by number. The reservation is its own.
    pub owner: u32,
    /// After this time without the driver, Slurm schedules by itself.
    pub fallback: Span,
    /// The time after its limit at which a job is gone at the latest.
    pub margin: Span,
    /// Whether jobs get promises in a comment.
    pub comments: bool,
    /// The preemption lead time of opportunistic jobs: the time that a job takes to leave its nodes. Without one there are no such
    /// jobs.
    pub lead: Option<Span>,
    /// The time that a job takes to leave its nodes, if the policy has it requeued.
    pub leaving: Span,
}

impl Settings {
    /// The usual name of the reservation.
    pub const RESERVATION: &str = "miserly";

    /// Returns the driven partitions.
    pub(crate) fn partitions(&self, cluster: &Cluster) -> BTreeSet<String> {
        if self.partitions.is_empty() {
            return cluster.partitions.keys().cloned().collect();
        }
        self.partitions.iter().cloned().collect()
    }

    /// Returns the nodes of the driven partitions.
    pub(crate) fn nodes<'a>(&self, cluster: &'a Cluster) -> BTreeSet<&'a String> {
        let driven = self.partitions(cluster);
        driven.iter().filter_map(|name| cluster.partitions.get(name)).flat_map(|one| &one.nodes).collect()
    }

    /// Returns the span that is planned for a job of this limit.
    pub(crate) fn estimate(&self, limit: Limit) -> Span {
        Span::from_secs(limit.seconds()).unwrap_or(Span::MAX) + self.margin + self.delay()
    }

    /// Returns the promise of the policy for a user: with the time that a start takes.
    pub(crate) fn promise_for_user(&self, latest: Time) -> Time {
        if latest == Time::MAX { latest } else { latest + self.delay() }
    }

    /// Returns the time that a start takes at most: other jobs leave the nodes, and Slurm starts the job.
    pub(crate) fn delay(&self) -> Span {
        let leaving = if self.policy.needs().requeue { self.leaving } else { Span::ZERO };
        START_TIMEOUT + self.lead.unwrap_or(leaving)
    }

    /// Checks that a driver of Slurm can do what the policy needs.
    pub(crate) fn check(&self) -> Result<(), DriveError> {
        if let Some(need) = self.policy.needs().unmet_on_slurm() {
            return Err(DriveError::Needs { policy: self.policy.to_string(), need });
        }
        if self.lead.is_some() && self.policy.needs().requeue {
            return Err(DriveError::NotOpportunistic { policy: self.policy.to_string() });
        }
        Ok(())
    }
}
