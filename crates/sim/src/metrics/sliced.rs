//! The measures of gang scheduling.

use miserly_core::{Driver, Ledger, System, Time};

use super::distribution::Distribution;
use crate::finished::{Finished, SystemSnapshot};

/// The numbers of slots in which jobs ran, and of slots in use (Feitelson 1996, Figures 10 and 11).
#[derive(Clone, Debug)]
pub struct Sliced {
    /// The slots in which each measured job ran, as a mean over its time on the machine.
    pub slots: Distribution,
    /// The share of each measured job's time on the machine in which it ran.
    ///
    /// It is the runtime on a dedicated machine over that time.
    pub run_fraction: Distribution,
    /// The most slots in use at once.
    pub most_slots: usize,
    /// The number of slot unifications at terminations.
    pub unifications: u64,
    /// Slots x ticks.
    slot_ticks: u128,
    last: Option<(Time, usize)>,
}

impl Default for Sliced {
    fn default() -> Sliced {
        Sliced {
            slots: Distribution::of_ratios(),
            run_fraction: Distribution::of_ratios(),
            most_slots: 0,
            unifications: 0,
            slot_ticks: 0,
            last: None,
        }
    }
}

impl Sliced {
    /// Adds a job. Returns its slots in units of the sum, if it was on the machine for any time.
    pub(super) fn add(&mut self, job: &Finished) -> Option<u128> {
        let slices = job.slices.as_ref()?;
        let slots = slices.slots().map(|slots| self.slots.add_ratio(slots));
        if let Some(fraction) = slices.run_fraction(job.runtime) {
            self.run_fraction.add_ratio(fraction);
        }
        slots
    }

    pub(super) fn instant(&mut self, now: Time, standing: SystemSnapshot) {
        self.slot_ticks = self.slot_ticks(now);
        self.last = Some((now, standing.slots));
        self.most_slots = self.most_slots.max(standing.slots);
    }

    pub(super) fn system(&mut self, system: &System) {
        let of = |queue: &Driver| Ledger::unifications(queue.ledger());
        self.unifications = system.queues().iter().filter_map(of).sum();
    }

    /// Returns the used slots up to then, over time: slots x ticks.
    pub(super) fn slot_ticks(&self, now: Time) -> u128 {
        let since =
            self.last.map_or(0, |(at, slots)| u128::from((now - at).ticks().unsigned_abs()) * slots as u128);
        self.slot_ticks + since
    }
}
