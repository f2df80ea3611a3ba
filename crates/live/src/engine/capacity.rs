//! What the machine has, when that changes under the jobs.

use std::collections::BTreeMap;

use miserly_core::{Fault, Kind, Resources, Round};

use super::{Action, Attempt, Engine, EngineError, Hands};
use crate::clock::Now;

/// What pools have that lack something, by queue.
pub(super) type Capacities = BTreeMap<String, [u64; 4]>;

/// Amounts as they were written down.
pub(super) fn of(amounts: [u64; 4]) -> Resources {
    Kind::ALL.into_iter().zip(amounts).fold(Resources::NONE, |sum, (kind, amount)| sum.with(kind, amount))
}

impl<H: Hands> Engine<H> {
    /// What pools have that lack something.
    pub(super) fn capacities(&self) -> Capacities {
        let queues = self.setup.queues.iter().zip(self.system.queues());
        let has = |(setup, queue): (&super::Queue, &miserly_core::Driver)| {
            let capacity = queue.ledger().machine().capacity();
            let lacks = capacity != setup.pool.most();
            lacks.then(|| (setup.name.clone(), Kind::ALL.map(|kind| capacity.get(kind))))
        };
        queues.filter_map(has).collect()
    }

    /// These processors are online now, before anything else happens.
    pub fn machine_has(&mut self, cpus: &[u32]) {
        self.cpus.set_online(cpus);
    }

    /// These processors are online now.
    pub(super) fn online(&mut self, cpus: &[u32]) {
        self.cpus.set_online(cpus);
        self.leave_lost_cpus();
    }

    /// Pools that have more than what is online of the machine shrink, the last queue's first; when processors come back the
    /// pools grow again, up to what they had.
    pub(super) fn fit_pools(&mut self, now: Now) -> Result<(), EngineError> {
        let Some(there) = self.cpus.online() else { return Ok(()) };
        let pools: u64 = self.setup.queues.iter().map(|queue| queue.pool.most().cpus_count()).sum();
        let mut missing = pools.saturating_sub(there);
        let mut changes = vec![];
        for (place, queue) in self.setup.queues.iter().enumerate().rev() {
            let whole: Resources = queue.pool.most();
            let loses = missing.min(whole.cpus_count());
            missing -= loses;
            changes.push((place, whole.with(Kind::Cpus, whole.cpus_count() - loses)));
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
            let Some(run) = self.records.get_mut(&number).and_then(|record| record.run.as_mut()) else {
                continue;
            };
            if !self.cpus.lacks_any(&run.cpus) {
                continue;
            }
            let wanted = run.cpus.len() as u64;
            self.cpus.give(&run.cpus);
            let cpus = self.cpus.take(wanted);
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
