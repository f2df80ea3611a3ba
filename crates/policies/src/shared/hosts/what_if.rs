//! Hypothetical changes of one host's timeline.

use miserly_core::{HostId, JobId, Ledger, Placement, Span, Time};

use super::timeline::Timeline;
use super::{HostPlan, Part};

/// The timeline of one host with hypothetical changes.
///
/// Creation and each change are O(breakpoints of the host).
#[derive(Debug)]
pub struct WhatIf<'a> {
    plan: &'a HostPlan,
    host: HostId,
    line: Timeline,
}

impl WhatIf<'_> {
    pub(super) fn new(plan: &HostPlan, host: HostId) -> WhatIf<'_> {
        WhatIf { plan, host, line: plan.lines.on(host).clone() }
    }

    /// Reserves the placement's share of the host.
    pub fn take(&mut self, at: Time, span: Span, placement: &Placement) {
        self.add(at, at + span, placement, Part::Whole, false);
    }

    /// Releases the placement's share of the host.
    pub fn give(&mut self, at: Time, span: Span, placement: &Placement) {
        self.add(at, at + span, placement, Part::Whole, true);
    }

    /// Takes the processors of a running job in `now..until`, and delays its end by that time.
    pub fn postpone(&mut self, now: Time, until: Time, job: JobId, ledger: &Ledger) {
        let entry = ledger.entry(job);
        let Some(placement) = entry.placement() else { return };
        for stretch in self.plan.jobs.get(job.index()).into_iter().flatten() {
            self.add(stretch.from, stretch.to, &stretch.placement, stretch.part, true);
        }
        let left = entry.left(now, entry.working());
        self.add(now, until, placement, Part::AllButCpus, false);
        self.add(until, until + left, placement, Part::Whole, false);
    }

    /// Returns whether no more is ever taken of the host than it has.
    pub fn is_possible(&self) -> bool {
        self.line.is_possible()
    }

    fn add(&mut self, from: Time, to: Time, placement: &Placement, part: Part, give: bool) {
        let from = self.plan.since(from);
        for share in placement.shares().iter().filter(|share| share.host == self.host) {
            self.line.change(from, to, &part.part_of(&share.amount), give, |_, _| ());
        }
    }
}
