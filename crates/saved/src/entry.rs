//! A ledger entry, as it is stored.

use miserly_core::{Entry, Prediction, Progress, Span, Time};
use serde::{Deserialize, Serialize};

use crate::policy_state::SavedPolicyState;
use crate::promise::SavedPromise;
use crate::request::SavedRequest;
use crate::share::{SavedShare, placement, shares};
use crate::slots::SavedSlots;
use crate::state::SavedState;
use crate::work;

/// A stored ledger entry.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SavedEntry {
    /// The request.
    pub request: SavedRequest,
    admitted: u64,
    state: SavedState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prediction: Option<SavedPrediction>,
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
    #[serde(with = "work")]
    done: u128,
    done_at: i64,
    working: u64,
    #[serde(default, skip_serializing_if = "SavedProgress::is_none")]
    opportunistic: SavedProgress,
    #[serde(default, skip_serializing_if = "SavedSlots::is_none")]
    slots: SavedSlots,
}

/// A predicted runtime, and the span of plans, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct SavedPrediction {
    runtime: i64,
    planned: i64,
}

/// The work of an opportunistic job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
struct SavedProgress {
    #[serde(with = "work")]
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
    /// Returns the instant at which a running job is expected to end, if it is known.
    pub fn expected_end(&self) -> Option<Time> {
        self.state.expected_end()
    }

    /// Returns the stored form of an entry.
    pub fn new(entry: &Entry) -> SavedEntry {
        SavedEntry {
            request: SavedRequest::new(&entry.request),
            admitted: entry.admitted,
            state: SavedState::new(&entry.state),
            prediction: entry.prediction.map(|Prediction { runtime, planned }| SavedPrediction {
                runtime: runtime.ticks(),
                planned: planned.ticks(),
            }),
            promise: entry.promise.as_ref().map(SavedPromise::new),
            planned: entry.planned.map(Time::ticks),
            planned_on: entry.planned_on.as_ref().map(shares),
            decided: entry.decided,
            policy_state: SavedPolicyState::new(&entry.policy_state),
            done: entry.progress.done,
            done_at: entry.progress.at.ticks(),
            working: entry.progress.procs.get(),
            opportunistic: SavedProgress {
                done: entry.opportunistic.done,
                at: entry.opportunistic.at.ticks(),
                procs: entry.opportunistic.procs.get(),
            },
            slots: SavedSlots::new(entry),
        }
    }

    /// Returns the last promise of a waiting job and the rank of the decision on it.
    pub fn last_promise(&self) -> Option<(i64, u64)> {
        let waits = self.state == SavedState::Waiting;
        self.promise.filter(|_| waits).map(|promise| (promise.best, self.decided))
    }

    /// Moves the last promise, and the planned start if it is the promised one.
    pub fn move_promise(&mut self, start: i64, decided: u64) {
        self.decided = decided;
        let Some(promise) = self.promise else { return };
        self.planned = self.planned.map(|at| if at == promise.best { start } else { at });
        self.promise = Some(promise.moved(start));
    }

    /// Returns whether `new` differs in an earlier promise only.
    pub fn differs_in_earlier_promise(&self, new: &SavedEntry) -> bool {
        let (Some((before, _)), Some((start, decided))) = (self.last_promise(), new.last_promise()) else {
            return false;
        };
        let moved = || {
            let mut moved = self.clone();
            moved.move_promise(start, decided);
            moved
        };
        start < before && moved() == *new
    }

    /// Returns the entry.
    pub fn entry(&self) -> Entry {
        let mut entry = Entry::waiting(self.request.request(), self.admitted);
        entry.state = self.state.state();
        entry.prediction = self.prediction.map(|SavedPrediction { runtime, planned }| Prediction {
            runtime: Span::from_ticks(runtime),
            planned: Span::from_ticks(planned),
        });
        entry.promise = self.promise.map(SavedPromise::promise);
        entry.planned = self.planned.map(Time::from_ticks);
        entry.planned_on = self.planned_on.as_deref().map(placement);
        entry.decided = self.decided;
        entry.policy_state = self.policy_state.state();
        let at = Time::from_ticks(self.done_at);
        entry.progress = Progress { done: self.done, at, procs: self.working.into(), ..Progress::default() };
        let SavedProgress { done, at, procs } = self.opportunistic;
        entry.opportunistic =
            Progress { done, at: Time::from_ticks(at), procs: procs.into(), ..Progress::default() };
        self.slots.restore(&mut entry);
        entry
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{
        Expected, Form, HostGroup, HostId, Pace, PeSet, Placement, Request, Resources, SlotId, Span, State,
    };

    use super::*;

    fn entry(slot: SlotId) -> Entry {
        let demand = Resources::cpus(3);
        let placement = Placement::on_pes(HostId(0), demand, PeSet::block(4, 3)).in_slot(slot);
        let (start, expected) = (Time::from_ticks(5), Expected::At(Time::from_ticks(900)));
        let mut entry = Entry::waiting(Request::new(7, Time::ZERO, Span::from_ticks(60), demand), 2);
        entry.state =
            State::Running { start, since: start, expected, placement, released: false, quantum: None };
        entry
    }

    #[test]
    fn a_job_in_several_slots_is_read_as_it_was_written() {
        let mut entry = entry(SlotId(2));
        entry.alternate_slots = vec![SlotId(0), SlotId(5)];
        let at = Time::from_ticks(40);
        entry.progress =
            Progress { done: 70, at, procs: 3.into(), pace: Pace::new(2, 3), rest: 5, parts: 12 };
        let text = serde_json::to_string(&SavedEntry::new(&entry)).unwrap();
        assert_eq!(serde_json::from_str::<SavedEntry>(&text).unwrap().entry(), entry);
    }

    #[test]
    fn a_prediction_is_read_as_it_was_written() {
        let (runtime, planned) = (Span::from_ticks(7), Span::from_ticks(20));
        let entry = Entry { prediction: Some(Prediction { runtime, planned }), ..entry(SlotId(0)) };
        let text = serde_json::to_string(&SavedEntry::new(&entry)).unwrap();
        assert_eq!(serde_json::from_str::<SavedEntry>(&text).unwrap().entry(), entry);
    }

    #[test]
    fn only_a_form_beside_the_default_is_written() {
        let mut entry = entry(SlotId(0));
        let text = serde_json::to_string(&SavedEntry::new(&entry)).unwrap();
        assert!(!text.contains("form"), "{text}");
        let in_group = Form { group: Some(HostGroup(7)), ..Form::ANY };
        for form in [Form { apart: true, ..Form::parts(3) }, Form { alone: true, ..Form::ANY }, in_group] {
            entry.request.form = form;
            let text = serde_json::to_string(&SavedEntry::new(&entry)).unwrap();
            assert_eq!(serde_json::from_str::<SavedEntry>(&text).unwrap().entry(), entry);
        }
    }

    #[test]
    fn without_time_slices_no_slots_are_written() {
        let entry = entry(SlotId(0));
        let text = serde_json::to_string(&SavedEntry::new(&entry)).unwrap();
        assert!(!text.contains("slots"), "{text}");
        assert_eq!(serde_json::from_str::<SavedEntry>(&text).unwrap().entry(), entry);
    }
}
