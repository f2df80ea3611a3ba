//! The reservations that are held for the length of a pass.

use miserly_core::{HostId, Placement, Resources, Span, Time};

use super::HostPlan;

/// A reservation of a pass that is not in the timelines, only in what stays free for ever.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) at: Time,
    pub(super) span: Span,
    pub(super) placement: Placement,
    /// The amounts of the placement, in the order of the hosts.
    amounts: Vec<(HostId, Resources)>,
}

impl Pending {
    pub(super) fn new(at: Time, span: Span, placement: &Placement) -> Pending {
        let mut amounts: Vec<_> = placement.shares().iter().map(|share| (share.host, share.amount)).collect();
        amounts.sort_unstable_by_key(|(host, _)| *host);
        Pending { at, span, placement: placement.clone(), amounts }
    }

    /// Returns whether it is this one.
    pub(super) fn is(&self, at: Time, span: Span, placement: &Placement) -> bool {
        (self.at, self.span) == (at, span) && self.placement == *placement
    }

    /// Returns the amount that it takes of a host, if any. O(log hosts).
    pub(super) fn amount(&self, host: HostId) -> Option<&Resources> {
        let found = self.amounts.binary_search_by_key(&host, |(host, _)| *host);
        found.ok().map(|at| &self.amounts[at].1)
    }
}

impl HostPlan {
    /// Reserves a placement for this pass. No reservation may begin now.
    ///
    /// [`release`](HostPlan::release) undoes all that were held.
    pub fn hold(&mut self, at: Time, span: Span, placement: &Placement) {
        self.held += 1;
        if !self.only_rises() || self.held > 1 {
            self.enter_pending();
            return self.take(at, span, placement);
        }
        if self.pending.as_ref().is_some_and(|last| last.is(at, span, placement)) {
            return;
        }
        let last = self.pending.replace(Pending::new(at, span, placement));
        for placement in last.iter().map(|last| &last.placement).chain([placement]) {
            self.hosts_changed(placement);
        }
    }

    /// Removes the reservations that were held in this pass.
    pub fn release<'a>(&mut self, held: impl Iterator<Item = (Time, Span, &'a Placement)>) {
        self.held = 0;
        // A second one would have entered it.
        if self.pending.is_none() {
            held.for_each(|(at, span, placement)| self.give(at, span, placement));
        }
    }

    /// Returns the pending reservation, if it is held in this pass.
    pub(super) fn pending(&self) -> Option<&Pending> {
        self.pending.as_ref().filter(|_| self.held > 0)
    }

    /// Enters the pending reservation in the timelines, or drops that of the last pass.
    pub(super) fn enter_pending(&mut self) {
        if let Some(Pending { at, span, placement, .. }) = self.pending.take() {
            self.hosts_changed(&placement);
            // That of the last pass never stays where a host falls.
            if self.held > 0 {
                self.take(at, span, &placement);
            }
        }
    }
}
