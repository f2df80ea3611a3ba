//! The resources of a request or a host: a small fixed vector of counts.

use std::fmt;

use crate::Procs;

/// The number of kinds of resources.
const KINDS: usize = 4;

/// A kind of resource. Its value is the position of its count in [`Resources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Processors (PEs), counted.
    Cpus = 0,
    /// Memory, in kilobytes.
    Memory = 1,
    /// GPUs, counted.
    Gpus = 2,
    /// One further named count of the site, such as licences.
    Other = 3,
}

impl Kind {
    /// Every kind, in order.
    pub const ALL: [Kind; KINDS] = [Kind::Cpus, Kind::Memory, Kind::Gpus, Kind::Other];
}

/// An amount of each kind of resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources([u64; KINDS]);

impl Resources {
    /// No resources.
    pub const NONE: Resources = Resources([0; KINDS]);

    /// Returns `count` processors and nothing else.
    pub fn cpus(count: impl Into<Procs>) -> Resources {
        Resources([count.into().get(), 0, 0, 0])
    }

    /// Returns the same amounts except for `kind`.
    #[must_use]
    pub const fn with(mut self, kind: Kind, amount: u64) -> Resources {
        self.0[kind as usize] = amount;
        self
    }

    /// Returns the same amounts with `count` processors.
    #[must_use]
    pub const fn with_cpus(self, count: Procs) -> Resources {
        self.with(Kind::Cpus, count.get())
    }

    /// Returns the amount of one kind.
    pub const fn get(&self, kind: Kind) -> u64 {
        self.0[kind as usize]
    }

    /// Returns the number of processors.
    pub const fn cpus_count(&self) -> Procs {
        Procs::new(self.0[Kind::Cpus as usize])
    }

    /// Returns whether every amount is at most that of `other`.
    pub fn fits_in(&self, other: &Resources) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, theirs)| mine <= theirs)
    }

    /// Returns the sum of both amounts, saturating.
    #[must_use]
    pub fn plus(&self, other: &Resources) -> Resources {
        Resources(std::array::from_fn(|kind| self.0[kind].saturating_add(other.0[kind])))
    }

    /// Returns the remainder after subtracting `other`, or `None` if some kind has too little.
    pub fn minus(&self, other: &Resources) -> Option<Resources> {
        other.fits_in(self).then(|| Resources(std::array::from_fn(|kind| self.0[kind] - other.0[kind])))
    }

    /// Returns the remainder after subtracting `other`, at least zero, kind by kind.
    #[must_use]
    pub fn less(&self, other: &Resources) -> Resources {
        Resources(std::array::from_fn(|kind| self.0[kind].saturating_sub(other.0[kind])))
    }

    /// Returns the maximum of both amounts, kind by kind.
    #[must_use]
    pub fn most(&self, other: &Resources) -> Resources {
        Resources(std::array::from_fn(|kind| self.0[kind].max(other.0[kind])))
    }

    /// Returns the minimum of both amounts, kind by kind.
    #[must_use]
    pub fn least(&self, other: &Resources) -> Resources {
        Resources(std::array::from_fn(|kind| self.0[kind].min(other.0[kind])))
    }

    /// Returns the same amounts without processors.
    #[must_use]
    pub const fn without_cpus(self) -> Resources {
        self.with_cpus(Procs::ZERO)
    }

    /// Returns the number of processors of a job that fit here, each with its part of the other
    /// requested resources.
    ///
    /// If the whole job fits, all of its processors fit. Otherwise an amount that the processors do
    /// not divide is rounded up for each processor.
    pub fn parts(&self, demand: &Resources) -> Procs {
        PartCounter::new(demand).parts_in(self)
    }

    /// Returns each kind rounded up to a multiple of the processors.
    #[must_use]
    pub fn in_equal_parts(&self) -> Resources {
        let procs = self.cpus_count().get().max(1);
        Resources(self.0.map(|amount| amount.checked_next_multiple_of(procs).unwrap_or(amount)))
    }

    /// Returns the part of this demand that the processors `from..to` of a job take. The parts of
    /// all processors sum to the whole exactly.
    #[must_use]
    pub fn part(&self, from: Procs, to: Procs) -> Resources {
        let procs = u128::from(self.cpus_count().max(Procs::ONE));
        // A part is at most the whole.
        let until = |amount: u64, end: Procs| match (amount.checked_mul(end.get()), u64::try_from(procs)) {
            // A division of 64 bits is many times as fast.
            (Some(product), Ok(procs)) => product / procs,
            _ => u64::try_from(u128::from(amount) * u128::from(end) / procs).unwrap_or(amount),
        };
        Resources(std::array::from_fn(|kind| until(self.0[kind], to) - until(self.0[kind], from)))
    }

    /// Returns only the kinds of which `of` has a positive amount.
    #[must_use]
    pub fn masked(&self, of: &Resources) -> Resources {
        Resources(std::array::from_fn(|kind| if of.0[kind] > 0 { self.0[kind] } else { 0 }))
    }
}

/// Counts the processors of one job that fit into one room after another.
#[derive(Clone, Copy, Debug)]
pub struct PartCounter {
    demand: Resources,
    /// The amount for one processor, rounded up.
    each: [u64; KINDS],
}

impl PartCounter {
    /// Returns the counter for a job that requests `demand`.
    pub fn new(demand: &Resources) -> PartCounter {
        let procs = demand.cpus_count().get().max(1);
        PartCounter { demand: *demand, each: demand.0.map(|amount| amount.div_ceil(procs)) }
    }

    /// Returns the number of processors that fit into this room, as [`Resources::parts`].
    pub fn parts_in(&self, room: &Resources) -> Procs {
        let procs = self.demand.cpus_count().get();
        if self.demand.fits_in(room) {
            return Procs::new(procs);
        }
        let parts = room.0.iter().zip(self.each).map(|(room, each)| match each {
            0 => procs,
            1 => *room,
            each => room / each,
        });
        Procs::new(parts.fold(procs, u64::min))
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} processors", self.cpus_count())?;
        for (kind, unit) in [(Kind::Memory, "kB memory"), (Kind::Gpus, "GPUs"), (Kind::Other, "other")] {
            if self.get(kind) > 0 {
                write!(f, ", {} {unit}", self.get(kind))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_counts() {
        let host = Resources::cpus(8).with(Kind::Memory, 100);
        assert!(Resources::cpus(8).with(Kind::Memory, 100).fits_in(&host));
        assert!(!Resources::cpus(1).with(Kind::Memory, 101).fits_in(&host));
        assert_eq!(host.minus(&Resources::cpus(9)), None);
        assert_eq!(host.minus(&Resources::cpus(3)).unwrap().cpus_count(), Procs::new(5));
        assert_eq!(host.masked(&Resources::cpus(1)), Resources::cpus(8));
        assert_eq!(host.to_string(), "8 processors, 100 kB memory");
    }

    #[test]
    fn parts_of_a_job() {
        let demand = Resources::cpus(3).with(Kind::Memory, 10);
        let room = |cpus: u64, memory| Resources::cpus(cpus).with(Kind::Memory, memory).parts(&demand);
        assert_eq!([room(8, 100), room(2, 100), room(8, 7), room(8, 3)], [3, 2, 1, 0].map(Procs::new));
        // Four for each of three processors would be twelve, but their total request is ten.
        assert_eq!([room(8, 10), room(8, 9)], [3, 2].map(Procs::new));
        assert_eq!(demand.in_equal_parts(), Resources::cpus(3).with(Kind::Memory, 12));
        let [none, one, all] = [0, 1, 3].map(Procs::new);
        let parts = [demand.part(none, one), demand.part(one, all)];
        assert_eq!(parts[0].plus(&parts[1]), demand);
        assert_eq!(parts[0], Resources::cpus(1).with(Kind::Memory, 3));
        assert!(parts.iter().zip([1, 2]).all(|(part, procs)| part.parts(&demand) <= Procs::new(procs)));
    }
}
