//! Changes of the machine's capacity under the jobs.

use miserly_core::devices::CellId;
use miserly_core::{Calendar, Fault, Kind, Placement, Resources, Round};

use crate::cpus::allocator::instants_of;
use crate::{Adoption, Attempt, Engine, EngineError, Journal, Launcher, Now};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Sets the processors that are online, before [`begin`](Engine::begin).
    pub fn set_online(&mut self, cpus: &[u32]) {
        self.cpus.set_online(cpus);
    }

    /// Sets the processors that are online from now on, and moves jobs off the others.
    pub(crate) fn online(&mut self, cpus: &[u32]) {
        self.cpus.set_online(cpus);
        self.leave_lost_cpus();
    }

    /// Adjusts the capacity of the pools, and the processors of jobs, to the processors that are online.
    ///
    /// What adopted attempts hold is lost, too.
    ///
    /// A queue with processors of its own loses those that are offline. Queues with shared processors lose what their own adopted
    /// attempts hold, and then capacity from the last queue on. When processors come back the pools grow again, up to their configured size.
    pub(crate) fn fit_pools(&mut self, now: Now) -> Result<(), EngineError> {
        if self.cpus.is_changed {
            self.leave_lost_cpus();
        }
        for (place, capacity) in self.pool_capacities() {
            let queue = u32::try_from(place).unwrap_or(u32::MAX);
            if self.system.queues()[place].ledger().machine().capacity() != capacity {
                let fault = Some(Fault::Capacity { queue, capacity });
                self.play_now(now, Round { fault, ..Round::default() })?;
                self.unpark();
            }
        }
        for (queue, cell, lost) in self.changed_losses() {
            let fault = Some(Fault::Devices { queue, cell, lost });
            self.play_now(now, Round { fault, ..Round::default() })?;
        }
        Ok(())
    }

    /// Returns the cells of devices whose lost devices changed: queue, cell, and the positions, one bit each.
    ///
    /// What a job holds is lost after its end.
    pub(crate) fn changed_losses(&self) -> Vec<(u32, CellId, u64)> {
        let mut changed = vec![];
        for ((place, queue), driver) in (0..).zip(&self.setup.queues).zip(self.system.queues()) {
            let ledger = driver.ledger();
            let (Some(gpus), Some(table)) = (queue.classed_gpus(), ledger.machine().devices()) else {
                continue;
            };
            let unusable = gpus.cells_of(&self.unrecorded.gpus());
            for (id, cell) in (0..).map(CellId).zip(table.cells()) {
                let running = ledger.running().filter_map(|job| ledger.entry(job).placement());
                let held = running.flat_map(Placement::devices).filter(|held| held.cell == id);
                let held = held.fold(0, |all, held| all | held.names);
                let lost = unusable.get(&id).copied().unwrap_or(0) & !held;
                if lost != cell.lost {
                    changed.push((place, id, lost));
                }
            }
        }
        changed
    }

    /// Returns the capacity that each pool has at most, by place, from the last queue on; none if all processors are there.
    pub(crate) fn pool_capacities(&self) -> Vec<(usize, Resources)> {
        let Some(there) = self.cpus.shared_online() else { return vec![] };
        let mut changes = vec![];
        let lost = self.lost_cpus(there);
        let lost_memory = self.lost_amounts(Kind::Memory, |adoption| adoption.memory);
        let lost_gpus = self.lost_amounts(Kind::Gpus, |adoption| adoption.gpus.len() as u64);
        for (place, queue) in self.setup.queues.iter().enumerate().rev() {
            let whole: Resources = queue.pool.most();
            let loses = self.cpus.own_lost(&queue.name).unwrap_or(lost[place]).min(whole.cpus_count().get());
            let left = whole.with(Kind::Memory, whole.get(Kind::Memory) - lost_memory[place]);
            let left = left.with(Kind::Gpus, whole.get(Kind::Gpus) - lost_gpus[place]);
            changes.push((place, left.with_cpus(whole.cpus_count() - loses.into())));
        }
        changes
    }

    /// Returns how much adopted attempts of known queues hold, by the place of the queue.
    fn adopted_in(&self, amount: impl Fn(&Adoption) -> u64) -> Vec<u64> {
        let mut held = vec![0; self.setup.queues.len()];
        for adoption in self.unrecorded.adopted() {
            let place = adoption.queue.as_ref().and_then(|queue| self.setup.position(queue));
            if let Some(place) = place {
                held[place] += amount(adoption);
            }
        }
        held
    }

    /// Returns how much each pool loses of an amount that adopted attempts hold, by place.
    fn lost_amounts(&self, kind: Kind, of: impl Fn(&Adoption) -> u64) -> Vec<u64> {
        let most = |place: usize| self.setup.queues[place].pool.most().get(kind);
        let mut lost = self.adopted_in(&of);
        for (place, lost) in lost.iter_mut().enumerate() {
            *lost = (*lost).min(most(place));
        }
        let mut amount = self.unrecorded.adopted().map(&of).sum::<u64>() - lost.iter().sum::<u64>();
        // A reservation that has not begun has nothing to lose.
        let reserved = |place: &usize| self.setup.is_reservation(&self.setup.queues[*place].name);
        let places = || (0..lost.len()).rev();
        let order: Vec<usize> =
            places().filter(|place| !reserved(place)).chain(places().filter(reserved)).collect();
        for place in order {
            let more = amount.min(most(place) - lost[place]);
            lost[place] += more;
            amount -= more;
        }
        lost
    }

    /// Returns the number of processors that each pool loses from its most, if so many shared ones are online.
    ///
    /// Pools that change over time share processors, so the missing ones count at each time.
    fn lost_cpus(&self, there: u64) -> Vec<u64> {
        let mut lost = vec![0; self.setup.queues.len()];
        if self.cpus.together_most() <= there {
            return lost;
        }
        let shared = |place: &usize| !self.cpus.has_own(&self.setup.queues[*place].name);
        let shared: Vec<usize> = (0..lost.len()).filter(shared).collect();
        let adopted = self.adopted_in(|adoption| adoption.cpus.len() as u64);
        let pools: Vec<&Calendar> = shared.iter().map(|place| &self.setup.queues[*place].pool).collect();
        for at in instants_of(&pools) {
            let has = |pool: &Calendar| pool.at(at).cpus_count().get();
            let kept = |place: usize, pool: &Calendar, lost: &[u64]| {
                has(pool).min(pool.most().cpus_count().get().saturating_sub(lost[place]))
            };
            let all: u64 = shared.iter().zip(&pools).map(|(place, pool)| kept(*place, pool, &lost)).sum();
            let mut missing = all.saturating_sub(there);
            // First those that adopted attempts of the queue have.
            let order = || shared.iter().zip(&pools).rev();
            let of_queue = order().map(|of| (of, true));
            for ((place, pool), of_queue) in of_queue.chain(order().map(|of| (of, false))) {
                let kept = kept(*place, pool, &lost);
                let most = if of_queue { adopted[*place].saturating_sub(lost[*place]) } else { kept };
                let loses = missing.min(kept).min(most);
                if loses > 0 {
                    lost[*place] = pool.most().cpus_count().get() - (kept - loses);
                    missing -= loses;
                }
            }
        }
        lost
    }

    /// Moves running jobs off processors that are lost: they are offline, or adopted attempts have them. A job that has lost some
    /// gets others once they are free. For those of time-sliced queues other processors stand then.
    fn leave_lost_cpus(&mut self) {
        self.cpus.is_changed = false;
        for number in self.jobs.running().collect::<Vec<_>>() {
            let Some(record) = self.jobs.get(number) else { continue };
            if self.is_gang(&record.queue) {
                self.move_to_placement(number);
                continue;
            }
            let count = self.count_of(record);
            let Some(run) = record.run.as_ref().filter(|run| run.ending.is_none()) else { continue };
            // A job that its policy resizes gets free ones by each round.
            let has_fewer = (run.cpus.len() as u64) < count && !self.resizes(&record.queue);
            if !(has_fewer || self.cpus.lacks_any(&run.cpus)) {
                continue;
            }
            let attempt = Attempt { job: number, nth: run.nth };
            let has_own = self.cpus.online_of(&run.cpus) > 0 || !self.cpus.free().is_empty();
            // Else it shares those of adopted attempts, or others if its own are offline.
            if has_own || self.cpus.has_offline(&run.cpus) {
                self.move_to_placement(number);
            }
            let left = self.jobs.run(number).map_or(0, |run| self.cpus.online_of(&run.cpus));
            if left < count {
                let lost = count - left;
                self.record_loss(
                    attempt,
                    format!("{lost} of {count} processors are offline, or adopted jobs have them"),
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
