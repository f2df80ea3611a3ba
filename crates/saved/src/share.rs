//! Placements, as they are stored.

use miserly_core::devices::{CellId, HeldDevices};
use miserly_core::{HostId, PeSet, Pes, Placement, Share, SlotId};
use serde::{Deserialize, Serialize};

use crate::amounts::{Amounts, amounts, resources};

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct SavedShare {
    host: u32,
    amount: Amounts,
    /// The processors by number, as ranges, where they are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pes: Option<Vec<(u32, u32)>>,
    /// The devices of the job, on its only share: the cell, the amount of it, and the positions, one bit each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    devices: Vec<(u32, u64, u64)>,
}

pub(crate) fn shares(placement: &Placement) -> Vec<SavedShare> {
    let saved = |share: &Share| SavedShare {
        host: share.host.0,
        amount: amounts(&share.amount),
        pes: match &share.pes {
            Pes::Count => None,
            Pes::Set(pes) => Some(pes.ranges().to_vec()),
        },
        devices: vec![],
    };
    let mut shares: Vec<SavedShare> = placement.shares().iter().map(saved).collect();
    if let Some(share) = shares.first_mut() {
        share.devices =
            placement.devices().iter().map(|held| (held.cell.0, held.amount, held.names)).collect();
    }
    shares
}

pub(crate) fn placement(shares: &[SavedShare]) -> Placement {
    let share = |saved: &SavedShare| {
        let pes = saved.pes.as_ref().map_or(Pes::Count, |ranges| Pes::Set(PeSet::from_ranges(ranges)));
        Share { host: HostId(saved.host), amount: resources(saved.amount), pes }
    };
    let devices = shares.iter().flat_map(|share| &share.devices);
    let devices =
        devices.map(|&(cell, amount, names)| HeldDevices { cell: CellId(cell), amount, names }).collect();
    Placement::across(SlotId(0), shares.iter().map(share).collect()).with_devices(devices)
}
