//! The nodes that reservations close to other jobs, over time.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{ClosedHosts, HostId, Machine, Time};
use miserly_forecast::AHEAD_BESIDE_CLOSED;

use crate::{Cluster, Reservation};

const DAY: i64 = 86_400;

impl Reservation {
    /// Returns the times from an instant on at which it holds its nodes, in order. One with a flag such as `daily` is repeated.
    fn times(&self, now: i64) -> Vec<(i64, i64)> {
        let has = |flag: &str| self.flags.iter().any(|other| other == flag);
        let period = if has("hourly") {
            3_600
        } else if has("daily") || has("weekday") || has("weekend") {
            DAY
        } else if has("weekly") {
            7 * DAY
        } else {
            return vec![(self.begin, self.end)];
        };
        // Day 0 was a Thursday.
        let is_weekend = |begin: i64| matches!(begin.div_euclid(DAY).rem_euclid(7), 2 | 3);
        let counts = |begin: &i64| {
            let is_weekend = is_weekend(*begin);
            !(has("weekday") && is_weekend || has("weekend") && !is_weekend)
        };
        let begins = (0..).map(|nth| self.begin.saturating_add(nth * period));
        // A job that starts at the end of the simulated time may reach into the next ones.
        let last = now.saturating_add(AHEAD_BESIDE_CLOSED.secs() + 8 * DAY);
        let begins = begins.take_while(|begin| *begin < last);
        begins.filter(counts).map(|begin| (begin, begin.saturating_add(self.end - self.begin))).collect()
    }

    /// Returns whether jobs may not have a node of it now that could run jobs otherwise.
    pub(crate) fn holds(&self, node: &str, now: i64) -> bool {
        let is_held = self.begin <= now && self.is_active(now) && !self.is_of_driver();
        is_held && self.nodes.iter().any(|other| other == node)
    }
}

impl Cluster {
    /// Returns whether a reservation holds some processors of its nodes only.
    fn is_part_of_nodes(&self, reservation: &Reservation) -> bool {
        let all = || reservation.nodes.iter().filter_map(|node| self.nodes.get(node)).map(|node| node.cpus);
        reservation.cpus.is_some_and(|cpus| cpus < all().sum())
    }

    /// Returns the reservations that hold whole nodes, now or later, by name. That of a driver holds none: jobs start there, in the
    /// order of its policy.
    fn whole_reservations(&self) -> impl Iterator<Item = (&str, &Reservation)> {
        let now = self.configuration.now;
        let whole =
            move |one: &Reservation| one.is_active(now) && !one.is_of_driver() && !self.is_part_of_nodes(one);
        self.reservations.iter().filter(move |(_, one)| whole(one)).map(|(name, one)| (name.as_str(), one))
    }

    /// Returns the times at which reservations close hosts of a machine of nodes.
    pub(crate) fn closed(&self, machine: &Machine) -> Vec<ClosedHosts> {
        let names = (0..).map(HostId).zip(machine.hosts());
        let hosts: BTreeMap<&str, HostId> = names.map(|(host, one)| (one.name.as_str(), host)).collect();
        let now = self.configuration.now;
        let closed = |(_, reservation): (&str, &Reservation)| {
            let hosts: Vec<HostId> =
                reservation.nodes.iter().filter_map(|node| hosts.get(node.as_str()).copied()).collect();
            let time = |seconds: i64| Time::from_secs(seconds).unwrap_or(Time::MAX);
            let times = if hosts.is_empty() { vec![] } else { reservation.times(now) };
            times.into_iter().map(move |(from, to)| ClosedHosts {
                from: time(from),
                to: time(to),
                hosts: hosts.clone(),
            })
        };
        self.whole_reservations().flat_map(closed).collect()
    }

    /// Returns the number of times at which reservations hold some of these nodes, now or later.
    pub(crate) fn closed_times(&self, nodes: &BTreeSet<&str>) -> usize {
        let here = |one: &Reservation| one.nodes.iter().any(|node| nodes.contains(node.as_str()));
        let whole = self.whole_reservations().filter(|(_, one)| here(one));
        whole.map(|(_, one)| one.times(self.configuration.now).len()).sum()
    }

    /// Returns the processors of a node that reservations of a part of it hold, about the same on each of their nodes.
    pub(crate) fn reserved_cpus(&self, node: &str) -> u64 {
        let now = self.configuration.now;
        let part = |one: &&Reservation| {
            one.is_active(now) && one.nodes.iter().any(|other| other == node) && self.is_part_of_nodes(one)
        };
        let cpus = |one: &Reservation| one.cpus.unwrap_or(0).div_ceil((one.nodes.len() as u64).max(1));
        self.reservations.values().filter(part).map(cpus).sum()
    }

    /// Returns the first reservation that begins on some of these nodes later, with its begin.
    pub(crate) fn next_reservation(&self, is_there: impl Fn(&str) -> bool) -> Option<(i64, &str)> {
        let now = self.configuration.now;
        let there = |one: &Reservation| one.nodes.iter().any(|node| is_there(node));
        let next = self.whole_reservations().filter(|(_, one)| there(one)).filter_map(|(name, one)| {
            let (begin, _) = one.times(now).into_iter().find(|(begin, _)| *begin > now)?;
            Some((begin, name))
        });
        next.min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_repeat() {
        let days = |flags: &[&str]| {
            // Monday, 4 January 2027.
            let begin = 1_799_020_800;
            let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
            let one = Reservation { begin, end: begin + 60, flags, ..Reservation::default() };
            let times = one.times(begin);
            assert!(times.iter().all(|(from, to)| to - from == 60));
            times.iter().take(4).map(|(from, _)| (from - begin) / DAY).collect::<Vec<_>>()
        };
        assert_eq!(days(&["maint"]), [0]);
        assert_eq!(days(&["daily"]), [0, 1, 2, 3]);
        assert_eq!(days(&["weekly"]), [0, 7, 14, 21]);
        assert_eq!(days(&["weekend"]), [5, 6, 12, 13]);
        assert_eq!(days(&["weekday", "maint"]), [0, 1, 2, 3]);
        assert_eq!(days(&["hourly"]), [0, 0, 0, 0]);
    }
}
