//! The usage of users and groups at an instant, for orders that depend on it.

use std::collections::BTreeMap;

use miserly_core::{Entry, Ledger, Request, Time, Usage};

use super::shares::Ranks;
use super::{Key, Order};

/// The usage of the user of a job, and that of the group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    /// The share of the user, in [`Usage::PARTS`].
    pub(super) parts: u32,
    /// The processor-seconds of the user.
    pub(super) seconds: u64,
    /// The share of the group, in [`Usage::PARTS`].
    pub(super) group_parts: u32,
    /// The processor-seconds of the group.
    pub(super) group_seconds: u64,
    /// The rank in the tree of shares.
    pub(super) rank: u32,
    /// The number of users and groups in that tree.
    pub(super) ranked: u32,
}

impl Used {
    /// Returns the usage of the owner of a request, without a rank in a tree of shares.
    pub(crate) fn without_ranks(request: &Request, now: Time, ledger: &Ledger) -> Used {
        Used::new(request, now, ledger, &Ranks::default())
    }

    fn new(request: &Request, now: Time, ledger: &Ledger, ranks: &Ranks) -> Used {
        let Request { user, group, .. } = *request;
        let read = |usage: &Usage| Used {
            parts: usage.share(user, now),
            seconds: usage.processor_seconds(user, now),
            group_parts: usage.group_share(group, now),
            group_seconds: usage.group_processor_seconds(group, now),
            rank: ranks.rank(user, group),
            ranked: ranks.count(),
        };
        ledger.usage().map_or_else(Used::default, read)
    }
}

/// The positions of the jobs of a queue in an order at an instant.
///
/// The usage of a user and a group is computed once. It does not depend on the decisions of this instant.
#[derive(Debug)]
pub struct Keys<'a> {
    order: &'a Order,
    now: Time,
    ledger: &'a Ledger,
    used: BTreeMap<[Option<u32>; 2], Used>,
    ranks: Option<Ranks>,
}

impl<'a> Keys<'a> {
    /// Returns the positions of the jobs of this ledger.
    pub fn new(order: &'a Order, now: Time, ledger: &'a Ledger) -> Keys<'a> {
        Keys { order, now, ledger, used: BTreeMap::new(), ranks: None }
    }

    /// Returns the position of a job, as [`Order::key`] does.
    pub fn key(&mut self, entry: &Entry) -> Key {
        let Keys { now, ledger, .. } = *self;
        // Only an order that depends on it pays for the search.
        let used = if self.order.uses_usage() {
            let ranks = self.ranks.get_or_insert_with(|| self.order.ranks(now, ledger));
            let of_owner = self.used.entry([entry.request.user, entry.request.group]);
            *of_owner.or_insert_with(|| Used::new(&entry.request, now, ledger, ranks))
        } else {
            Used::default()
        };
        self.order.key_with(now, entry, used)
    }
}
