//! Promises, as they are stored.

use miserly_core::{BreachCause, Promise, Time};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct SavedPromise {
    promised: i64,
    pub(crate) best: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    broken: Option<SavedBreachCause>,
}

/// The cause of a broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SavedBreachCause {
    /// A job was overdue.
    Overdue,
    /// No daemon ran, or the machine slept.
    Away,
    /// The machine lost capacity.
    Capacity,
    /// A request was amended.
    Amended,
}

impl SavedPromise {
    pub(crate) fn new(promise: &Promise) -> SavedPromise {
        SavedPromise {
            promised: promise.first.ticks(),
            best: promise.best.ticks(),
            broken: promise.breach.map(SavedBreachCause::new),
        }
    }

    /// Returns the promise with another latest start.
    pub(crate) fn moved(self, best: i64) -> SavedPromise {
        SavedPromise { best, ..self }
    }

    pub(crate) fn promise(self) -> Promise {
        let (first, best) = (Time::from_ticks(self.promised), Time::from_ticks(self.best));
        Promise { first, best, breach: self.broken.map(SavedBreachCause::broken) }
    }
}

impl SavedBreachCause {
    /// Returns the stored form of a cause.
    pub const fn new(broken: BreachCause) -> SavedBreachCause {
        match broken {
            BreachCause::Overdue => SavedBreachCause::Overdue,
            BreachCause::Away => SavedBreachCause::Away,
            BreachCause::Capacity => SavedBreachCause::Capacity,
            BreachCause::Amended => SavedBreachCause::Amended,
        }
    }

    /// Returns the cause.
    pub const fn broken(self) -> BreachCause {
        match self {
            SavedBreachCause::Overdue => BreachCause::Overdue,
            SavedBreachCause::Away => BreachCause::Away,
            SavedBreachCause::Capacity => BreachCause::Capacity,
            SavedBreachCause::Amended => BreachCause::Amended,
        }
    }
}
