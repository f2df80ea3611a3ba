//! What a policy remembers of a job.

use miserly_core::{HostId, Memo, Time};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct SavedMemo {
    served: bool,
    held: bool,
    bypassed: u32,
    pledged: Option<u32>,
    owed: u128,
    owed_at: Option<i64>,
}

impl SavedMemo {
    pub(super) fn of(memo: &Memo) -> SavedMemo {
        let Memo { served, held, bypassed, pledged, owed, owed_at } = *memo;
        SavedMemo {
            served,
            held,
            bypassed,
            pledged: pledged.map(|host| host.0),
            owed,
            owed_at: owed_at.map(Time::ticks),
        }
    }

    pub(super) fn memo(self) -> Memo {
        let SavedMemo { served, held, bypassed, pledged, owed, owed_at } = self;
        Memo {
            served,
            held,
            bypassed,
            pledged: pledged.map(HostId),
            owed,
            owed_at: owed_at.map(Time::from_ticks),
        }
    }
}
