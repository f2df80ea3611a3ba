//! A job's part of a matrix, where time is sliced.

use miserly_core::{Entry, Pace, Progress, SlotId, State};
use serde::{Deserialize, Serialize};

/// Its part of a matrix: nothing of this is as it is by default where time is sliced.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct SavedRows {
    /// Its own row.
    slot: u32,
    /// The others in which it runs.
    also_in: Vec<u32>,
    /// Its share of the time: so many turns of so many.
    turns: u64,
    of: u64,
    /// What is done of the next processor-tick: so many parts of so many.
    rest: u64,
    parts: u64,
}

impl Default for SavedRows {
    fn default() -> SavedRows {
        SavedRows { slot: 0, also_in: vec![], turns: 1, of: 1, rest: 0, parts: 1 }
    }
}

impl SavedRows {
    pub(super) fn is_none(&self) -> bool {
        *self == SavedRows::default()
    }

    pub(super) fn of(entry: &Entry) -> SavedRows {
        let Progress { pace, rest, parts, .. } = entry.progress;
        SavedRows {
            slot: entry.placement().map_or(0, |placement| placement.slot.0),
            also_in: entry.also_in.iter().map(|row| row.0).collect(),
            turns: pace.turns(),
            of: pace.of(),
            rest,
            parts,
        }
    }

    /// Puts it back into an entry that has all else.
    pub(super) fn restore(&self, entry: &mut Entry) {
        if let State::Running { placement, .. } | State::Suspended { placement, .. } = &mut entry.state {
            placement.slot = SlotId(self.slot);
        }
        entry.also_in = self.also_in.iter().map(|row| SlotId(*row)).collect();
        let pace = Pace::new(self.turns, self.of);
        // Parts that the pace does not divide are nobody's writing.
        if self.parts > 0 && self.parts.is_multiple_of(pace.of()) {
            entry.progress = Progress { pace, rest: self.rest, parts: self.parts, ..entry.progress };
        }
    }
}
