//! The resources that stay free on every host for ever, for jobs over several hosts.

use miserly_core::{FreeHosts, HostId, Machine, Resources};

/// The times at which less becomes free on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Falls {
    pub(super) first: i64,
    pub(super) last: i64,
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
}

impl Lasting {
    pub(super) fn new(machine: &Machine) -> Lasting {
        Lasting { free: FreeHosts::idle(machine) }
    }

    /// Sets what stays free for ever on a host.
    pub(super) fn set_free(&mut self, machine: &Machine, host: HostId, free: Resources) {
        if self.free.on(host) != free {
            self.free.set(machine, host, free);
        }
    }

    /// Returns the free resources that stay free for ever.
    pub(super) fn free(&self) -> &FreeHosts {
        &self.free
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{Demand, Form, Host, Kind, Ledger, Placement, Span, Spread, Time, draw};

    use super::super::{FreedHosts, HostPlan};
    use super::*;

    fn machine() -> Machine {
        let capacity = |host: u64| Resources::cpus(4 + host % 3).with(Kind::Memory, 100);
        let hosts = (0..6).map(|host| Host { name: format!("h{host}"), capacity: capacity(host) });
        Machine::new(hosts.collect()).with_spread(Spread::Any)
    }

    /// Returns a demand in a form at random.
    fn in_form(cpus: u64, memory: u64, form: u64) -> Demand {
        let amount = Resources::cpus(cpus).with(Kind::Memory, memory);
        match form {
            0..8 => amount.into(),
            8..24 => {
                let parts = u32::try_from(1 + form % 4).unwrap();
                Demand::new(
                    amount,
                    Form { apart: form < 16, alone: form.is_multiple_of(3), ..Form::parts(parts) },
                )
            }
            _ => Demand::new(amount, Form::ANY),
        }
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
                let demand = in_form(1 + random(1, 20), random(2, 300), random(10, 32));
                if random(3, 3) == 0 && !made.is_empty() {
                    let (at, span, placement) = made.swap_remove(0);
                    plan.give(at, span, &placement);
                } else {
                    let (from, span) = (now + span(4), span(5));
                    let found = plan.earliest_from(from, Time::MAX, span, &demand);
                    let instants = (0..400).map(|after| from + Span::from_ticks(after));
                    let mut places = instants
                        .filter_map(|at| plan.fit_throughout(at, span, &demand).map(|place| (at, place)));
                    let expect = places.next();
                    assert_eq!(
                        found.clone().filter(|(at, _)| *at < Time::MAX),
                        expect,
                        "seed {seed}, step {step}"
                    );
                    if let Some((at, placement)) = found {
                        plan.take(at, span, &placement);
                        made.push((at, span, placement));
                    }
                }
                let mut all = made.iter();
                if random(6, 4) == 0 && all.all(|(at, ..)| *at > now + Span::TICK) {
                    now = now + Span::TICK;
                    plan.advance(now, &mut FreedHosts::default());
                }
                let wanted = in_form(1 + random(7, 24), random(8, 400), random(11, 32));
                let span = span(9);
                let mut held = plan.clone();
                if let Some((at, placement)) = held.earliest_from(now + Span::TICK, Time::MAX, span, &demand)
                {
                    held.hold(at, span, &placement);
                    let mut taken = plan.clone();
                    taken.take(at, span, &placement);
                    assert_eq!(
                        held.fit_now(&ledger, now, span, &wanted),
                        taken.fit_now(&ledger, now, span, &wanted)
                    );
                    held.release([(at, span, &placement)].into_iter());
                }
                assert!(held.lines == plan.lines, "seed {seed}, step {step}");
                assert_eq!(held.room_now(&ledger), plan.room_now(&ledger), "seed {seed}, step {step}");
                let found = plan.fit_now(&ledger, now, span, &wanted);
                assert_eq!(found, plan.fit_throughout(now, span, &wanted), "seed {seed}, step {step}");
                let (short, until, long) = plan.room_now(&ledger);
                let most = if span <= until { short } else { long };
                assert!(found.is_none() || wanted.cpus_count() <= most, "seed {seed}, step {step}");
            }
        }
    }

    /// Starts and ends jobs at random, and compares each search for the head with one of every instant.
    #[test]
    fn a_search_for_the_head_finds_what_a_search_of_every_instant_finds() {
        let mut again = 0;
        for seed in 0..40 {
            let machine = machine();
            let mut plan = HostPlan::new(&machine);
            let mut running: Vec<(Time, Span, Placement)> = Vec::new();
            let mut now = Time::ZERO;
            let head = |nth: i64| {
                let random = |at: u64, most: u64| draw(seed, nth / 8, at) % most;
                in_form(8 + random(1, 20), random(2, 500), 8 + random(6, 24))
            };
            for step in 0..80 {
                let random = |nth: u64, most: u64| draw(seed, step, nth) % most;
                let span = Span::from_ticks(1 + i64::try_from(random(1, 40)).unwrap());
                match random(2, 4) {
                    0 if !running.is_empty() => {
                        let ended = usize::try_from(random(3, running.len() as u64)).unwrap();
                        let (at, span, placement) = running.swap_remove(ended);
                        plan.give(at, span, &placement);
                    }
                    1 => {
                        let demand = in_form(1 + random(4, 6), random(5, 80), 8 + random(7, 24));
                        if let Some(place) = plan.fit_throughout(now, span, &demand) {
                            plan.take(now, span, &place);
                            running.push((now, span, place));
                        }
                    }
                    _ => {
                        now = now + Span::TICK;
                        plan.advance(now, &mut FreedHosts::default());
                        running.retain(|(at, span, _)| *at + *span > now);
                    }
                }
                let demand = head(step);
                let instants = 1..60;
                let places = instants.filter_map(|after| {
                    let at = now + Span::from_ticks(after);
                    plan.fit_throughout(at, span, &demand).map(|place| (at, place))
                });
                let expect = { places }.next();
                let first = plan.first_together(now, Time::MAX, span, &demand);
                let known =
                    first.zip(plan.last_search.as_ref()).is_some_and(|(first, last)| last.is(first, &demand));
                again += u32::from(known);
                let found = plan.search_without_falls(now, span, &demand);
                // A job that can start now is not searched for.
                if plan.fit_throughout(now, span, &demand).is_none() {
                    assert_eq!(found, expect, "seed {seed}, step {step}");
                }
            }
        }
        assert!(again > 100, "{again} searches were remembered");
    }
}
