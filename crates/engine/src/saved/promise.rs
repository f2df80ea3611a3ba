//! Promises, as they are stored.

use miserly_core::{Broken, Promise, Time};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct SavedPromise {
    promised: i64,
    best: i64,
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
    pub(super) fn new(promise: &Promise) -> SavedPromise {
        SavedPromise {
            promised: promise.told.ticks(),
            best: promise.best.ticks(),
            broken: promise.broken.map(SavedBreachCause::new),
        }
    }

    pub(super) fn promise(self) -> Promise {
        let (told, best) = (Time::from_ticks(self.promised), Time::from_ticks(self.best));
        Promise { told, best, broken: self.broken.map(SavedBreachCause::broken) }
    }
}

impl SavedBreachCause {
    /// Returns the stored form of a cause.
    pub const fn new(broken: Broken) -> SavedBreachCause {
        match broken {
            Broken::Overdue => SavedBreachCause::Overdue,
            Broken::Away => SavedBreachCause::Away,
            Broken::Capacity => SavedBreachCause::Capacity,
            Broken::Amended => SavedBreachCause::Amended,
        }
    }

    /// Returns the cause.
    pub const fn broken(self) -> Broken {
        match self {
            SavedBreachCause::Overdue => Broken::Overdue,
            SavedBreachCause::Away => Broken::Away,
            SavedBreachCause::Capacity => Broken::Capacity,
            SavedBreachCause::Amended => Broken::Amended,
        }
    }
}
