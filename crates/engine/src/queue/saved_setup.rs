//! The setup as it is stored: the one under which the stored jobs have their promises.

use miserly_core::{OpportunisticConfig, Span};
use serde::{Deserialize, Serialize};

use crate::journal::{OpportunisticLine, QueueLine};
use crate::{
    AccountName, Journal, JournalError, Queue, QueueUsers, Reservation, Setup, Topology, UserLimits,
};

/// The stored form of a [`Setup`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct SavedSetup {
    queues: Vec<SavedQueue>,
    cpus: Vec<u32>,
    #[serde(default)]
    gpus: u64,
    opportunistic_cpus: Vec<u32>,
    opportunistic: Option<OpportunisticLine>,
    grace: i64,
    cleanup_time: i64,
    orphan_resume_delay: i64,
    keep_history: Option<i64>,
    #[serde(default)]
    user_limits: UserLimits,
    #[serde(default)]
    topology: Topology,
    #[serde(default)]
    whole_cores: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reservations: Vec<Reservation>,
}

/// The stored form of a [`Queue`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct SavedQueue {
    schedule: QueueLine,
    default_time: Option<i64>,
    most_time: Option<i64>,
    default_memory: u64,
    /// The users by number, in the state of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    users: Vec<u32>,
    #[serde(default)]
    only: Option<QueueUsers>,
    #[serde(default)]
    strict: bool,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pause: bool,
    /// An earlier version gave its promises without slack. New ones have it.
    #[serde(default = "promise_slack")]
    promise_slack: i64,
}

const fn promise_slack() -> i64 {
    Queue::PROMISE_SLACK.ticks()
}

const fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_yes(pause: &bool) -> bool {
    *pause
}

impl SavedSetup {
    /// The key of the stored setup.
    pub(crate) const KEY: &str = "setup";

    pub(crate) fn new(setup: &Setup) -> SavedSetup {
        SavedSetup {
            queues: setup.queues.iter().map(SavedQueue::new).collect(),
            cpus: setup.cpus.clone(),
            gpus: setup.gpus,
            opportunistic_cpus: setup.opportunistic_cpus.clone(),
            opportunistic: setup.opportunistic.map(OpportunisticLine::new),
            grace: setup.grace.ticks(),
            cleanup_time: setup.cleanup_time.ticks(),
            orphan_resume_delay: setup.orphan_resume_delay.ticks(),
            keep_history: setup.keep_history.map(Span::ticks),
            user_limits: setup.user_limits.clone(),
            topology: setup.topology.clone(),
            whole_cores: setup.whole_cores,
            reservations: setup.reservations.clone(),
        }
    }

    /// Returns the stored setup. Returns `None` if there is none that this version understands.
    pub(crate) fn load(journal: &impl Journal) -> Result<Option<SavedSetup>, JournalError> {
        Ok(journal.value(SavedSetup::KEY)?.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Returns the setup. Returns `None` if a policy is unknown to this version, or a pool is invalid.
    pub(crate) fn setup(&self) -> Option<Setup> {
        Some(Setup {
            queues: self.queues.iter().map(SavedQueue::queue).collect::<Option<_>>()?,
            cpus: self.cpus.clone(),
            gpus: self.gpus,
            opportunistic_cpus: self.opportunistic_cpus.clone(),
            opportunistic: self.opportunistic.map(OpportunisticConfig::from),
            grace: Span::from_ticks(self.grace),
            cleanup_time: Span::from_ticks(self.cleanup_time),
            orphan_resume_delay: Span::from_ticks(self.orphan_resume_delay),
            keep_history: self.keep_history.map(Span::from_ticks),
            user_limits: self.user_limits.clone(),
            topology: self.topology.clone(),
            whole_cores: self.whole_cores,
            reservations: self.reservations.clone(),
        })
    }
}

impl SavedQueue {
    fn new(queue: &Queue) -> SavedQueue {
        SavedQueue {
            schedule: QueueLine::new(queue),
            default_time: queue.default_time.map(Span::ticks),
            most_time: queue.most_time.map(Span::ticks),
            default_memory: queue.default_memory,
            users: vec![],
            only: queue.users.clone(),
            strict: queue.strict,
            pause: queue.pause,
            promise_slack: queue.promise_slack.ticks(),
        }
    }

    /// Returns the users that an earlier version stored.
    fn earlier_users(&self) -> Option<QueueUsers> {
        let users = self.users.iter().copied().map(AccountName::Number).collect();
        (!self.users.is_empty()).then(|| QueueUsers { users, ..QueueUsers::default() })
    }

    fn queue(&self) -> Option<Queue> {
        Some(Queue {
            name: self.schedule.name.clone(),
            policy: self.schedule.policy.parse().ok()?,
            pool: self.schedule.calendar()?,
            default_time: self.default_time.map(Span::from_ticks),
            most_time: self.most_time.map(Span::from_ticks),
            default_memory: self.default_memory,
            users: self.only.clone().or_else(|| self.earlier_users()),
            strict: self.strict,
            pause: self.pause,
            promise_slack: Span::from_ticks(self.promise_slack),
        })
    }
}
