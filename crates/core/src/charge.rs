//! What jobs cost in the usage of their users and groups.

use crate::{Kind, Resources};

/// What the resources of a job cost, in millionths of a processor.
///
/// # Example
/// ```
/// use miserly_core::{Charge, Kind, Resources};
///
/// // cpus + 8 * gpus + memory / 16GiB
/// let charge = Charge { cpus: 1_000_000, gpus: 8_000_000, memory: 62_500 };
/// let amount = Resources::cpus(4).with(Kind::Gpus, 2).with(Kind::Memory, 32 << 20);
/// assert_eq!(charge.cost(&amount), 22);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// That of a processor.
    pub cpus: u64,
    /// That of a GPU.
    pub gpus: u64,
    /// That of a GiB of memory.
    pub memory: u64,
}

/// The parts of a processor in which a charge is given.
const PARTS: u128 = 1_000_000;
/// The kilobytes of a GiB.
const GIBI: u128 = 1 << 20;
/// The most that a job costs, so that a million jobs can be added.
const MOST: u128 = 1 << 43;

impl Charge {
    /// Returns what a job with these resources costs, as a number of processors: at least 1, and rounded.
    pub fn cost(&self, amount: &Resources) -> u64 {
        let product = |weight: u64, of: u64| u128::from(weight) * u128::from(of);
        let whole = product(self.cpus, amount.cpus_count().get())
            .saturating_add(product(self.gpus, amount.get(Kind::Gpus)));
        let parts = whole.saturating_add(product(self.memory, amount.get(Kind::Memory)) / GIBI);
        let cost = (parts.saturating_add(PARTS / 2) / PARTS).clamp(1, MOST);
        u64::try_from(cost).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_costs_the_rounded_sum_and_at_least_one_processor() {
        let charge = Charge { cpus: 500_000, gpus: 8_000_000, memory: 62_500 };
        let cost = |cpus: u64, gpus, memory| {
            charge.cost(&Resources::cpus(cpus).with(Kind::Gpus, gpus).with(Kind::Memory, memory))
        };
        assert_eq!([cost(1, 0, 0), cost(2, 0, 0), cost(3, 0, 0), cost(3, 1, 0)], [1, 1, 2, 10]);
        assert_eq!([cost(2, 0, 7 << 20), cost(2, 0, 8 << 20), cost(2, 0, 9 << 20)], [1, 2, 2]);
        assert_eq!(cost(u64::MAX >> 1, u64::MAX, u64::MAX), 1 << 43);
    }
}
