//! The resources that stay free on every host for ever, for jobs over several hosts.

use std::collections::BTreeSet;

use miserly_core::{FreeHosts, HostId, Machine, Resources, Time};

/// What a search over all hosts needs of one timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outline {
    /// The least amount of each kind that is free at any time from now on.
    pub(super) least: Resources,
    /// The first and the last time at which less becomes free.
    pub(super) falls: Option<(i64, i64)>,
}

/// The resources that stay free on every host for ever, kept from change to change.
///
/// Beside one reservation a job either ends before it, or needs what is free for ever. So a search for a place from
/// now on looks at the free resources of now, or at these. It visits no timeline.
///
/// A change of a host is O(log hosts).
#[derive(Clone, Debug)]
pub(super) struct Lasting {
    free: FreeHosts,
    /// The first fall of each host that has one, with the host.
    first_falls: BTreeSet<(i64, u32)>,
    /// The last ones.
    last_falls: BTreeSet<(i64, u32)>,
}

impl Lasting {
    pub(super) fn new(machine: &Machine) -> Lasting {
        let (first_falls, last_falls) = (BTreeSet::new(), BTreeSet::new());
        Lasting { free: FreeHosts::idle(machine), first_falls, last_falls }
    }

    /// Replaces the outline of a host.
    pub(super) fn update(&mut self, machine: &Machine, host: HostId, before: &Outline, after: &Outline) {
        if before.least != after.least {
            self.free.set(machine, host, after.least);
        }
        if before.falls == after.falls {
            return;
        }
        if let Some((first, last)) = before.falls {
            self.first_falls.remove(&(first, host.0));
            self.last_falls.remove(&(last, host.0));
        }
        if let Some((first, last)) = after.falls {
            self.first_falls.insert((first, host.0));
            self.last_falls.insert((last, host.0));
        }
    }

    /// Returns the free resources that stay free for ever.
    pub(super) fn free(&self) -> &FreeHosts {
        &self.free
    }

    /// Returns the first time at which less becomes free on a host.
    pub(super) fn first_fall(&self) -> Option<Time> {
        self.first_falls.first().map(|(at, _)| Time::from_ticks(*at))
    }

    /// Returns the last time at which less becomes free on a host.
    pub(super) fn last_fall(&self) -> Option<Time> {
        self.last_falls.last().map(|(at, _)| Time::from_ticks(*at))
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{Host, Kind, Ledger, Placement, Span, Spread, draw};

    use super::super::{FreedHosts, HostPlan};
    use super::*;

    fn machine() -> Machine {
        let capacity = |host: u64| Resources::cpus(4 + host % 3).with(Kind::Memory, 100);
        let hosts = (0..6).map(|host| Host { name: format!("h{host}"), capacity: capacity(host) });
        Machine::new(hosts.collect()).with_spread(Spread::Any)
    }

    /// Makes and removes reservations at random, and compares each search from now on with one of all timelines.
    #[test]
    fn a_search_from_now_on_finds_what_the_timelines_have() {
        for seed in 0..20 {
            let machine = machine();
            let ledger = Ledger::new(machine.clone());
            let mut plan = HostPlan::new(&machine);
            let mut made: Vec<(Time, Span, Placement)> = Vec::new();
            let mut now = Time::ZERO;
            for step in 0..60 {
                let random = |nth: u64, most: u64| draw(seed, step, nth) % most;
                let span = |nth| Span::from_ticks(1 + i64::try_from(random(nth, 30)).unwrap());
                let demand = Resources::cpus(1 + random(1, 20)).with(Kind::Memory, random(2, 300));
                if random(3, 3) == 0 && !made.is_empty() {
                    let (at, span, placement) = made.swap_remove(0);
                    plan.give(at, span, &placement);
                } else if let Some((at, placement)) =
                    plan.earliest_from(now + span(4), Time::MAX, span(5), &demand)
                {
                    plan.take(at, span(5), &placement);
                    made.push((at, span(5), placement));
                }
                let mut all = made.iter();
                if random(6, 4) == 0 && all.all(|(at, ..)| *at > now + Span::TICK) {
                    now = now + Span::TICK;
                    plan.advance(now, &mut FreedHosts::default());
                }
                let wanted = Resources::cpus(1 + random(7, 24)).with(Kind::Memory, random(8, 400));
                let span = span(9);
                let found = plan.fit_now(&ledger, now, span, &wanted);
                assert_eq!(found, plan.fit_throughout(now, span, &wanted), "seed {seed}, step {step}");
                let (short, until, long) = plan.room_now(&ledger);
                let most = if span <= until { short } else { long };
                assert!(found.is_none() || wanted.cpus_count() <= most, "seed {seed}, step {step}");
            }
        }
    }
}
