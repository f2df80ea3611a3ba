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

/// The cause of a broken promise, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SavedBreachCause(#[serde(with = "BreachCauseForm")] pub BreachCause);

/// The stored form of [`BreachCause`].
#[derive(Deserialize, Serialize)]
#[serde(remote = "BreachCause", rename_all = "snake_case")]
enum BreachCauseForm {
    Overdue,
    Away,
    Capacity,
    Amended,
}

impl SavedPromise {
    pub(crate) fn new(promise: &Promise) -> SavedPromise {
        SavedPromise {
            promised: promise.first.ticks(),
            best: promise.best.ticks(),
            broken: promise.breach.map(SavedBreachCause),
        }
    }

    /// Returns the promise with another latest start.
    pub(crate) fn moved(self, best: i64) -> SavedPromise {
        SavedPromise { best, ..self }
    }

    pub(crate) fn promise(self) -> Promise {
        let (first, best) = (Time::from_ticks(self.promised), Time::from_ticks(self.best));
        Promise { first, best, breach: self.broken.map(|cause| cause.0) }
    }
}
