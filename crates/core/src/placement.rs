//! The placement of a job: a slot of the matrix, and a share of one or several hosts.

use std::sync::Arc;

use crate::devices::HeldDevices;
use crate::{HostId, PeSet, Resources};

/// A slot of the Ousterhout matrix. Space sharing has one slot, slot 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u32);

/// The processors of a host that a share covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pes {
    /// Any processors of the host. Their identity does not matter, and counting is fast.
    Count,
    /// These processors.
    Set(PeSet),
}

/// A part of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The host.
    pub host: HostId,
    /// The amount of each kind.
    pub amount: Resources,
    /// The processors.
    pub pes: Pes,
}

/// The place where a job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The slot of the matrix.
    pub slot: SlotId,
    shares: Shares,
    /// The devices, in the order of their cells. Most machines have none.
    #[expect(clippy::rc_buffer, reason = "a thin pointer keeps placements without devices small")]
    devices: Option<Arc<Vec<HeldDevices>>>,
}

/// The shares. Most jobs have one, which needs no allocation. Copies share the others, and are equal at first sight.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shares {
    One(Share),
    Many(Arc<[Share]>),
}

impl Placement {
    /// Returns a placement of `amount` on the only host of a plain machine.
    pub const fn on_plain(amount: Resources) -> Placement {
        Placement::on(HostId(0), amount)
    }

    /// Returns a placement of `amount` on one host, in slot 0.
    pub const fn on(host: HostId, amount: Resources) -> Placement {
        Placement::from_share(Share { host, amount, pes: Pes::Count })
    }

    /// Returns a placement of `amount` on these processors of one host, in slot 0.
    pub const fn on_pes(host: HostId, amount: Resources, pes: PeSet) -> Placement {
        Placement::from_share(Share { host, amount, pes: Pes::Set(pes) })
    }

    /// Returns the same shares in another slot.
    #[must_use]
    pub fn in_slot(self, slot: SlotId) -> Placement {
        Placement { slot, ..self }
    }

    /// Returns a placement of one share, in slot 0.
    pub const fn from_share(share: Share) -> Placement {
        Placement { slot: SlotId(0), shares: Shares::One(share), devices: None }
    }

    /// Returns the named processors of the only host. Returns `None` if there are several hosts or
    /// no names.
    pub fn pes(&self) -> Option<&PeSet> {
        match self.shares() {
            [Share { pes: Pes::Set(pes), .. }] => Some(pes),
            _ => None,
        }
    }

    /// Returns a placement of shares of one or several hosts in one slot.
    pub fn across(slot: SlotId, shares: Vec<Share>) -> Placement {
        let shares = match <[Share; 1]>::try_from(shares) {
            Ok([one]) => Shares::One(one),
            Err(many) => Shares::Many(many.into()),
        };
        Placement { slot, shares, devices: None }
    }

    /// Returns the same shares with these devices, in the order of their cells.
    #[must_use]
    pub fn with_devices(self, devices: Vec<HeldDevices>) -> Placement {
        Placement { devices: (!devices.is_empty()).then(|| Arc::new(devices)), ..self }
    }

    /// Returns the devices, in the order of their cells.
    pub fn devices(&self) -> &[HeldDevices] {
        self.devices.as_ref().map_or(&[], |devices| devices)
    }

    /// Returns the shares, one per host.
    pub fn shares(&self) -> &[Share] {
        match &self.shares {
            Shares::One(share) => std::slice::from_ref(share),
            Shares::Many(shares) => shares,
        }
    }

    /// Returns the sum of the shares.
    pub fn total(&self) -> Resources {
        self.shares().iter().fold(Resources::NONE, |sum, share| sum.plus(&share.amount))
    }
}
