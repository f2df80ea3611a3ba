//! The slots of a time-sliced job, as they are stored.

use miserly_core::{Entry, Pace, Progress, SlotId, State};
use serde::{Deserialize, Serialize};

/// The slots and the pace of a job. Without time slices this is the default.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct SavedSlots {
    /// The slot of its own placement.
    slot: u32,
    /// The alternate slots.
    alternate_slots: Vec<u32>,
    /// The share of the time: `turns` of `of`.
    turns: u64,
    of: u64,
    /// The finished part of the next processor-tick: `rest` of `parts`.
    rest: u64,
    parts: u64,
}

impl Default for SavedSlots {
    fn default() -> SavedSlots {
        SavedSlots { slot: 0, alternate_slots: vec![], turns: 1, of: 1, rest: 0, parts: 1 }
    }
}

impl SavedSlots {
    pub(crate) fn is_none(&self) -> bool {
        *self == SavedSlots::default()
    }

    pub(crate) fn new(entry: &Entry) -> SavedSlots {
        let Progress { pace, rest, parts, .. } = entry.progress;
        SavedSlots {
            slot: entry.placement().map_or(0, |placement| placement.slot.0),
            alternate_slots: entry.alternate_slots.iter().map(|row| row.0).collect(),
            turns: pace.turns(),
            of: pace.denominator(),
            rest,
            parts,
        }
    }

    /// Restores the slots of an entry.
    pub(crate) fn restore(&self, entry: &mut Entry) {
        if let State::Running { placement, .. } | State::Suspended { placement, .. } = &mut entry.state {
            placement.slot = SlotId(self.slot);
        }
        entry.alternate_slots = self.alternate_slots.iter().map(|row| SlotId(*row)).collect();
        let pace = Pace::new(self.turns, self.of);
        // The pace divides the parts in every valid record.
        if self.parts > 0 && self.parts.is_multiple_of(pace.denominator()) {
            entry.progress = Progress { pace, rest: self.rest, parts: self.parts, ..entry.progress };
        }
    }
}
