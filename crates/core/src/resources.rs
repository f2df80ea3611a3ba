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

    /// Returns the same kinds with changed amounts.
    #[must_use]
    pub(crate) fn map(&self, change: impl FnMut(u64) -> u64) -> Resources {
        Resources(self.0.map(change))
    }

    /// Returns only the kinds of which `of` has a positive amount.
    #[must_use]
    pub fn masked(&self, of: &Resources) -> Resources {
        Resources(std::array::from_fn(|kind| if of.0[kind] > 0 { self.0[kind] } else { 0 }))
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
}
