//! A queue of the setup as it is stored.

use miserly_core::{OpportunisticConfig, Span};
use miserly_saved::ticks;
use serde::{Deserialize, Serialize};

use crate::journal::{OpportunisticLine, QueueLine};
use crate::{AccountName, Queue, QueueUsers};

/// The stored form of a [`Queue`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct SavedQueue {
    schedule: QueueLine,
    #[serde(default, with = "ticks::optional")]
    default_time: Option<Span>,
    #[serde(default, with = "ticks::optional")]
    most_time: Option<Span>,
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
    #[serde(default = "promise_slack", with = "ticks")]
    promise_slack: Span,
}

const fn promise_slack() -> Span {
    Queue::PROMISE_SLACK
}

const fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_yes(pause: &bool) -> bool {
    *pause
}

impl From<Queue> for SavedQueue {
    fn from(queue: Queue) -> SavedQueue {
        SavedQueue {
            schedule: QueueLine::new(&queue),
            default_time: queue.default_time,
            most_time: queue.most_time,
            default_memory: queue.default_memory,
            users: vec![],
            only: queue.users,
            strict: queue.strict,
            pause: queue.pause,
            promise_slack: queue.promise_slack,
        }
    }
}

/// Why a stored queue is not read.
#[derive(Debug, thiserror::Error)]
#[error("queue {0}: this version does not know its policy, or its pool is invalid")]
pub(super) struct UnknownQueue(String);

impl TryFrom<SavedQueue> for Queue {
    type Error = UnknownQueue;

    fn try_from(saved: SavedQueue) -> Result<Queue, UnknownQueue> {
        let SavedQueue { schedule, users, .. } = saved;
        let earlier = (!users.is_empty()).then(|| QueueUsers {
            users: users.into_iter().map(AccountName::Number).collect(),
            ..QueueUsers::default()
        });
        let (policy, pool) = (schedule.policy.parse().ok(), schedule.calendar());
        let Some((policy, pool)) = policy.zip(pool) else { return Err(UnknownQueue(schedule.name)) };
        Ok(Queue {
            name: schedule.name,
            policy,
            pool,
            default_time: saved.default_time,
            most_time: saved.most_time,
            default_memory: saved.default_memory,
            users: saved.only.or(earlier),
            strict: saved.strict,
            pause: saved.pause,
            promise_slack: saved.promise_slack,
        })
    }
}

/// The stored form of the resources for opportunistic jobs.
pub(super) mod opportunistic {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{OpportunisticConfig, OpportunisticLine};

    #[allow(clippy::ref_option, reason = "serde passes a reference")]
    pub(in super::super) fn serialize<S: Serializer>(
        config: &Option<OpportunisticConfig>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        config.map(OpportunisticLine::new).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<OpportunisticConfig>, D::Error> {
        Ok(Option::<OpportunisticLine>::deserialize(from)?.map(OpportunisticConfig::from))
    }
}
