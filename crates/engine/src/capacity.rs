//! Changes of the machine's capacity under the jobs.

use miserly_core::{Fault, Kind, Resources, Round};

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
    /// The processors and the memory of adopted attempts are lost, too.
    ///
    /// A queue with processors of its own loses those that are offline. Queues with shared processors lose capacity from the last
    /// queue on. When processors come back the pools grow again, up to their configured size.
    pub(crate) fn fit_pools(&mut self, now: Now) -> Result<(), EngineError> {
        let Some(there) = self.cpus.shared_online() else { return Ok(()) };
        let has_none = |queue: &&Queue| !self.cpus.has_own(&queue.name);
        let shared = self.setup.queues.iter().filter(has_none);
        let pools: u64 = shared.map(|queue| queue.pool.most().cpus_count().get()).sum();
        let mut missing = pools.saturating_sub(there);
        let mut memory = self.unrecorded.memory();
        let mut changes = vec![];
        for (place, queue) in self.setup.queues.iter().enumerate().rev() {
            let whole: Resources = queue.pool.most();
            let loses = self.cpus.own_lost(&queue.name).unwrap_or(missing).min(whole.cpus_count().get());
            if !self.cpus.has_own(&queue.name) {
                missing -= loses;
            }
            let lost_memory = memory.min(whole.get(Kind::Memory));
            memory -= lost_memory;
            let left = whole.with(Kind::Memory, whole.get(Kind::Memory) - lost_memory);
            changes.push((place, left.with_cpus(whole.cpus_count() - loses.into())));
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
            let Some(record) = self.jobs.get(number) else { continue };
            let lacks = record.run.as_ref().is_some_and(|run| self.cpus.lacks_any(&run.cpus));
            if !lacks || self.is_gang(&record.queue) {
                continue;
            }
            let (requested, attempt) = (record.submission.cpus, record.attempt());
            if let (Some((attempt, cpus)), Some(end)) = (self.reallocate_cpus(number), end) {
                self.batch.act(attempt, Action::BeginWindow { cpus, end });
            }
            let left = self.jobs.run(number).map_or(0, |run| run.cpus.len() as u64);
            if let Some(attempt) = attempt.filter(|_| left < requested) {
                self.record_loss(
                    attempt,
                    format!("{} of {requested} processors are offline", requested - left),
                );
            }
        }
    }

    /// Records that an attempt does not have the processors for itself that were promised to it.
    pub(crate) fn record_loss(&mut self, attempt: Attempt, how: String) {
        let Some(record) = self.jobs.get_mut(attempt.job) else { return };
        let is_present = record.run.as_ref().is_some_and(|run| run.nth == attempt.nth);
        if is_present && record.capacity_lost.as_ref() != Some(&how) {
            record.capacity_lost = Some(how);
            self.batch.touch(attempt.job);
        }
    }
}
