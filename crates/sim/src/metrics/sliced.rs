//! What became of jobs where processors are sliced in time.

use miserly_core::{Driver, Ledger, System, Time};

use super::distribution::Distribution;
use crate::finished::{Finished, SystemSnapshot};

/// In how many rows jobs ran, and how many there were (Feitelson 1996, Figures 10 and 11).
#[derive(Clone, Debug)]
pub struct Sliced {
    /// The rows in which each measured job ran, as a mean over its time on the machine.
    pub slots: Distribution,
    /// The share of its time on the machine that each measured job ran: its runtime on a machine of its own over that time.
    pub run_fraction: Distribution,
    /// The most rows that were used at once.
    pub most_rows: usize,
    /// How often rows were united at terminations.
    pub unifications: u64,
    /// Rows x ticks.
    row_ticks: u128,
    last: Option<(Time, usize)>,
}

impl Default for Sliced {
    fn default() -> Sliced {
        Sliced {
            slots: Distribution::of_ratios(),
            run_fraction: Distribution::of_ratios(),
            most_rows: 0,
            unifications: 0,
            row_ticks: 0,
            last: None,
        }
    }
}

impl Sliced {
    /// Adds a job; returns its slots in units of the sum, if it was on the machine for any time.
    pub(super) fn add(&mut self, job: &Finished) -> Option<u128> {
        let slices = job.slices.as_ref()?;
        let slots = slices.slots().map(|slots| self.slots.add_ratio(slots));
        if let Some(fraction) = slices.run_fraction(job.runtime) {
            self.run_fraction.add_ratio(fraction);
        }
        slots
    }

    pub(super) fn instant(&mut self, now: Time, standing: SystemSnapshot) {
        self.row_ticks = self.row_ticks(now);
        self.last = Some((now, standing.rows));
        self.most_rows = self.most_rows.max(standing.rows);
    }

    pub(super) fn system(&mut self, system: &System) {
        let of = |queue: &Driver| Ledger::unifications(queue.ledger());
        self.unifications = system.queues().iter().filter_map(of).sum();
    }

    /// The rows that were used by then, over time: rows x ticks.
    pub(super) fn row_ticks(&self, now: Time) -> u128 {
        let since =
            self.last.map_or(0, |(at, rows)| u128::from((now - at).ticks().unsigned_abs()) * rows as u128);
        self.row_ticks + since
    }

    /// Adds all that another one holds.
    pub fn merge(&mut self, other: &Sliced) {
        self.slots.merge(&other.slots);
        self.run_fraction.merge(&other.run_fraction);
        self.most_rows = self.most_rows.max(other.most_rows);
        self.unifications += other.unifications;
        self.row_ticks += other.row_ticks;
    }
}
