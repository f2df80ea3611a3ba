//! What has changed since the queue was last looked at, and so who may start now that could not then.

use std::collections::BTreeSet;

use miserly_core::{JobId, Ledger, Placement, Procs, Resources, Spread, Time};

use super::{Reserved, Room};
use crate::shared::{HostPlan, Risen, Waiting};

/// What has changed since the last pass of a policy that keeps one reservation at most, that of the head.
///
/// Who could not start then can start now only where a host has more free since, or where the head has a reservation no longer.
/// The head's reservation can be another one only where a host has changed at all.
#[derive(Debug)]
pub(super) struct News {
    /// Hosts with more free.
    risen: Risen,
    /// Hosts on which jobs started since the head's reservation was made.
    taken: Risen,
    /// Jobs that came into the queue.
    arrived: BTreeSet<JobId>,
    /// The head's reservation. It is not in the plan between passes.
    head: Option<Reserved>,
}

impl News {
    /// Nobody has looked yet.
    pub(super) fn all() -> News {
        let (risen, taken) = (Risen::anywhere(), Risen::anywhere());
        News { risen, taken, arrived: BTreeSet::new(), head: None }
    }

    /// There may be more on those hosts.
    pub(super) fn rises(&mut self, placement: Option<&Placement>) {
        if let Some(placement) = placement {
            self.risen.add(placement, Time::MAX);
        }
    }

    /// There may be more on all hosts that are [`Risen`].
    pub(super) fn risen(&mut self) -> &mut Risen {
        &mut self.risen
    }

    /// A job starts there.
    pub(super) fn takes(&mut self, placement: &Placement) {
        self.taken.add(placement, Time::MAX);
    }

    pub(super) fn enters(&mut self, job: JobId) {
        self.arrived.insert(job);
    }

    pub(super) fn leaves(&mut self, job: JobId) {
        self.arrived.remove(&job);
        if self.head.as_ref().is_some_and(|head| head.job == job) {
            self.drop_head();
        }
    }

    fn drop_head(&mut self) {
        let head = self.head.take();
        self.rises(head.as_ref().map(|head| &head.placement));
    }

    /// A pass is over that left this reservation to the head.
    pub(super) fn is_old(&mut self, head: Option<&Reserved>) {
        self.risen = Risen::default();
        self.arrived.clear();
        self.head = head.cloned();
        if head.is_none() {
            self.taken = Risen::default();
        }
    }

    /// Jobs that came into the queue.
    pub(super) fn arrived(&self) -> impl Iterator<Item = JobId> + '_ {
        self.arrived.iter().copied()
    }

    /// How wide somebody can be who could not start before.
    pub(super) fn room(&self, ledger: &Ledger) -> Room {
        match self.risen.hosts() {
            _ if self.risen.is_nowhere() => Room { procs: Procs::ZERO },
            Some(hosts) if ledger.machine().spread() == Spread::One => {
                let free = hosts.iter().map(|(host, _)| ledger.free_hosts().on(*host).cpus_count());
                Room { procs: free.max().unwrap_or(Procs::ZERO) }
            }
            _ => Room::of(ledger),
        }
    }

    /// Where a waiting job can start now.
    pub(super) fn fit_now(
        &self,
        plan: &HostPlan,
        ledger: &Ledger,
        now: Time,
        next: &Waiting,
        demand: &Resources,
    ) -> Option<Placement> {
        if self.arrived.contains(&next.job) {
            return plan.fit_now(ledger, now, next.span, demand, &[]);
        }
        plan.fit_now_on(ledger, now, next.span, demand, &self.risen)
    }

    /// Says who is first in the queue: who was before has no reservation any more.
    pub(super) fn first(&mut self, job: JobId) {
        if self.head.as_ref().is_some_and(|head| head.job != job) {
            self.drop_head();
        }
    }

    /// The reservation of a head that cannot start now.
    pub(super) fn reserve(
        &mut self,
        plan: &HostPlan,
        ledger: &Ledger,
        now: Time,
        next: &Waiting,
        demand: &Resources,
    ) -> Option<(Time, Placement)> {
        let again = self.head.as_ref().and_then(|head| {
            let reserved = (head.at, head.span, &head.placement);
            plan.earliest_again(now, demand, reserved, &self.risen, &self.taken)
        });
        let found = again.or_else(|| plan.earliest(ledger, now, Time::MAX, next.span, demand, &[]));
        let before = self.head.as_ref().map(|head| (head.at, &head.placement));
        if before != found.as_ref().map(|(at, placement)| (*at, placement)) {
            self.drop_head();
        }
        self.taken = Risen::default();
        found
    }
}
