//! The free resources of the hosts of a machine, and placement by best fit with an index.

use std::collections::BTreeSet;

use crate::{
    Demand, HostGroup, HostId, Kind, Machine, PartCounter, Pes, Placement, Procs, Resources, Share, Sharing,
    SlotId, Spread,
};

/// The free resources of each host of a machine.
///
/// A job that fits on one host gets the host with the fewest free processors. Only hosts with
/// enough of every kind are candidates. Ties go to the host with the least free memory, then to the
/// first (Chiang and Vernon §2.2).
///
/// A job that may span several hosts, and fits on none alone, takes the emptiest hosts first, with as
/// many of its parts as fit. This keeps the number of hosts small. Ties go to the last host. As soon
/// as the remainder fits on one other host, it goes to the best fit among those. A job whose parts
/// need hosts of their own gets the best fits for one part, in order. Where hosts are not shared, and
/// for a job that has its hosts to itself, only idle hosts are candidates.
///
/// A change is O(log hosts). Finding one host is O(log hosts) for each number of free processors
/// that is skipped for lack of memory. For a job that has its hosts to itself on a shared machine, it
/// is O(log hosts) for each host that is skipped because it is not idle, and so it is for a job with a group.
#[derive(Clone, Debug)]
pub struct FreeHosts {
    hosts: Vec<Resources>,
    total: Resources,
    /// Free processors, free memory and number of each host that takes jobs. Empty if there is one
    /// host.
    index: BTreeSet<Place>,
}

/// The rank of a host for a best fit: by free processors, free memory, and number. The number identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u128);

impl Place {
    fn new(host: u32, room: &Resources) -> Place {
        Place::with(room.cpus_count(), room.get(Kind::Memory), host)
    }

    /// One comparison of 128 bits is several times as fast as three.
    fn with(cpus: Procs, memory: u64, host: u32) -> Place {
        // No machine has more processors.
        let cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
        Place(u128::from(cpus) << 96 | u128::from(memory) << 32 | u128::from(host))
    }

    fn cpus(self) -> Procs {
        Procs::new((self.0 >> 96) as u64)
    }

    fn memory(self) -> u64 {
        u64::try_from(self.0 >> 32 & u128::from(u64::MAX)).unwrap_or(u64::MAX)
    }

    fn host(self) -> u32 {
        u32::try_from(self.0 & u128::from(u32::MAX)).unwrap_or(u32::MAX)
    }

    /// Returns the next place in order.
    fn next(self) -> Place {
        Place(self.0 + 1)
    }
}

/// The hosts that take jobs, in order.
trait HostIndex {
    /// Returns the first one from this place on.
    fn first_from(&self, place: Place) -> Option<Place>;

    /// Returns all, the emptiest one first.
    fn emptiest_first(&self) -> impl Iterator<Item = Place>;
}

impl HostIndex for BTreeSet<Place> {
    fn first_from(&self, place: Place) -> Option<Place> {
        self.range(place..).next().copied()
    }

    fn emptiest_first(&self) -> impl Iterator<Item = Place> {
        self.iter().rev().copied()
    }
}

/// Sorted, for one search.
impl HostIndex for Vec<Place> {
    fn first_from(&self, place: Place) -> Option<Place> {
        self.get(self.partition_point(|other| *other < place)).copied()
    }

    fn emptiest_first(&self) -> impl Iterator<Item = Place> {
        self.iter().rev().copied()
    }
}

impl FreeHosts {
    /// Returns the free resources of an idle machine.
    pub fn idle(machine: &Machine) -> FreeHosts {
        FreeHosts::new(machine, machine.hosts().iter().map(|host| host.capacity).collect())
    }

    /// Returns the index for these free resources, in the order of the hosts.
    pub fn new(machine: &Machine, hosts: Vec<Resources>) -> FreeHosts {
        let total = hosts.iter().fold(Resources::NONE, |sum, host| sum.plus(host));
        let mut free = FreeHosts { hosts, total, index: BTreeSet::new() };
        if machine.hosts().len() > 1 {
            free.index = open_hosts(machine, &free.hosts).collect();
        }
        free
    }

    /// Returns a placement on hosts with these free resources, as [`fit`](FreeHosts::fit), for one search.
    ///
    /// O(hosts log hosts), with no index that is kept.
    pub fn fit_once(machine: &Machine, hosts: &[Resources], demand: &Demand) -> Option<Placement> {
        let mut index: Vec<Place> = Vec::new();
        if hosts.len() > 1 {
            index.extend(open_hosts(machine, hosts));
            index.sort_unstable();
        }
        Rooms { machine, hosts, index: &index }.fit(demand)
    }

    /// Returns the free resources of a host.
    ///
    /// # Panics
    /// If there is no such host.
    #[track_caller]
    pub fn on(&self, host: HostId) -> Resources {
        self.hosts[host.index()]
    }

    /// Returns the free resources of each host, in the order of the hosts.
    pub fn each(&self) -> &[Resources] {
        &self.hosts
    }

    /// Returns the free resources of all hosts together.
    pub fn total(&self) -> Resources {
        self.total
    }

    /// Returns the largest number of free processors of a host that takes jobs. O(log hosts).
    pub fn most_cpus(&self) -> Procs {
        match &self.hosts[..] {
            [only] => only.cpus_count(),
            _ => self.index.last().map_or(Procs::ZERO, |place| place.cpus()),
        }
    }

    /// Sets the free resources of a host. O(log hosts).
    ///
    /// # Panics
    /// If there is no such host.
    #[track_caller]
    pub fn set(&mut self, machine: &Machine, host: HostId, room: Resources) {
        let before = std::mem::replace(&mut self.hosts[host.index()], room);
        self.total = self.total.minus(&before).unwrap_or_default().plus(&room);
        if self.hosts.len() > 1 {
            self.index.remove(&Place::new(host.0, &before));
            if takes_jobs(machine, host, &room) {
                self.index.insert(Place::new(host.0, &room));
            }
        }
    }

    /// Returns a placement for a job with this demand, or `None` if it does not fit.
    pub fn fit(&self, machine: &Machine, demand: &Demand) -> Option<Placement> {
        if !demand.amount().fits_in(&self.total) {
            return None;
        }
        self.rooms(machine).fit(demand)
    }

    /// Returns the hosts with enough free resources, best fit first.
    pub fn candidates<'a>(
        &'a self,
        machine: &'a Machine,
        need: &Resources,
    ) -> impl Iterator<Item = HostId> + 'a {
        self.rooms(machine).candidates(need, false, None)
    }

    fn rooms<'a>(&'a self, machine: &'a Machine) -> Rooms<'a, BTreeSet<Place>> {
        Rooms { machine, hosts: &self.hosts, index: &self.index }
    }
}

/// The free resources of each host, with an index of the hosts that take jobs. It is empty if there is one host.
struct Rooms<'a, I> {
    machine: &'a Machine,
    hosts: &'a [Resources],
    index: &'a I,
}

impl<'a, I: HostIndex> Rooms<'a, I> {
    fn fit(&self, demand: &Demand) -> Option<Placement> {
        if demand.is_apart() {
            return self.apart(demand);
        }
        let amount = demand.amount();
        let found = self.candidates(&amount, demand.is_alone(), demand.group()).next();
        match (found, self.machine.spread()) {
            (Some(host), _) => Some(Placement::from_share(self.share(demand, host, &amount))),
            (None, Spread::One) => None,
            (None, Spread::Any) => self.across(demand),
        }
    }

    /// Returns the share of a job of a host on which it needs this amount.
    fn share(&self, demand: &Demand, host: HostId, need: &Resources) -> Share {
        let alone = demand.is_alone() || self.machine.sharing() == Sharing::Whole;
        let amount = if alone { self.machine.host(host).capacity } else { *need };
        Share { host, amount, pes: Pes::Count }
    }

    /// Returns a placement of each part on a host of its own, best fit first.
    fn apart(&self, demand: &Demand) -> Option<Placement> {
        let parts = usize::try_from(demand.parts()).ok().filter(|parts| *parts <= self.hosts.len())?;
        let each = demand.each();
        let hosts = self.candidates(&each, demand.is_alone(), demand.group()).take(parts);
        let shares: Vec<Share> = hosts.map(|host| self.share(demand, host, &each)).collect();
        (shares.len() == parts).then(|| Placement::across(SlotId(0), shares))
    }

    /// Returns the hosts of a group with enough free resources, best fit first. For a job `alone`, only the idle ones.
    fn candidates(
        &self,
        need: &Resources,
        alone: bool,
        group: Option<HostGroup>,
    ) -> impl Iterator<Item = HostId> + use<'a, I> {
        let need = *need;
        let Rooms { machine, hosts, index } = *self;
        let fits = move |host: HostId| {
            let room = &hosts[host.index()];
            need.fits_in(room)
                && (!alone || *room == machine.host(host).capacity)
                && machine.permits(group, host)
        };
        let only = match hosts {
            [only] => (fits(HostId(0)) && takes_jobs(machine, HostId(0), only)).then_some(HostId(0)),
            _ => None,
        };
        let mut from = Place::new(0, &need);
        let indexed = std::iter::from_fn(move || {
            loop {
                let place = index.first_from(from)?;
                let memory = need.get(Kind::Memory);
                from =
                    if place.memory() < memory { Place::with(place.cpus(), memory, 0) } else { place.next() };
                let host = HostId(place.host());
                if fits(host) {
                    return Some(host);
                }
            }
        });
        only.into_iter().chain(indexed)
    }

    /// Returns a placement on the emptiest hosts, until the remainder of the job fits on one host.
    fn across(&self, demand: &Demand) -> Option<Placement> {
        let parts = demand.parts();
        let least = demand.cpus_count().get() / parts;
        let counter = PartCounter::new(demand);
        let mut shares: Vec<Share> = Vec::new();
        let mut done = 0;
        for place in self.index.emptiest_first() {
            let host = HostId(place.host());
            if !self.machine.permits(demand.group(), host) {
                continue;
            }
            let taken = |host: &HostId| shares.iter().any(|share| share.host == *host);
            // No host that is left has more processors, and one that was passed over has no room for a single part.
            if (parts - done).saturating_mul(least) <= place.cpus().get() {
                let rest = demand.part(done, parts);
                let mut fitting = self.candidates(&rest, demand.is_alone(), demand.group());
                if let Some(last) = fitting.find(|host| !taken(host)) {
                    shares.push(self.share(demand, last, &rest));
                    return Some(Placement::across(SlotId(0), shares));
                }
            }
            let room = &self.hosts[host.index()];
            let to = done + counter.parts_in(room, &self.machine.host(host).capacity).min(parts - done);
            if to > done {
                shares.push(self.share(demand, host, &demand.part(done, to)));
                done = to;
            }
        }
        None
    }
}

/// Returns the hosts that take jobs, with what is free there.
fn open_hosts<'a>(machine: &'a Machine, hosts: &'a [Resources]) -> impl Iterator<Item = Place> + 'a {
    let open = (0..).zip(hosts).filter(|(host, room)| takes_jobs(machine, HostId(*host), room));
    open.map(|(host, room)| Place::new(host, room))
}

fn takes_jobs(machine: &Machine, host: HostId, room: &Resources) -> bool {
    match machine.sharing() {
        Sharing::Shared => !room.cpus_count().is_zero(),
        Sharing::Whole => *room == machine.host(host).capacity,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Form, Host, Request, Span, Time, draw};

    /// Returns a placement over several hosts as the rule is written, without an index.
    fn across_slowly(machine: &Machine, free: &[Resources], demand: &Demand) -> Option<Placement> {
        let parts = demand.parts();
        let order = |host: &usize| (free[*host].cpus_count(), free[*host].get(Kind::Memory), *host);
        let capacity = |host: usize| machine.hosts()[host].capacity;
        let whole = machine.sharing() == Sharing::Whole || demand.is_alone();
        let mut left: Vec<usize> = (0..free.len()).collect();
        left.retain(
            |host| if whole { free[*host] == capacity(*host) } else { !free[*host].cpus_count().is_zero() },
        );
        left.retain(|host| machine.permits(demand.group(), id(*host)));
        let mut shares = vec![];
        let share = |host: usize, need: &Resources| {
            let amount = if whole { capacity(host) } else { *need };
            Share { host: id(host), amount, pes: Pes::Count }
        };
        let mut visits = left.clone();
        if demand.is_apart() {
            visits.retain(|host| demand.each().fits_in(&free[*host]));
            visits.sort_by_key(order);
            let best = visits.get(..usize::try_from(parts).unwrap())?;
            let shares = best.iter().map(|host| share(*host, &demand.each())).collect();
            return Some(Placement::across(SlotId(0), shares));
        }
        let mut done = 0;
        visits.sort_by_key(|host| std::cmp::Reverse(order(host)));
        for visited in visits {
            let rest = demand.part(done, parts);
            let fitting = left.iter().filter(|host| rest.fits_in(&free[**host]));
            if let Some(last) = fitting.min_by_key(|host| order(host)) {
                shares.push(share(*last, &rest));
                return Some(Placement::across(SlotId(0), shares));
            }
            let to =
                done + PartCounter::new(demand).parts_in(&free[visited], &free[visited]).min(parts - done);
            if to > done {
                shares.push(share(visited, &demand.part(done, to)));
                left.retain(|host| *host != visited);
                done = to;
            }
        }
        None
    }

    fn id(host: usize) -> HostId {
        HostId(u32::try_from(host).unwrap())
    }

    #[test]
    fn a_placement_over_hosts_is_that_of_the_rule() {
        let (mut over_several, mut of_form) = (0, [0, 0, 0, 0]);
        for seed in 0..6_000 {
            let random = |nth: u64, most: u64| draw(seed, 0, nth) % most;
            let hosts = 2 + random(0, 6);
            let capacity = |nth: u64| {
                let cpus = if random(40, 2) == 0 { 8 } else { 4 + random(50 + nth, 5) };
                Resources::cpus(cpus).with(Kind::Memory, 100)
            };
            let host = |nth| Host { name: format!("h{nth}"), capacity: capacity(nth) };
            let machine = Machine::new((0..hosts).map(host).collect()).with_spread(Spread::Any);
            let machine = if random(1, 4) == 0 { machine.with_sharing(Sharing::Whole) } else { machine };
            let members = (0..).map(HostId).take(usize::try_from(hosts).unwrap());
            let members = members.filter(|host| random(60 + u64::from(host.0), 3) > 0).collect();
            let machine = machine.with_groups(&[members]);
            let room = |nth: u64| match random(10 + nth, 4) {
                0 => capacity(nth),
                _ => Resources::cpus(random(20 + nth, 9))
                    .with(Kind::Memory, random(30 + nth, 101))
                    .least(&capacity(nth)),
            };
            let free: Vec<Resources> = (0..hosts).map(room).collect();
            let amount = Resources::cpus(1 + random(2, 24)).with(Kind::Memory, random(3, 300));
            let demand = if random(4, 2) == 0 {
                Demand::from(amount)
            } else {
                let parts = u32::try_from(random(5, 5)).unwrap();
                let (apart, alone) = (random(6, 2) == 0, random(7, 3) == 0);
                let group = (random(8, 3) == 0).then_some(HostGroup(0));
                Demand::new(amount, Form { apart, alone, group, ..Form::parts(parts) })
            };
            let once = FreeHosts::fit_once(&machine, &free, &demand);
            let kept = FreeHosts::new(&machine, free.clone()).fit(&machine, &demand);
            assert_eq!(once, kept, "seed {seed}");
            assert_eq!(across_slowly(&machine, &free, &demand), once, "seed {seed}");
            if once.is_some_and(|placement| placement.shares().len() > 1) {
                over_several += 1;
                let own_parts = demand.parts() != demand.cpus_count().get();
                let found = [demand.is_apart(), demand.is_alone(), own_parts, demand.group().is_some()];
                of_form.iter_mut().zip(found).for_each(|(count, found)| *count += u32::from(found));
                let request =
                    Request { form: Form::ANY, ..Request::new(1, Time::ZERO, Span::TICK, demand.amount()) };
                assert!(machine.could_hold(&request), "seed {seed}");
            }
        }
        assert!(over_several > 600 && of_form.iter().all(|count| *count > 50), "{over_several}, {of_form:?}");
    }
}
