//! Repeated searches for a job, limited to the hosts that changed.

use miserly_core::{Demand, HostId, Ledger, Placement, Procs, Span, Spread, Time};

use super::devices::FoundStart;
use super::{FreedHosts, HostPlan};

impl HostPlan {
    /// Returns a placement for a job that can start now on the hosts freed since the last search.
    ///
    /// Works like [`fit_now`](HostPlan::fit_now), but on these hosts only. No reservation may begin
    /// now.
    pub fn fit_now_on(
        &self,
        ledger: &Ledger,
        now: Time,
        span: Span,
        demand: &Demand,
        freed: &FreedHosts,
    ) -> Option<Placement> {
        let (Spread::One, Some(hosts)) = (self.machine.spread(), freed.hosts()) else {
            return if freed.is_nowhere() { None } else { self.fit_now(ledger, now, span, demand) };
        };
        let (free, amount) = (ledger.free_hosts(), demand.amount());
        let roomy = hosts.iter().map(|(host, _)| *host).filter(|host| amount.fits_in(&free.on(*host)));
        self.best(now, span, demand, roomy)
    }

    /// Returns the hosts where capacity was freed, if each can be examined alone.
    pub fn hosts_alone<'a>(&self, freed: &'a FreedHosts) -> Option<&'a [(HostId, Time)]> {
        let alone = self.machine.spread() == Spread::One && !self.is_pool();
        freed.hosts().filter(|_| alone)
    }

    /// Returns whether a start in `from..until`, before that of a reservation, is possible at first
    /// sight.
    ///
    /// The reservation is in the plan.
    pub fn seems_earlier(
        &self,
        from: Time,
        until: Time,
        demand: &Demand,
        (at, span, _): (Time, Span, &Placement),
    ) -> bool {
        self.together.is_none() || self.together_from(from, until, at, span, demand).is_some()
    }

    /// Returns the earliest start from `from` on and before that of a reservation.
    ///
    /// The last search must have found no such start: only hosts where capacity was freed since can
    /// offer one. The reservation is in the plan.
    pub fn earlier_on(
        &self,
        from: Time,
        demand: &Demand,
        (at, span, placement): (Time, Span, &Placement),
        freed: &[(HostId, Time)],
    ) -> Option<(Time, Placement)> {
        let mut until = at;
        let mut best = None;
        for &(host, freed) in freed {
            let is_own = placement.shares().iter().any(|share| share.host == host);
            let own = is_own.then_some((at, placement));
            let window = (from, until.min(freed));
            let Some(found) = self.earliest_on(host, window, span, demand, own) else { continue };
            // Another host must allow a start at this time or earlier.
            until = until.min(found.0 + Span::TICK);
            if best.as_ref().is_none_or(|best: &FoundStart| (found.0, found.1) < (best.0, best.1)) {
                best = Some(found);
            }
        }
        best.map(|(start, _, placement)| (start, placement))
    }

    /// Returns the earliest start of a job that cannot start now, given its previous reservation.
    ///
    /// `freed` has the hosts where capacity was freed, and `taken` those where capacity was taken.
    /// Returns `None` if every host has to be searched.
    ///
    /// Without changes the reservation stays the same. A host that has less now may be a better fit
    /// at the same time.
    pub fn earliest_again(
        &self,
        now: Time,
        demand: &Demand,
        (at, span, placement): (Time, Span, &Placement),
        freed: &FreedHosts,
        taken: &FreedHosts,
    ) -> Option<(Time, Placement)> {
        let unchanged = freed.is_nowhere() && taken.is_nowhere();
        let alone = self.machine.spread() == Spread::One;
        if at <= now || !(unchanged || alone) || !self.holds(at, span, placement) {
            return None;
        }
        if unchanged {
            return Some((at, placement.clone()));
        }
        let [share] = placement.shares() else { return None };
        let (Some(freed), Some(taken)) = (freed.hosts(), taken.hosts()) else { return None };
        if freed.iter().any(|(host, _)| *host == share.host) {
            return None;
        }
        let (fit, place) = self.with_devices_on(share.host, at, span, demand, None)?;
        let mut best = (at, fit, place);
        for &(host, _) in freed.iter().chain(taken) {
            let window = (now, best.0 + Span::TICK);
            let found = self.earliest_on(host, window, span, demand, None);
            best = found.into_iter().chain([best]).min_by_key(|(start, fit, _)| (*start, *fit))?;
        }
        let (start, _, placement) = best;
        (start > now).then_some((start, placement))
    }

    /// Returns the most processors that are free at any time, from now on, at which more is free
    /// than before.
    pub fn most_cpus(&self, now: Time, freed: &FreedHosts) -> Procs {
        match (freed.hosts(), &self.together) {
            (None, _) => Procs::MAX,
            (Some(_), Some(together)) => {
                freed.until().map_or(Procs::ZERO, |until| Procs::new(together.most_within(now, until).into()))
            }
            (Some(hosts), None) => {
                let most =
                    |(host, until): &(HostId, Time)| self.lines.on(*host).most_cpus_within(now, *until);
                hosts.iter().map(most).max().unwrap_or(Procs::ZERO)
            }
        }
    }
}
