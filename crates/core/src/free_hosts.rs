//! What the hosts of a machine have free, and where a job goes: best fit, found by an index.

use std::collections::BTreeSet;

use crate::{HostId, Kind, Machine, Pes, Placement, Procs, Resources, Share, Sharing, SlotId, Spread};

/// The room on each host of a machine.
///
/// One host for a job is the one that is left with the fewest processors: of those with enough of everything the one with
/// the fewest free processors, then with the least free memory, then the first (Chiang and Vernon §2.2).
/// A job that may lie on several, and fits on none alone, takes the emptiest hosts first, to lie on few (of equals the
/// last); as soon as the rest of it fits on one of the others, it goes to the one that it fits best. Where hosts are not
/// shared, only idle ones count.
///
/// A change is O(log hosts); finding one host O(log hosts) for each number of free processors that is passed for its memory.
#[derive(Clone, Debug)]
pub struct FreeHosts {
    hosts: Vec<Resources>,
    total: Resources,
    /// Free processors, free memory and number of each host that takes jobs; empty where there is one host only.
    index: BTreeSet<(Procs, u64, u32)>,
}

impl FreeHosts {
    /// An idle machine.
    pub fn idle(machine: &Machine) -> FreeHosts {
        FreeHosts::new(machine, machine.hosts().iter().map(|host| host.capacity).collect())
    }

    /// A machine with so much free on each host, in the order of the hosts.
    pub fn new(machine: &Machine, hosts: Vec<Resources>) -> FreeHosts {
        let total = hosts.iter().fold(Resources::NONE, |sum, host| sum.plus(host));
        let mut free = FreeHosts { hosts, total, index: BTreeSet::new() };
        if machine.hosts().len() > 1 {
            let open = (0..).zip(&free.hosts).filter(|(host, room)| takes_jobs(machine, HostId(*host), room));
            free.index = open.map(|(host, room)| place(host, room)).collect();
        }
        free
    }

    /// What the host has free.
    ///
    /// # Panics
    /// If there is no such host.
    #[track_caller]
    pub fn on(&self, host: HostId) -> Resources {
        self.hosts[host.index()]
    }

    /// What each host has free, in the order of the hosts.
    pub fn each(&self) -> &[Resources] {
        &self.hosts
    }

    /// What all hosts have free together.
    pub fn total(&self) -> Resources {
        self.total
    }

    /// The most processors that a host has free which takes jobs; O(log hosts).
    pub fn most_cpus(&self) -> Procs {
        match &self.hosts[..] {
            [only] => only.cpus_count(),
            _ => self.index.last().map_or(Procs::ZERO, |(cpus, ..)| *cpus),
        }
    }

    /// Sets what a host has free.
    pub(crate) fn set(&mut self, machine: &Machine, host: HostId, room: Resources) {
        let before = std::mem::replace(&mut self.hosts[host.index()], room);
        self.total = self.total.minus(&before).unwrap_or_default().plus(&room);
        if self.hosts.len() > 1 {
            self.index.remove(&place(host.0, &before));
            if takes_jobs(machine, host, &room) {
                self.index.insert(place(host.0, &room));
            }
        }
    }

    /// Where a job that asks for `demand` goes; `None` if there is no room for it.
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

    /// The hosts that have room enough, best fit first.
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

    /// The emptiest hosts, until the rest of the job fits on one.
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

/// What a job holds of a host that it asks so much of.
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
