//! The usage of users at an instant, for orders that depend on it.

use std::collections::BTreeMap;

use miserly_core::{Entry, Ledger, Time, Usage};

use super::{Key, Order};

/// The usage of the user of a job.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    /// The share, in [`Usage::PARTS`].
    pub(super) parts: u32,
    /// The processor-seconds.
    pub(super) seconds: u64,
}

impl Used {
    pub(super) fn of(user: Option<u32>, now: Time, ledger: &Ledger) -> Used {
        let read = |usage: &Usage| Used {
            parts: usage.share(user, now),
            seconds: usage.processor_seconds(user, now),
        };
        ledger.usage().map_or_else(Used::default, read)
    }
}

/// The positions of the jobs of a queue in an order at an instant.
///
/// The usage of a user is computed once. It does not depend on the decisions of this instant.
#[derive(Debug)]
pub struct Keys<'a> {
    order: &'a Order,
    now: Time,
    ledger: &'a Ledger,
    used: BTreeMap<Option<u32>, Used>,
}

impl<'a> Keys<'a> {
    /// Returns the positions of the jobs of this ledger.
    pub fn new(order: &'a Order, now: Time, ledger: &'a Ledger) -> Keys<'a> {
        Keys { order, now, ledger, used: BTreeMap::new() }
    }

    /// Returns the position of a job, as [`Order::key`] does.
    pub fn key(&mut self, entry: &Entry) -> Key {
        let Keys { now, ledger, .. } = *self;
        let used = if self.order.uses_usage() {
            let of_user = self.used.entry(entry.request.user);
            *of_user.or_insert_with_key(|user| Used::of(*user, now, ledger))
        } else {
            Used::default()
        };
        self.order.key_with(now, entry, used)
    }
}
