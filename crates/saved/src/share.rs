//! Placements, as they are stored.

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
}

pub(crate) fn shares(placement: &Placement) -> Vec<SavedShare> {
    let saved = |share: &Share| SavedShare {
        host: share.host.0,
        amount: amounts(&share.amount),
        pes: match &share.pes {
            Pes::Count => None,
            Pes::Set(pes) => Some(pes.ranges().to_vec()),
        },
    };
    placement.shares().iter().map(saved).collect()
}

pub(crate) fn placement(shares: &[SavedShare]) -> Placement {
    let share = |saved: &SavedShare| {
        let pes = saved.pes.as_ref().map_or(Pes::Count, |ranges| Pes::Set(PeSet::from_ranges(ranges)));
        Share { host: HostId(saved.host), amount: resources(saved.amount), pes }
    };
    Placement::across(SlotId(0), shares.iter().map(share).collect())
}
