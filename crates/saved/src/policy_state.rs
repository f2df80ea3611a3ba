//! The opaque state of policies, as it is stored.

use std::borrow::Cow;

use miserly_core::{LedgerState, PolicyState, SlotId, StateRecord};
use serde::{Deserialize, Serialize};

/// The values that policies keep of one thing, each with its name and the version of its encoding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct SavedPolicyState(Vec<SavedRecord>);

/// A value: its name, the version of its encoding, and the encoded numbers.
type SavedRecord = (String, u32, Vec<u64>);

impl SavedPolicyState {
    /// Returns the stored form.
    pub(crate) fn new(state: &PolicyState) -> SavedPolicyState {
        let record =
            |record: &StateRecord| (record.name.clone().into_owned(), record.version, record.words.clone());
        SavedPolicyState(state.records().iter().map(record).collect())
    }

    /// Returns the state.
    pub(crate) fn state(&self) -> PolicyState {
        let record = |(name, version, words): &SavedRecord| StateRecord {
            name: Cow::Owned(name.clone()),
            version: *version,
            words: words.clone(),
        };
        PolicyState::from_records(self.0.iter().map(record).collect())
    }

    /// Returns whether no value is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The state that a ledger keeps besides that of its jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct SavedLedgerState {
    #[serde(skip_serializing_if = "SavedPolicyState::is_empty")]
    policy: SavedPolicyState,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<SavedPolicyState>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    slots: Vec<(u32, SavedPolicyState)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    users: Vec<(u32, SavedPolicyState)>,
}

impl SavedLedgerState {
    /// Returns the stored form.
    pub fn new(state: &LedgerState) -> SavedLedgerState {
        let slots = state.slots.iter().map(|(slot, state)| (slot.0, SavedPolicyState::new(state)));
        SavedLedgerState {
            policy: SavedPolicyState::new(&state.policy),
            hosts: state.hosts.iter().map(SavedPolicyState::new).collect(),
            slots: slots.collect(),
            users: state.users.iter().map(|(user, state)| (*user, SavedPolicyState::new(state))).collect(),
        }
    }

    /// Returns the state.
    pub fn state(&self) -> LedgerState {
        LedgerState {
            policy: self.policy.state(),
            hosts: self.hosts.iter().map(SavedPolicyState::state).collect(),
            slots: self.slots.iter().map(|(slot, state)| (SlotId(*slot), state.state())).collect(),
            users: self.users.iter().map(|(user, state)| (*user, state.state())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_read_as_it_was_written() {
        let record = |name: &'static str, words: &[u64]| {
            let name = Cow::Borrowed(name);
            PolicyState::from_records(vec![StateRecord { name, version: 3, words: words.to_vec() }])
        };
        let state = LedgerState {
            policy: record("mine/sums", &[u64::MAX, 0, 7]),
            hosts: vec![PolicyState::EMPTY, record("mine/host", &[])],
            slots: vec![(SlotId(4), record("mine/slot", &[1]))],
            users: vec![(1000, record("mine/user", &[2, 3]))],
        };
        let text = serde_json::to_string(&SavedLedgerState::new(&state)).unwrap();
        assert_eq!(serde_json::from_str::<SavedLedgerState>(&text).unwrap().state(), state);
    }
}
