//! The free resources of the hosts of a machine, and placement by best fit with an index.

use std::collections::BTreeSet;

use crate::{HostId, Kind, Machine, Pes, Placement, Procs, Resources, Share, Sharing, SlotId, Spread};

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
    index: BTreeSet<(Procs, u64, u32)>,
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
            let open = (0..).zip(&free.hosts).filter(|(host, room)| takes_jobs(machine, HostId(*host), room));
            free.index = open.map(|(host, room)| place(host, room)).collect();
        }
        free
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
            _ => self.index.last().map_or(Procs::ZERO, |(cpus, ..)| *cpus),
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
            self.index.remove(&place(host.0, &before));
            if takes_jobs(machine, host, &room) {
                self.index.insert(place(host.0, &room));
            }
        }
    }

    /// Returns a placement for a job that requests `demand`, or `None` if it does not fit.
    pub fn fit(&self, machine: &Machine, demand: &Resources) -> Option<Placement> {
        if !demand.fits_in(&self.total) {
            return None;
        }
        match (self.best(machine, demand), machine.spread()) {
            (Some(host), _) => Some(Placement::on(host, held(machine, host, demand))),
            (None, Spread::One) => None,
            (None, Spread::Any) => self.across(machine, demand),
        }
    }

    /// Returns the hosts with enough free resources, best fit first.
    pub fn candidates<'a>(
        &'a self,
        machine: &'a Machine,
        need: &Resources,
    ) -> impl Iterator<Item = HostId> + 'a {
        let need = *need;
        let only = match &self.hosts[..] {
            [only] => (need.fits_in(only) && takes_jobs(machine, HostId(0), only)).then_some(HostId(0)),
            _ => None,
        };
        let mut from = place(0, &need);
        let indexed = std::iter::from_fn(move || {
            loop {
                let &(cpus, memory, host) = self.index.range(from..).next()?;
                let short = memory < need.get(Kind::Memory);
                from = if short { (cpus, need.get(Kind::Memory), 0) } else { (cpus, memory, host + 1) };
                if need.fits_in(&self.hosts[host as usize]) {
                    return Some(HostId(host));
                }
            }
        });
        only.into_iter().chain(indexed)
    }

    fn best(&self, machine: &Machine, need: &Resources) -> Option<HostId> {
        self.candidates(machine, need).next()
    }

    /// Returns a placement on the emptiest hosts, until the remainder of the job fits on one host.
    fn across(&self, machine: &Machine, demand: &Resources) -> Option<Placement> {
        let procs = demand.cpus_count();
        let mut shares: Vec<Share> = Vec::new();
        let mut done = Procs::ZERO;
        for &(.., host) in self.index.iter().rev() {
            let share = |host, need: &Resources| {
                let amount = held(machine, host, need);
                Share { host, amount, pes: Pes::Count }
            };
            let rest = demand.part(done, procs);
            let taken = |host: &HostId| shares.iter().any(|share| share.host == *host);
            if let Some(last) = self.candidates(machine, &rest).find(|host| !taken(host)) {
                shares.push(share(last, &rest));
                return Some(Placement::across(SlotId(0), shares));
            }
            let to = done + self.hosts[host as usize].parts(demand).min(procs - done);
            if to > done {
                shares.push(share(HostId(host), &demand.part(done, to)));
                done = to;
            }
        }
        None
    }
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

fn place(host: u32, room: &Resources) -> (Procs, u64, u32) {
    (room.cpus_count(), room.get(Kind::Memory), host)
}
