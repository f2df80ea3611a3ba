//! Jobs that take turns on the processors of their queue, where its policy slices time: in which rows they are is the ledger's, and whose turn
//! it is the hands'.
//!
//! A turn is no event here: nothing is decided when one ends, and nothing is written down. After a restart the rows are as they were, and
//! the turns begin anew.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{JobId, Ledger, Matrix, Span};

use super::{Action, Attempt, Engine, Hands, Record, Turns};
use crate::model::Slots;

impl<H: Hands> Engine<H> {
    /// Whether the jobs of this queue take turns.
    pub(super) fn takes_turns(&self, queue: &str) -> bool {
        self.matrix_of(queue).is_some()
    }

    fn matrix_of(&self, queue: &str) -> Option<&Matrix> {
        let place = self.setup.queues.iter().position(|of| of.name == queue)?;
        self.system.queues().get(place)?.ledger().matrix()
    }

    /// Tells the hands who takes turns with whom, where that is not as it was. O(jobs that run), where anything changed.
    pub(super) fn hand_turns(&mut self) {
        let turns = self.turns();
        for (queue, turns) in &turns {
            if self.turns_told.get(queue) != Some(turns) {
                self.hands.take_turns(queue, Some(turns));
            }
        }
        for gone in self.turns_told.keys().filter(|queue| !turns.contains_key(*queue)) {
            self.hands.take_turns(gone, None);
        }
        self.turns_told = turns;
    }

    /// The turns of each queue whose policy slices time.
    fn turns(&self) -> BTreeMap<String, Turns> {
        let named = self.setup.queues.iter().zip(self.system.queues());
        named.filter_map(|(of, queue)| Some((of.name.clone(), self.turns_of(queue.ledger())?))).collect()
    }

    fn turns_of(&self, ledger: &Ledger) -> Option<Turns> {
        let quantum = ledger.matrix()?.slicing().quantum;
        let mut rows: BTreeMap<u32, BTreeSet<Attempt>> = BTreeMap::new();
        for job in ledger.running() {
            let entry = ledger.entry(job);
            let Some((own, attempt)) = entry.placement().map(|place| place.slot).zip(self.attempt_of(job))
            else {
                continue;
            };
            for slot in entry.also_in.iter().chain([&own]) {
                rows.entry(slot.0).or_default().insert(attempt);
            }
        }
        Some(Turns { quantum, rows })
    }

    fn attempt_of(&self, job: JobId) -> Option<Attempt> {
        self.records.get(&self.number(job))?.attempt()
    }

    /// Moves a job to the processors that its policy has for it now, if they are others.
    pub(super) fn moved(&mut self, number: i64) {
        let Some(run) = self.records.get(&number).and_then(|record| record.run.as_ref()) else { return };
        self.cpus.give(&run.cpus.clone());
        let cpus = self.cpus_for(number);
        let Some(run) = self.records.get_mut(&number).and_then(|record| record.run.as_mut()) else { return };
        if run.cpus != cpus {
            run.cpus.clone_from(&cpus);
            self.turn.touched.insert(number);
            // Without any the kernel has moved it already, to wherever it may.
            if !cpus.is_empty() {
                self.turn.actions.push((Attempt { job: number, nth: run.nth }, Action::Move(cpus)));
            }
        }
    }

    /// Moves the jobs that take turns to the processors that are theirs now that others are online.
    pub(super) fn move_in_turns(&mut self) {
        for number in self.running.clone() {
            if self.records.get(&number).is_some_and(|record| self.takes_turns(&record.queue)) {
                self.moved(number);
            }
        }
    }

    /// In which rows of how many a job runs, and in which share of the time; nothing where time is not sliced.
    pub(super) fn slots(&self, record: &Record) -> Option<Slots> {
        let job = *self.handles.get(&record.number)?;
        let matrix = self.matrix_of(&record.queue)?;
        let entry = self.system.ledger_of(job)?.entry(job);
        let own = entry.placement()?.slot;
        let mut runs_in: Vec<u32> = entry.also_in.iter().chain([&own]).map(|slot| slot.0).collect();
        runs_in.sort_unstable();
        let (turns, of) = (entry.progress.pace.turns(), entry.progress.pace.of());
        Some(Slots { own: own.0, runs_in, used: matrix.used() as u64, fraction: turns as f64 / of as f64 })
    }
}

impl Record {
    /// For how long it may run, if it takes turns.
    pub(super) fn limit(&self) -> Span {
        Span::from_ticks(self.time)
    }
}
