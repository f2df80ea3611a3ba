//! Where a job runs: a row of the matrix, and a share of one host or of several.

use crate::{HostId, PeSet, Resources};

/// A row of the Ousterhout matrix. Space sharing knows one: row 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u32);

/// Which processors of a host a share means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pes {
    /// Any of them: identity does not matter, and counting is fast.
    Count,
    /// These.
    Set(PeSet),
}

/// A part of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The host.
    pub host: HostId,
    /// How much of it.
    pub amount: Resources,
    /// Which of its processors.
    pub pes: Pes,
}

/// Where a job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The row of the matrix.
    pub slot: SlotId,
    shares: Shares,
}

/// Most jobs have one share: that one is held without an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shares {
    One(Share),
    Many(Box<[Share]>),
}

impl Placement {
    /// `amount` of the only host of a plain machine.
    pub const fn on_plain(amount: Resources) -> Placement {
        Placement::on(HostId(0), amount)
    }

    /// `amount` of one host, in row 0.
    pub const fn on(host: HostId, amount: Resources) -> Placement {
        Placement::from_share(Share { host, amount, pes: Pes::Count })
    }

    /// `amount` of one host, on these of its processors, in row 0.
    pub const fn on_pes(host: HostId, amount: Resources, pes: PeSet) -> Placement {
        Placement::from_share(Share { host, amount, pes: Pes::Set(pes) })
    }

    /// The same shares in another row.
    #[must_use]
    pub fn in_slot(self, slot: SlotId) -> Placement {
        Placement { slot, ..self }
    }

    /// One share, in row 0.
    pub const fn from_share(share: Share) -> Placement {
        Placement { slot: SlotId(0), shares: Shares::One(share) }
    }

    /// The processors that it names on its only host, if it has one and names them.
    pub fn pes(&self) -> Option<&PeSet> {
        match self.shares() {
            [Share { pes: Pes::Set(pes), .. }] => Some(pes),
            _ => None,
        }
    }

    /// Shares of several hosts in one row.
    pub fn across(slot: SlotId, shares: Vec<Share>) -> Placement {
        Placement { slot, shares: Shares::Many(shares.into_boxed_slice()) }
    }

    /// The shares, one per host.
    pub fn shares(&self) -> &[Share] {
        match &self.shares {
            Shares::One(share) => std::slice::from_ref(share),
            Shares::Many(shares) => shares,
        }
    }

    /// What the shares hold together.
    pub fn total(&self) -> Resources {
        self.shares().iter().fold(Resources::NONE, |sum, share| sum.plus(&share.amount))
    }
}
