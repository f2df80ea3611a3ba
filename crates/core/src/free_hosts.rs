//! The free resources of the hosts of a machine, and placement by best fit with an index.

use std::collections::BTreeSet;

use crate::{
    HostId, Kind, Machine, PartCounter, Pes, Placement, Procs, Resources, Share, Sharing, SlotId, Spread,
};

/// The free resources of each host of a machine.
///
/// A job that fits on one host gets the host with the fewest free processors. Only hosts with
/// enough of every kind are candidates. Ties go to the host with the least free memory, then to the
/// first (Chiang and Vernon §2.2).
///
/// A job that may span several hosts, and fits on none alone, takes the emptiest hosts first. This
/// keeps the number of hosts small. Ties go to the last host. As soon as the remainder fits on one
/// other host, it goes to the best fit among those. Where hosts are not shared, only idle hosts are
/// candidates.
///
/// A change is O(log hosts). Finding one host is O(log hosts) for each number of free processors
/// that is skipped for lack of memory.
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
    pub fn fit_once(machine: &Machine, hosts: &[Resources], demand: &Resources) -> Option<Placement> {
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

    /// Returns a placement for a job that requests `demand`, or `None` if it does not fit.
    pub fn fit(&self, machine: &Machine, demand: &Resources) -> Option<Placement> {
        if !demand.fits_in(&self.total) {
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
        self.rooms(machine).candidates(need)
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
    fn fit(&self, demand: &Resources) -> Option<Placement> {
        match (self.candidates(demand).next(), self.machine.spread()) {
            (Some(host), _) => Some(Placement::on(host, held(self.machine, host, demand))),
            (None, Spread::One) => None,
            (None, Spread::Any) => self.across(demand),
        }
    }

    /// Returns the hosts with enough free resources, best fit first.
    fn candidates(&self, need: &Resources) -> impl Iterator<Item = HostId> + use<'a, I> {
        let need = *need;
        let Rooms { machine, hosts, index } = *self;
        let only = match hosts {
            [only] => (need.fits_in(only) && takes_jobs(machine, HostId(0), only)).then_some(HostId(0)),
            _ => None,
        };
        let mut from = Place::new(0, &need);
        let indexed = std::iter::from_fn(move || {
            loop {
                let place = index.first_from(from)?;
                let memory = need.get(Kind::Memory);
                from =
                    if place.memory() < memory { Place::with(place.cpus(), memory, 0) } else { place.next() };
                if need.fits_in(&hosts[place.host() as usize]) {
                    return Some(HostId(place.host()));
                }
            }
        });
        only.into_iter().chain(indexed)
    }

    /// Returns a placement on the emptiest hosts, until the remainder of the job fits on one host.
    fn across(&self, demand: &Resources) -> Option<Placement> {
        let procs = demand.cpus_count();
        let counter = PartCounter::new(demand);
        let mut shares: Vec<Share> = Vec::new();
        let mut done = Procs::ZERO;
        for place in self.index.emptiest_first() {
            let host = HostId(place.host());
            let share = |host, need: &Resources| {
                let amount = held(self.machine, host, need);
                Share { host, amount, pes: Pes::Count }
            };
            let taken = |host: &HostId| shares.iter().any(|share| share.host == *host);
            // No host that is left has more processors, and one that was passed over has no room for a single one.
            if procs - done <= place.cpus() {
                let rest = demand.part(done, procs);
                if let Some(last) = self.candidates(&rest).find(|host| !taken(host)) {
                    shares.push(share(last, &rest));
                    return Some(Placement::across(SlotId(0), shares));
                }
            }
            let to = done + counter.parts_in(&self.hosts[host.index()]).min(procs - done);
            if to > done {
                shares.push(share(host, &demand.part(done, to)));
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

/// Returns the holdings of a job on a host of which it requests `need`.
fn held(machine: &Machine, host: HostId, need: &Resources) -> Resources {
    match machine.sharing() {
        Sharing::Shared => *need,
        Sharing::Whole => machine.host(host).capacity,
    }
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
    use crate::{Host, draw};

    /// Returns a placement over several hosts as the rule is written, without an index.
    fn across_slowly(machine: &Machine, free: &[Resources], demand: &Resources) -> Option<Placement> {
        let procs = demand.cpus_count();
        let order = |host: &usize| (free[*host].cpus_count(), free[*host].get(Kind::Memory), *host);
        let mut left: Vec<usize> = (0..free.len()).collect();
        left.retain(|host| takes_jobs(machine, id(*host), &free[*host]));
        let mut shares = vec![];
        let mut done = Procs::ZERO;
        let share =
            |host, need: &Resources| Share { host, amount: held(machine, host, need), pes: Pes::Count };
        let mut visits = left.clone();
        visits.sort_by_key(|host| std::cmp::Reverse(order(host)));
        for visited in visits {
            let rest = demand.part(done, procs);
            let fitting = left.iter().filter(|host| rest.fits_in(&free[**host]));
            if let Some(last) = fitting.min_by_key(|host| order(host)) {
                shares.push(share(id(*last), &rest));
                return Some(Placement::across(SlotId(0), shares));
            }
            let to = done + free[visited].parts(demand).min(procs - done);
            if to > done {
                shares.push(share(id(visited), &demand.part(done, to)));
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
        let mut over_several = 0;
        for seed in 0..3_000 {
            let random = |nth: u64, most: u64| draw(seed, 0, nth) % most;
            let hosts = 2 + random(0, 6);
            let capacity = Resources::cpus(8).with(Kind::Memory, 100);
            let host = |nth| Host { name: format!("h{nth}"), capacity };
            let machine = Machine::new((0..hosts).map(host).collect()).with_spread(Spread::Any);
            let machine = if random(1, 4) == 0 { machine.with_sharing(Sharing::Whole) } else { machine };
            let room = |nth: u64| match random(10 + nth, 4) {
                0 => capacity,
                _ => Resources::cpus(random(20 + nth, 9)).with(Kind::Memory, random(30 + nth, 101)),
            };
            let free: Vec<Resources> = (0..hosts).map(room).collect();
            let demand = Resources::cpus(1 + random(2, 24)).with(Kind::Memory, random(3, 300));
            let once = FreeHosts::fit_once(&machine, &free, &demand);
            let kept = FreeHosts::new(&machine, free.clone()).fit(&machine, &demand);
            assert_eq!(once, kept, "seed {seed}");
            if let Some(placement) = once.filter(|placement| placement.shares().len() > 1) {
                over_several += 1;
                assert_eq!(across_slowly(&machine, &free, &demand), Some(placement), "seed {seed}");
            }
        }
        assert!(over_several > 300, "{over_several} placements over several hosts");
    }
}
