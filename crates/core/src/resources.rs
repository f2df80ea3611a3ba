//! What a job asks for and a host has: a small fixed vector of counts.

use std::fmt;

/// How many kinds of resource there are.
const KINDS: usize = 4;

/// A kind of resource; the position of its count in [`Resources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Processors (PEs), counted.
    Cpus = 0,
    /// Memory, in kilobytes.
    Memory = 1,
    /// GPUs, counted.
    Gpus = 2,
    /// One further named count of the site's own, such as licences.
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
    /// Nothing of anything.
    pub const NONE: Resources = Resources([0; KINDS]);

    /// That many processors and nothing else.
    pub const fn cpus(count: u64) -> Resources {
        Resources([count, 0, 0, 0])
    }

    /// The same amounts, but for `kind`.
    #[must_use]
    pub const fn with(mut self, kind: Kind, amount: u64) -> Resources {
        self.0[kind as usize] = amount;
        self
    }

    /// The amount of one kind.
    pub const fn get(&self, kind: Kind) -> u64 {
        self.0[kind as usize]
    }

    /// The number of processors.
    pub const fn cpus_count(&self) -> u64 {
        self.0[Kind::Cpus as usize]
    }

    /// Whether every amount is at most the other's.
    pub fn fits_in(&self, other: &Resources) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, theirs)| mine <= theirs)
    }

    /// Both amounts together, saturating.
    #[must_use]
    pub fn plus(&self, other: &Resources) -> Resources {
        Resources(std::array::from_fn(|kind| self.0[kind].saturating_add(other.0[kind])))
    }

    /// What is left after taking `other` away; `None` if some kind does not have that much.
    pub fn minus(&self, other: &Resources) -> Option<Resources> {
        other.fits_in(self).then(|| Resources(std::array::from_fn(|kind| self.0[kind] - other.0[kind])))
    }

    /// Only the kinds of which `of` has any.
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
        assert_eq!(host.minus(&Resources::cpus(3)).unwrap().cpus_count(), 5);
        assert_eq!(host.masked(&Resources::cpus(1)), Resources::cpus(8));
        assert_eq!(host.to_string(), "8 processors, 100 kB memory");
    }
}
