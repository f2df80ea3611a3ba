//! Changes of the machine's capacity under the jobs.

use miserly_core::{Fault, Resources, Round};

use crate::{Action, Attempt, Engine, EngineError, Journal, Launcher, Now, Queue};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Sets the processors that are online, before [`begin`](Engine::begin).
    pub fn set_online(&mut self, cpus: &[u32]) {
        self.cpus.set_online(cpus);
    }

    /// Sets the processors that are online from now on, and moves jobs off the others.
    pub(crate) fn online(&mut self, cpus: &[u32]) {
        self.cpus.set_online(cpus);
        self.leave_lost_cpus();
        self.move_gang_jobs();
    }

    /// Adjusts the capacity of the pools to the processors that are online.
    ///
    /// A queue with processors of its own loses those that are offline. Queues with shared processors lose capacity from the last
    /// queue on. When processors come back the pools grow again, up to their configured size.
    pub(crate) fn fit_pools(&mut self, now: Now) -> Result<(), EngineError> {
        let Some(there) = self.cpus.shared_online() else { return Ok(()) };
        let has_none = |queue: &&Queue| !self.cpus.has_own(&queue.name);
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

    /// Moves running jobs off processors that are offline.
    fn leave_lost_cpus(&mut self) {
        for number in self.jobs.running().collect::<Vec<_>>() {
            let end = self.window_end(number);
            let Some(run) = self.jobs.get(number).and_then(|record| record.run.as_ref()) else {
                continue;
            };
            if !self.cpus.lacks_any(&run.cpus) {
                continue;
            }
            if self.jobs.get(number).is_some_and(|record| self.is_gang(&record.queue)) {
                continue;
            }
            self.cpus.give(&run.cpus.clone());
            let cpus = self.allocate_cpus(number);
            let Some(run) = self.jobs.get_mut(number).and_then(|record| record.run.as_mut()) else {
                continue;
            };
            // If none is left, the kernel has moved the job already.
            run.cpus.clone_from(&cpus);
            self.batch.touch(number);
            if let (Some(end), false) = (end, cpus.is_empty()) {
                self.batch.act(Attempt { job: number, nth: run.nth }, Action::BeginWindow { cpus, end });
            }
        }
    }
}
