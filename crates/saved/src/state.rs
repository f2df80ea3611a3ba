//! The state of a job in the ledger, as it is stored.

use miserly_core::{Expected, Holds, State, Time};
use serde::{Deserialize, Serialize};

use crate::share::{SavedShare, placement, shares};

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum SavedState {
    Waiting,
    Running {
        start: i64,
        since: i64,
        expected: i64,
        overdue: bool,
        on: Vec<SavedShare>,
        quantum: Option<i64>,
    },
    Suspended {
        start: i64,
        until: i64,
        by: u64,
        on: Vec<SavedShare>,
        #[serde(default, skip_serializing_if = "SavedHolds::is_usual")]
        holds: SavedHolds,
    },
}

/// The resources of a suspended job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SavedHolds {
    AllUntil(i64),
    #[default]
    AllButCpus,
    Nothing,
}

impl SavedHolds {
    pub(crate) fn is_usual(&self) -> bool {
        *self == SavedHolds::default()
    }

    pub(crate) fn new(holds: Holds) -> SavedHolds {
        match holds {
            Holds::All { until } => SavedHolds::AllUntil(until.ticks()),
            Holds::AllButCpus => SavedHolds::AllButCpus,
            Holds::Nothing => SavedHolds::Nothing,
        }
    }

    pub(crate) fn holds(self) -> Holds {
        match self {
            SavedHolds::AllUntil(until) => Holds::All { until: Time::from_ticks(until) },
            SavedHolds::AllButCpus => Holds::AllButCpus,
            SavedHolds::Nothing => Holds::Nothing,
        }
    }
}

impl SavedState {
    pub(crate) fn new(state: &State) -> SavedState {
        match state {
            State::Waiting => SavedState::Waiting,
            State::Running { start, since, expected, placement, quantum, released: _ } => {
                let (expected, overdue) = match expected {
                    Expected::At(end) => (end, false),
                    Expected::Overdue { since } => (since, true),
                };
                SavedState::Running {
                    start: start.ticks(),
                    since: since.ticks(),
                    expected: expected.ticks(),
                    overdue,
                    on: shares(placement),
                    quantum: quantum.map(Time::ticks),
                }
            }
            State::Suspended { start, until, by, placement, holds } => SavedState::Suspended {
                start: start.ticks(),
                until: until.ticks(),
                by: *by,
                on: shares(placement),
                holds: SavedHolds::new(*holds),
            },
        }
    }

    /// Returns the instant at which a running job is expected to end; `None` if it is overdue.
    pub(crate) fn expected_end(&self) -> Option<Time> {
        match self {
            SavedState::Running { expected, overdue: false, .. } => Some(Time::from_ticks(*expected)),
            _ => None,
        }
    }

    pub(crate) fn state(&self) -> State {
        match self {
            SavedState::Waiting => State::Waiting,
            SavedState::Running { start, since, expected, overdue, on, quantum } => {
                let end = Time::from_ticks(*expected);
                State::Running {
                    start: Time::from_ticks(*start),
                    since: Time::from_ticks(*since),
                    expected: if *overdue { Expected::Overdue { since: end } } else { Expected::At(end) },
                    placement: placement(on),
                    // It is set within an instant only, and nothing is stored there.
                    released: false,
                    quantum: quantum.map(Time::from_ticks),
                }
            }
            SavedState::Suspended { start, until, by, on, holds } => State::Suspended {
                start: Time::from_ticks(*start),
                until: Time::from_ticks(*until),
                by: *by,
                placement: placement(on),
                holds: holds.holds(),
            },
        }
    }
}
