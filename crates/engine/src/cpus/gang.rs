//! Gang scheduling: the ledger stores slot membership, and the launcher rotates the slots.
//!
//! A context switch is not an event and is not journaled. After a restart the slots are as they were, and the rotation starts
//! again.

use std::collections::{BTreeMap, BTreeSet};

use miserly_api::model::Slots;
use miserly_core::{Entry, JobId, Ledger, Matrix};

use crate::{Action, Attempt, Engine, Journal, Launcher, Record, SlotSchedule, Snapshot};

/// The slot schedules that the launcher has, by queue.
#[derive(Debug, Default)]
pub(crate) struct SentSchedules {
    sent: BTreeMap<String, SlotSchedule>,
}

impl SentSchedules {
    /// Replaces the schedules by `current`. Returns those that changed, with `None` for those that are gone.
    fn replace(&mut self, current: BTreeMap<String, SlotSchedule>) -> Vec<(String, Option<SlotSchedule>)> {
        let changed = current.iter().filter(|(queue, schedule)| self.sent.get(*queue) != Some(*schedule));
        let changed = changed.map(|(queue, schedule)| (queue.clone(), Some(schedule.clone())));
        let gone = self.sent.keys().filter(|queue| !current.contains_key(*queue));
        let all = changed.chain(gone.map(|queue| (queue.clone(), None))).collect();
        self.sent = current;
        all
    }
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Returns whether the jobs of a queue are time-sliced.
    pub(crate) fn is_gang(&self, queue: &str) -> bool {
        self.matrix_of(queue).is_some()
    }

    fn matrix_of(&self, queue: &str) -> Option<&Matrix> {
        self.system.queues().get(self.setup.position(queue)?)?.ledger().matrix()
    }

    /// Sends the slot schedules that changed to the launcher. O(running jobs).
    pub(crate) fn send_slot_schedules(&mut self) {
        let current = self.slot_schedules();
        for (queue, schedule) in self.schedules.replace(current) {
            self.launcher.rotate_slots(&queue, schedule.as_ref());
        }
    }

    /// Returns the slot schedule of each time-sliced queue.
    fn slot_schedules(&self) -> BTreeMap<String, SlotSchedule> {
        let named = self.setup.queues.iter().zip(self.system.queues());
        named.filter_map(|(of, queue)| Some((of.name.clone(), self.slot_schedule(queue.ledger())?))).collect()
    }

    fn slot_schedule(&self, ledger: &Ledger) -> Option<SlotSchedule> {
        let quantum = ledger.matrix()?.slicing().quantum;
        let mut slots: BTreeMap<u32, BTreeSet<Attempt>> = BTreeMap::new();
        for job in ledger.running() {
            let entry = ledger.entry(job);
            let Some((own, attempt)) = entry.placement().map(|place| place.slot).zip(self.attempt_of(job))
            else {
                continue;
            };
            for slot in entry.alternate_slots.iter().chain([&own]) {
                slots.entry(slot.0).or_default().insert(attempt);
            }
        }
        Some(SlotSchedule { quantum, slots })
    }

    fn attempt_of(&self, job: JobId) -> Option<Attempt> {
        self.jobs.get(self.number(job))?.attempt()
    }

    /// Moves a job to the processors of its present placement.
    pub(crate) fn move_to_placement(&mut self, number: i64) {
        if let Some((attempt, cpus)) = self.reallocate_cpus(number) {
            self.batch.act(attempt, Action::Move(cpus));
        }
    }
}

impl Snapshot {
    /// Returns the slots in which a job runs and its share of the time, if its queue is time-sliced.
    pub(crate) fn slots(&self, record: &Record, entry: &Entry) -> Option<Slots> {
        let used = self.queue_state(&record.queue)?.slots?;
        let own = entry.placement()?.slot;
        let mut runs_in: Vec<u32> = entry.alternate_slots.iter().chain([&own]).map(|slot| slot.0).collect();
        runs_in.sort_unstable();
        let (turns, of) = (entry.progress.pace.turns(), entry.progress.pace.denominator());
        Some(Slots { own: own.0, runs_in, used, fraction: turns as f64 / of as f64 })
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::Span;

    use super::*;

    fn schedule(ticks: i64) -> SlotSchedule {
        SlotSchedule { quantum: Span::from_ticks(ticks), ..SlotSchedule::default() }
    }

    #[test]
    fn only_changed_schedules_are_sent() {
        let mut sent = SentSchedules::default();
        let of = |schedules: &[(&str, i64)]| {
            schedules.iter().map(|(queue, ticks)| ((*queue).to_owned(), schedule(*ticks))).collect()
        };
        assert_eq!(sent.replace(of(&[("a", 1), ("b", 2)])).len(), 2);
        assert_eq!(sent.replace(of(&[("a", 1), ("b", 3)])), [("b".to_owned(), Some(schedule(3)))]);
        assert_eq!(sent.replace(of(&[("b", 3)])), [("a".to_owned(), None)]);
        assert_eq!(sent.replace(of(&[("b", 3)])), []);
    }
}
