//! What the machine has, when that changes under the jobs.

use miserly_core::{Fault, Resources, Round};

use super::{Action, Attempt, Engine, EngineError, Hands};
use crate::clock::Now;

impl<H: Hands> Engine<H> {
    /// These processors are online now, before anything else happens.
    pub fn machine_has(&mut self, cpus: &[u32]) {
        self.cpus.set_online(cpus);
    }

    /// These processors are online now.
    pub(super) fn online(&mut self, cpus: &[u32]) {
        self.cpus.set_online(cpus);
        self.leave_lost_cpus();
        self.move_in_turns();
    }

    /// Pools that have more than what is online of the machine shrink: those with processors of their own by what is lost of these, and
    /// of the others the last queue's first. When processors come back the pools grow again, up to what they had.
    pub(super) fn fit_pools(&mut self, now: Now) -> Result<(), EngineError> {
        let Some(there) = self.cpus.shared_online() else { return Ok(()) };
        let has_none = |queue: &&super::Queue| !self.cpus.has_own(&queue.name);
        let shared = self.setup.queues.iter().filter(has_none);
        let pools: u64 = shared.map(|queue| queue.pool.most().cpus_count().get()).sum();
        let mut missing = pools.saturating_sub(there);
        let mut changes = vec![];
        for (place, queue) in self.setup.queues.iter().enumerate().rev() {
            let whole: Resources = queue.pool.most();
            let loses = self.cpus.own_lost(&queue.name).unwrap_or(missing).min(whole.cpus_count().get());
            if !self.cpus.has_own(&queue.name) {
                missing -= loses;
            }
            changes.push((place, whole.with_cpus(whole.cpus_count() - loses.into())));
        }
        for (place, capacity) in changes {
            let queue = u32::try_from(place).unwrap_or(u32::MAX);
            if self.system.queues()[place].ledger().machine().capacity() != capacity {
                let fault = Some(Fault::Capacity { queue, capacity });
                self.play_now(now, Round { fault, ..Round::default() })?;
            }
        }
        Ok(())
    }

    /// Moves running jobs off processors that are gone, to what is left of theirs and what is free.
    fn leave_lost_cpus(&mut self) {
        for number in self.running.clone() {
            let end = self.window_end(number);
            let Some(run) = self.records.get(&number).and_then(|record| record.run.as_ref()) else {
                continue;
            };
            if !self.cpus.lacks_any(&run.cpus) {
                continue;
            }
            if self.records.get(&number).is_some_and(|record| self.takes_turns(&record.queue)) {
                continue;
            }
            self.cpus.give(&run.cpus);
            let cpus = self.cpus_for(number);
            let Some(run) = self.records.get_mut(&number).and_then(|record| record.run.as_mut()) else {
                continue;
            };
            // Without any the kernel has moved it already, to wherever it may.
            run.cpus.clone_from(&cpus);
            self.turn.touched.insert(number);
            if let (Some(end), false) = (end, cpus.is_empty()) {
                let attempt = Attempt { job: number, nth: run.nth };
                self.turn.actions.push((attempt, Action::Critical { cpus, end }));
            }
        }
    }
}
