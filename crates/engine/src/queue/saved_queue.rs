//! A queue of the setup as it is stored.

use std::sync::Arc;

use miserly_core::OpportunisticConfig;
use serde::{Deserialize, Serialize};

use crate::journal::{OpportunisticLine, QueueLine};
use crate::{AccountName, Queue, QueueTerms, QueueUsers};

/// The stored form of a [`Queue`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct SavedQueue {
    schedule: QueueLine,
    /// The users by number, in the state of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    users: Vec<u32>,
    #[serde(flatten)]
    terms: QueueTerms,
}

impl From<Queue> for SavedQueue {
    fn from(queue: Queue) -> SavedQueue {
        SavedQueue { schedule: QueueLine::new(&queue), users: vec![], terms: queue.terms }
    }
}

/// Why a stored queue is not read.
#[derive(Debug, thiserror::Error)]
#[error("queue {0}: this version does not know its policy, or its pool or its job classes are invalid")]
pub(super) struct UnknownQueue(String);

impl TryFrom<SavedQueue> for Queue {
    type Error = UnknownQueue;

    fn try_from(saved: SavedQueue) -> Result<Queue, UnknownQueue> {
        let SavedQueue { schedule, users, terms } = saved;
        let earlier = (!users.is_empty()).then(|| QueueUsers {
            users: users.into_iter().map(AccountName::Number).collect(),
            ..QueueUsers::default()
        });
        let (policy, pool) = (schedule.policy.parse().ok(), schedule.calendar());
        let Some(((policy, pool), classes)) = policy.zip(pool).zip(schedule.job_classes()) else {
            return Err(UnknownQueue(schedule.name));
        };
        let terms = QueueTerms { users: terms.users.or(earlier), ..terms };
        Ok(Queue {
            name: schedule.name,
            policy,
            pool,
            classes,
            charge: schedule.charge,
            gpus: schedule.gpus.map(Arc::new),
            terms,
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
