//! What was promised, and what broke it.

use miserly_core::{Broken, Promise, Time};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct SavedPromise {
    told: i64,
    best: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    broken: Option<SavedBroken>,
}

/// Why a promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SavedBroken {
    /// A job did not end when it should have.
    Overdue,
    /// Nobody scheduled.
    Away,
    /// The machine lost capacity.
    Capacity,
    /// A request was amended.
    Amended,
}

impl SavedPromise {
    pub(super) fn of(promise: &Promise) -> SavedPromise {
        SavedPromise {
            told: promise.told.ticks(),
            best: promise.best.ticks(),
            broken: promise.broken.map(SavedBroken::of),
        }
    }

    pub(super) fn promise(self) -> Promise {
        let (told, best) = (Time::from_ticks(self.told), Time::from_ticks(self.best));
        Promise { told, best, broken: self.broken.map(SavedBroken::broken) }
    }
}

impl SavedBroken {
    /// The cause as it is written down.
    pub const fn of(broken: Broken) -> SavedBroken {
        match broken {
            Broken::Overdue => SavedBroken::Overdue,
            Broken::Away => SavedBroken::Away,
            Broken::Capacity => SavedBroken::Capacity,
            Broken::Amended => SavedBroken::Amended,
        }
    }

    /// The cause that was written down.
    pub const fn broken(self) -> Broken {
        match self {
            SavedBroken::Overdue => Broken::Overdue,
            SavedBroken::Away => Broken::Away,
            SavedBroken::Capacity => Broken::Capacity,
            SavedBroken::Amended => Broken::Amended,
        }
    }
}
