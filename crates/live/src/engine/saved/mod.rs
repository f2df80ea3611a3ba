//! A job of the ledger as it is written down.
//!
//! The ledger's own types know nothing of files; these are their written form, and must stay readable: the state of every
//! version that was ever released loads.

mod request;

mod state;

mod share;

mod rows;

mod promise;

mod policy_state;

use miserly_core::{Entry, Progress, Time};
use serde::{Deserialize, Serialize};

pub use self::policy_state::SavedLedgerState;
use self::policy_state::SavedPolicyState;
pub use self::promise::SavedBroken;
use self::promise::SavedPromise;
pub use self::request::SavedRequest;
use self::rows::SavedRows;
use self::share::{SavedShare, placement, shares};
use self::state::SavedState;

/// A job in a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SavedEntry {
    /// What was asked for.
    pub request: SavedRequest,
    admitted: u64,
    state: SavedState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    promise: Option<SavedPromise>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    planned: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    planned_on: Option<Vec<SavedShare>>,
    #[serde(default)]
    decided: u64,
    #[serde(default, skip_serializing_if = "SavedPolicyState::is_empty")]
    policy_state: SavedPolicyState,
    done: u128,
    done_at: i64,
    working: u64,
    #[serde(default, skip_serializing_if = "SavedProgress::is_none")]
    filling: SavedProgress,
    #[serde(default, skip_serializing_if = "SavedRows::is_none")]
    rows: SavedRows,
}

/// Work that was done on what was idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
struct SavedProgress {
    done: u128,
    at: i64,
    procs: u64,
}

impl SavedProgress {
    fn is_none(&self) -> bool {
        *self == SavedProgress::default()
    }
}

impl SavedEntry {
    /// The entry as it is written down.
    pub fn of(entry: &Entry) -> SavedEntry {
        SavedEntry {
            request: SavedRequest::of(&entry.request),
            admitted: entry.admitted,
            state: SavedState::of(&entry.state),
            promise: entry.promise.as_ref().map(SavedPromise::of),
            planned: entry.planned.map(Time::ticks),
            planned_on: entry.planned_on.as_ref().map(shares),
            decided: entry.decided,
            policy_state: SavedPolicyState::new(&entry.policy_state),
            done: entry.progress.done,
            done_at: entry.progress.at.ticks(),
            working: entry.progress.procs.get(),
            filling: SavedProgress {
                done: entry.filling.done,
                at: entry.filling.at.ticks(),
                procs: entry.filling.procs.get(),
            },
            rows: SavedRows::of(entry),
        }
    }

    /// The entry that was written down.
    pub fn entry(&self) -> Entry {
        let mut entry = Entry::waiting(self.request.request(), self.admitted);
        entry.state = self.state.state();
        entry.promise = self.promise.map(SavedPromise::promise);
        entry.planned = self.planned.map(Time::from_ticks);
        entry.planned_on = self.planned_on.as_deref().map(placement);
        entry.decided = self.decided;
        entry.policy_state = self.policy_state.state();
        let at = Time::from_ticks(self.done_at);
        entry.progress = Progress { done: self.done, at, procs: self.working.into(), ..Progress::default() };
        let SavedProgress { done, at, procs } = self.filling;
        entry.filling =
            Progress { done, at: Time::from_ticks(at), procs: procs.into(), ..Progress::default() };
        self.rows.restore(&mut entry);
        entry
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{Expected, HostId, Pace, PeSet, Placement, Request, Resources, SlotId, Span, State};

    use super::*;

    fn entry(slot: SlotId) -> Entry {
        let demand = Resources::cpus(3);
        let placement = Placement::on_pes(HostId(0), demand, PeSet::block(4, 3)).in_row(slot);
        let (start, expected) = (Time::from_ticks(5), Expected::At(Time::from_ticks(900)));
        let mut entry = Entry::waiting(Request::new(7, Time::ZERO, Span::from_ticks(60), demand), 2);
        entry.state =
            State::Running { start, since: start, expected, placement, released: false, quantum: None };
        entry
    }

    #[test]
    fn a_job_in_rows_is_read_as_it_was_written() {
        let mut entry = entry(SlotId(2));
        entry.also_in = vec![SlotId(0), SlotId(5)];
        let at = Time::from_ticks(40);
        entry.progress =
            Progress { done: 70, at, procs: 3.into(), pace: Pace::new(2, 3), rest: 5, parts: 12 };
        let text = serde_json::to_string(&SavedEntry::of(&entry)).unwrap();
        assert_eq!(serde_json::from_str::<SavedEntry>(&text).unwrap().entry(), entry);
    }

    #[test]
    fn where_time_is_not_sliced_it_is_written_as_ever() {
        let entry = entry(SlotId(0));
        let text = serde_json::to_string(&SavedEntry::of(&entry)).unwrap();
        assert!(!text.contains("rows"), "{text}");
        assert_eq!(serde_json::from_str::<SavedEntry>(&text).unwrap().entry(), entry);
    }
}
